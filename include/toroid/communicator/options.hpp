// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/error.hpp>
#include <toroid/transport/waiting.hpp>

#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <string>

namespace toroid {

/// What a communicator verifies in every call.
enum class check {
  none,   ///< nothing: ranks that disagree get undefined results or a timeout
  calls,  ///< all ranks make the same call: collective, operator, element type, count, algorithm, root
  data,   ///< and that every number that enters a reduction or is copied is finite: one read of the input more
};

/// Who goes on with collectives that have been started.
enum class progress {
  caller,  ///< whoever waits: inside pending::wait() and test(), and inside blocking collectives
  thread   ///< a thread of the communicator's own, from the first start on; the deadline counts while somebody waits
};

/// Options of a communicator; all ranks of a group must use the same.
///
///     toroid::run_threads(4, f, {.timeout = std::chrono::seconds(5)});
struct options {
  /// Longest wait for one peer; then timeout_error. More than zero.
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);
  /// What every call verifies.
  check checking = check::calls;
  /// How often a waiting rank looks at a flag before it lets others run; negative: chosen by whether there are more
  /// ranks than cores.
  int spins = -1;
  /// Size in bytes of one of a rank's hand-over regions, through which data travels that peers cannot reach in place;
  /// zero: chosen by the number of ranks.
  std::size_t region_bytes = 0;
  /// Address range in bytes that each rank's toroid::allocate takes from, between processes; it costs no memory until
  /// used. Zero: as much as the machine has memory.
  std::size_t shared_bytes = 0;
  /// Between processes: the directory of a tmpfs that segments shall lie in, without names; empty: anonymous memory.
  std::string directory = {};
  /// Who goes on with collectives that have been started.
  toroid::progress progress = toroid::progress::caller;
};

namespace detail {

inline int usable_cores() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/// @throws usage_error  naming the option
inline void check_options(int ranks, const options& o) {
  if (ranks < 1) throw usage_error("toroid: a group needs at least one rank, not " + std::to_string(ranks));
  if (ranks > 4096)
    throw usage_error("toroid: " + std::to_string(ranks) + " ranks are more than the 4096 that one host takes");
  if (o.timeout.count() <= 0) throw usage_error("toroid: options.timeout must be more than zero");
  if (o.region_bytes != 0 && o.region_bytes < 4096)
    throw usage_error("toroid: options.region_bytes must be at least 4096, or 0 to have it chosen");
  constexpr std::size_t most_region_bytes = std::size_t{1} << 32, most_shared_bytes = std::size_t{1} << 46;
  if (o.region_bytes > most_region_bytes)
    throw usage_error("toroid: options.region_bytes of " + std::to_string(o.region_bytes) + " is more than " +
                      std::to_string(most_region_bytes));
  if (o.shared_bytes > most_shared_bytes)
    throw usage_error("toroid: options.shared_bytes of " + std::to_string(o.shared_bytes) + " is more than " +
                      std::to_string(most_shared_bytes));
}

inline transport::waiting waiting_of(int ranks, const options& o) noexcept {
  const bool crowded = ranks > usable_cores();
  transport::waiting how;
  how.timeout = o.timeout.count();
  how.spins = o.spins >= 0 ? o.spins : crowded ? 100 : 20'000;
  how.yields = crowded ? 200 : 50;
  return how;
}

/// How a group that is split off waits: as the old one, but for what was asked for. That the new one is smaller does
/// not give it more cores.
inline transport::waiting waiting_of_split(transport::waiting how, const options& o) noexcept {
  how.timeout = o.timeout.count();
  if (o.spins >= 0) how.spins = o.spins;
  return how;
}

/// A region holds one piece of every block; pieces of 64 KiB stay in a core's own cache.
inline std::size_t region_bytes_of(int ranks, const options& o) noexcept {
  constexpr std::size_t kib = 1024;
  if (o.region_bytes != 0) return o.region_bytes;
  const std::size_t wanted = static_cast<std::size_t>(ranks) * 64 * kib;
  return wanted < 128 * kib ? 128 * kib : wanted > 1024 * kib ? 1024 * kib : wanted;
}

inline std::size_t shared_bytes_of(const options& o) noexcept {
  if (o.shared_bytes != 0) return o.shared_bytes;
  return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace detail
}  // namespace toroid
