// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/communicator.hpp>
#include <toroid/communicator/options.hpp>
#include <toroid/communicator/shm_set_up.hpp>
#include <toroid/communicator/split_shm.hpp>
#include <toroid/core/error.hpp>
#include <toroid/transport/shm.hpp>

#include <string>
#include <string_view>

namespace toroid {

namespace shm {

/// Joins processes of one host, however they were started, into a group over shared memory.
///
/// Rank 0 takes the name, the others find it; segments of memory are passed between them and have no names. When a
/// process dies, all that is its own goes with it. The name is per user and per network namespace; it stays taken as
/// long as rank 0's communicator lives, and a second job of that name is refused on all its ranks. Let names differ
/// between jobs that start at the same time (put the scheduler's job number into them).
///
/// @param name    1 to 64 characters, without null characters
/// @param rank    this process's rank, in [0, ranks); each rank once
/// @param ranks   number of ranks, the same in all processes
/// @param chosen  the same in all processes, but for the place of a directory; `timeout` bounds the set-up too
/// @return the communicator, once all ranks have theirs
/// @throws usage_error  for a wrong argument, or one that differs from rank 0's; system_error if the name is taken or
///         memory or descriptors are refused, on all ranks; timeout_error if not all ranks come in time, naming those
///         missing and, on rank 0, whom it has turned away; peer_lost if one dies meanwhile. Nothing is left behind.
///
/// Cost: two local sockets a rank during set-up, one on rank 0 afterwards; options.region_bytes times 4 of memory a
/// rank. Collective.
///
///     auto comm = toroid::shm::make_communicator("my-job", rank, ranks, {.timeout = 10s});
inline communicator<transport::shm> make_communicator(std::string_view name, int rank, int ranks,
                                                      const options& chosen = {}) {
  detail::check_options(ranks, chosen);
  if (rank < 0 || rank >= ranks)
    throw usage_error("toroid: shm::make_communicator: rank " + std::to_string(rank) + " is not one of " +
                      std::to_string(ranks));
  if (name.empty() || name.size() > 64 || name.find('\0') != std::string_view::npos)
    throw usage_error("toroid: shm::make_communicator: a name has 1 to 64 characters, none of them null");
  return detail::shm_set_up(name, rank, ranks, chosen).run();
}

}  // namespace shm
}  // namespace toroid
