// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/call_site.hpp>

#include <cstddef>
#include <cstdint>

namespace toroid::transport {

/// How a rank waits: it spins, then gives way to other threads, then sleeps until a peer rings.
struct waiting {
  int spins = 20'000;                     ///< looks at the flag before the first yield
  int yields = 100;                       ///< yields before the first sleep
  std::int64_t timeout = 30'000'000'000;  ///< nanoseconds without the awaited flag until timeout_error
};

/// What an error that interrupts a wait can tell about the call.
struct wait_context {
  const char* operation = "set-up";  ///< the collective's name
  std::uint64_t call = 0;            ///< its sequence number on this communicator
  int step = 0;                      ///< of the schedule
  std::size_t bytes_done = 0;        ///< bytes of this rank's operations that are complete
  call_site at{};
};

}  // namespace toroid::transport
