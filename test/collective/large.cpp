// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/memory.hpp"
#include "support/sanitizers.hpp"

#include <toroid/collective/all_gather.hpp>
#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/broadcast.hpp>
#include <toroid/collective/reduce_scatter.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

// Vectors whose bytes are not counted by 31 bits.

namespace {

using support::demand;

constexpr std::size_t two_to_31 = std::size_t{1} << 31;
constexpr std::size_t count = two_to_31 + 7;

/// A pattern that no power of two repeats, so that a byte in another's place shows. On each rank it is another.
///
/// @param times,more  the pattern's bytes times the one plus the other
class pattern {
 public:
  pattern(int times, int more) : m_bytes(length + 1) {
    for (std::size_t i = 0; i < length; ++i)
      m_bytes[i] = static_cast<std::uint8_t>(static_cast<std::size_t>(times) * (i * 7 + i / 256) +
                                             static_cast<std::size_t>(more));
  }
  void fill(std::span<std::uint8_t> values) const {
    each(0, values.size(),
         [&](std::size_t at, const std::uint8_t* bytes, std::size_t n) { std::memcpy(&values[at], bytes, n); });
  }
  /// Every byte of values[begin, end) is that of the pattern.
  void check(std::span<const std::uint8_t> values, toroid::block range, const char* what) const {
    each(range.begin, range.end(), [&](std::size_t at, const std::uint8_t* bytes, std::size_t n) {
      if (std::memcmp(&values[at], bytes, n) == 0) return;
      for (std::size_t i = 0; i < n; ++i)
        demand(values[at + i] == bytes[i], what, ": byte ", at + i, " is ", +values[at + i], ", not ", +bytes[i]);
    });
  }

 private:
  static constexpr std::size_t length = 65'521;
  template <class F>
  void each(std::size_t begin, std::size_t end, F f) const {
    for (std::size_t at = begin; at < end;) {
      const std::size_t within = at % length, n = std::min(length - within, end - at);
      f(at, &m_bytes[within], n);
      at += n;
    }
  }
  std::vector<std::uint8_t> m_bytes;
};

template <class Comm>
void move_long_vectors(Comm& comm) {
  const support::fenced_memory memory(count);
  const std::span<std::uint8_t> values(reinterpret_cast<std::uint8_t*>(memory.bytes().data()), count);
  const int r = comm.rank();
  const pattern mine(1, r), sum(2, 1);
  const toroid::block all{0, count}, own = toroid::block_of(count, 2, r), others = toroid::block_of(count, 2, 1 - r);

  mine.fill(values);
  toroid::all_reduce(comm, values);
  sum.check(values, all, "all_reduce");
  mine.fill(values);
  toroid::all_reduce(comm, values, toroid::ring{});
  sum.check(values, all, "all_reduce round a ring");

  mine.fill(values);
  toroid::reduce_scatter(comm, values, values.subspan(own.begin, own.count));
  sum.check(values, own, "reduce_scatter");
  mine.check(values, others, "reduce_scatter, the rest");
  toroid::all_gather(comm, values);
  sum.check(values, all, "all_gather");

  mine.fill(values);
  toroid::broadcast(comm, values, 1);
  pattern(1, 1).check(values, all, "broadcast");
}

/// Whether there is room; says so if not.
bool can_run() {
  const std::size_t free = static_cast<std::size_t>(::sysconf(_SC_AVPHYS_PAGES)) * support::fenced_memory::page();
  if (!support::sanitized && free >= 3 * two_to_31) return true;
  WARN("skipped: it needs 6 GiB of free memory, and no sanitizer");
  return false;
}

const toroid::options patient{.timeout = std::chrono::minutes(5)};

}  // namespace

TEST_CASE("Threads move vectors longer than 2^31 bytes", "[large][slow]") {
  if (can_run())
    support::run_threads(
        2, [](auto& comm) { move_long_vectors(comm); }, patient);
}

TEST_CASE("Processes move vectors longer than 2^31 bytes", "[large][slow]") {
  if (can_run())
    support::run_processes(
        2, [](auto& comm) { move_long_vectors(comm); }, patient);
}
