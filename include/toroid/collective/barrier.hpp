// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/collective_call.hpp>
#include <toroid/collective/detail/run.hpp>
#include <toroid/communicator/communicator.hpp>
#include <toroid/core/call_site.hpp>
#include <toroid/core/detail/kernels.hpp>
#include <toroid/schedule/compose.hpp>

namespace toroid {

namespace detail {

template <class Group>
void barrier(Group& comm, call_site at) {
  auto& session = access::session(comm);
  collective_call call;
  call.identity.collective = collective_kind::barrier;
  call.identity.at = at;
  call.reduce = call.copy = copy_for(session.instructions());
  run_short<schedule::one_shot_all_reduce>(session, call);  // an all-reduce of nothing
}

}  // namespace detail

/// Returns once all ranks have called it.
///
/// @tparam C  a communicator
/// @param comm  the group; all its ranks make the same call
/// @throws mismatch_error, timeout_error, peer_lost  the communicator is broken then
///
/// Cost: one exchange without payload. Collective; one thread at a time per communicator. What a rank wrote before the
/// barrier can be read by its peers after it.
///
///     toroid::barrier(comm);
template <group C>
void barrier(C&& comm, call_site at = call_site::current()) {
  detail::barrier(comm, at);
}

}  // namespace toroid
