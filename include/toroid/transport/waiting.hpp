// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/call_site.hpp>

#include <atomic>
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
  /// Where somebody waits on another's behalf: since when that one waits (detail::monotonic_nanoseconds()), 0 as long
  /// as it does not. The deadline counts from then.
  const std::atomic<std::int64_t>* asked = nullptr;

  /// Nanoseconds that count against the deadline, of a wait that has begun at one time and goes on at another.
  std::int64_t waited(std::int64_t began, std::int64_t now) const noexcept {
    if (asked == nullptr) return now - began;
    const std::int64_t since = asked->load(std::memory_order_relaxed);
    return since == 0 ? 0 : now - (since > began ? since : began);
  }
};

/// A flag that has not come yet, and whose it is; none if rank is negative.
struct awaited_flag {
  int rank = -1;
  const std::atomic<std::uint64_t>* flag = nullptr;
  std::uint64_t value = 0;
  explicit operator bool() const noexcept { return rank >= 0; }
};

}  // namespace toroid::transport
