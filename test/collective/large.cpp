// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/memory.hpp"
#include "support/sanitizers.hpp"

#include <toroid/collective/all_reduce.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

TEST_CASE("Vectors longer than 2^31 bytes are summed", "[large][slow]") {
  constexpr std::size_t two_to_31 = std::size_t{1} << 31;
  constexpr std::size_t count = two_to_31 + 7;
  const std::size_t free = static_cast<std::size_t>(::sysconf(_SC_AVPHYS_PAGES)) * support::fenced_memory::page();
  if (support::sanitized || free < 3 * two_to_31) {
    WARN("not run: it needs 6 GiB of free memory, and no sanitizer");
    return;
  }
  support::run_threads(2,
                       [&](auto& comm) {
                         const support::fenced_memory memory(count);
                         const std::span<std::uint8_t> values(reinterpret_cast<std::uint8_t*>(memory.bytes().data()),
                                                              count);
                         const auto check = [&](std::uint8_t right) {
                           for (const std::size_t near : {std::size_t{0}, count / 2 - 32, two_to_31 - 32, count - 64})
                             for (std::size_t i = near; i < near + 64 && i < count; ++i)
                               support::demand(values[i] == right, "byte ", i, " is ", +values[i], ", not ", +right);
                         };
                         std::memset(values.data(), 1, count);
                         toroid::all_reduce(comm, values);
                         check(2);
                         toroid::all_reduce(comm, values, toroid::ring{});
                         check(4);
                       },
                       {.timeout = std::chrono::minutes(5)});
}
