// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/algorithms.hpp>
#include <toroid/collective/detail/prepare.hpp>
#include <toroid/collective/detail/run.hpp>
#include <toroid/collective/detail/schedules.hpp>
#include <toroid/collective/policies.hpp>
#include <toroid/communicator/communicator.hpp>
#include <toroid/core/buffer.hpp>
#include <toroid/core/call_site.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

namespace toroid {

namespace detail {

/// A root stores vectors from this size on past the caches of any machine that two ranks are likely to have.
inline constexpr std::size_t least_delivered_bytes = std::size_t{16} << 20;

template <class Group, class T, class Algorithm>
void broadcast(Group& comm, std::span<T> buffer, int root, const Algorithm& how, call_site at) {
  static_assert(
      picks_by_length<Algorithm> || requires { typename schedules_of<Algorithm>::broadcast; },
      "toroid: broadcast is done by automatic, direct, ring or tree");
  auto& session = access::session(comm);
  collective_call call;
  call_identity& identity = call.identity;  // filled where it stays: a copy would wait for these stores
  identity.collective = collective_kind::broadcast;
  identity.algorithm = algorithm_of<Algorithm>;
  identity.count = buffer.size();
  identity.segment_bytes = segment_bytes_of(how);
  identity.root = root;
  identity.at = at;
  check_span(buffer, "the buffer", identity);
  check_root(root, comm.size(), identity);
  erase<T, void>(call, session.instructions(), nullptr);
  call.input_at_root = true;
  call.input = reinterpret_cast<const std::byte*>(buffer.data());
  call.result = reinterpret_cast<std::byte*>(buffer.data());
  if constexpr (!picks_by_length<Algorithm>) {
    run_long<typename schedules_of<Algorithm>::broadcast>(session, call);
  } else {
    if (call.bytes() <= transport::inline_bytes)
      run_short<schedule::direct_broadcast>(session, call);
    else if (comm.size() == 2 && call.bytes() >= least_delivered_bytes)
      // The root stores past the caches, where it can: that costs less than reading what it has in its own.
      run_long<schedule::ring_broadcast, schedule::direct_broadcast>(session, call);
    else
      run_long<schedule::direct_broadcast>(session, call);
  }
}

}  // namespace detail

/// Copies the root's vector to all ranks.
///
/// @tparam C  a communicator
/// @tparam B  a contiguous range of elements
/// @param comm    the group; all its ranks make the same call
/// @param buffer  in, on the root: the vector; out, on the others: a copy. The same length on all ranks, any alignment.
/// @param root    whose vector, in [0, comm.size()); the same on all ranks
/// @param how     the algorithm
/// @throws usage_error  for a root out of range or a null buffer with elements; nothing has moved then
/// @throws mismatch_error, timeout_error, peer_lost  the communicator is broken then, the buffer's content undefined.
///         The root may learn of a disagreement one call late.
///
/// Cost: S bytes to each other rank, by the root (`direct`) or each by the one before (`ring`). Collective; a short
/// message does not hold the root up. One thread at a time per communicator.
///
///     toroid::broadcast(comm, weights, 0);
template <group C, any_range B, algorithm Algorithm = automatic>
void broadcast(C&& comm, B&& buffer, int root, const Algorithm& how = {}, call_site at = call_site::current()) {
  detail::check_output<B>();
  detail::broadcast(comm, detail::as_span(buffer), root, how, at);
}

/// Refuses policies of reductions by name.
template <group C, any_range B, class... Given>
requires(detail::is_further_policy<Given> || ...) void broadcast(C&&, B&&, int, const Given&...) {
  static_assert(sizeof...(Given) == 0,
                "toroid: broadcast combines nothing: it takes an algorithm, but neither wire, accumulate nor require");
}

}  // namespace toroid
