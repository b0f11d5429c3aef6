// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/algorithms.hpp>
#include <toroid/collective/detail/counts.hpp>
#include <toroid/collective/detail/exchange_call.hpp>
#include <toroid/collective/detail/prepare.hpp>
#include <toroid/collective/detail/run.hpp>
#include <toroid/collective/detail/schedules.hpp>
#include <toroid/communicator/communicator.hpp>
#include <toroid/core/buffer.hpp>
#include <toroid/core/call_site.hpp>
#include <toroid/schedule/exchange.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace toroid {

namespace detail {

template <class Transport, class T, class Algorithm>
void all_to_all(communicator<Transport>& comm, std::span<const T> in, std::span<T> out, const Algorithm& how,
                call_site at) {
  static_assert(picks_by_length<Algorithm>, "toroid: all_to_all is done by automatic or direct");
  auto& session = access::session(comm);
  exchange_call call;
  call_identity& identity = call.identity;
  identity.collective = collective_kind::all_to_all;
  identity.algorithm = algorithm_of<Algorithm>;
  identity.count = in.size();
  identity.segment_bytes = segment_bytes_of(how);
  identity.at = at;
  check_span(in, "the input", identity);
  check_span(out, "the result", identity);
  const std::size_t ranks = static_cast<std::size_t>(comm.size());
  if (in.size() != out.size())
    refuse(identity.collective, at,
           "the input has " + std::to_string(in.size()) + " elements, the result " + std::to_string(out.size()));
  if (in.size() % ranks != 0)
    refuse(identity.collective, at,
           "the input has " + std::to_string(in.size()) + " elements, which " + std::to_string(ranks) +
               " ranks cannot share evenly (toroid::all_to_all_v can)");
  check_distinct(in, out, identity);
  erase<T, void>(call, session.instructions(), nullptr);
  call.input = reinterpret_cast<const std::byte*>(in.data());
  call.result = reinterpret_cast<std::byte*>(out.data());
  const std::size_t each = in.size() / ranks;
  for (std::size_t r = 0; r < ranks; ++r) call.outgoing.push_back({r * each, each});
  call.incoming = call.outgoing;
  run_blocks<schedule::direct_exchange>(session, call);
}

template <class Transport, class T, class N, class D, class M, class E>
void all_to_all_v(communicator<Transport>& comm, std::span<const T> in, const N& in_counts, const D& in_displacements,
                  std::span<T> out, const M& out_counts, const E& out_displacements, call_site at) {
  auto& session = access::session(comm);
  exchange_call call;
  call_identity& identity = call.identity;
  identity.collective = collective_kind::all_to_all_v;
  identity.at = at;
  check_span(in, "the input", identity);
  check_span(out, "the result", identity);
  call.outgoing = blocks_of(in_counts, in_displacements, comm.size(), "input", identity);
  call.incoming = blocks_of(out_counts, out_displacements, comm.size(), "result", identity);
  check_room(call.outgoing, in.size(), "input", identity);
  check_room(call.incoming, out.size(), "result", identity);
  check_apart(call.incoming, "result", identity);
  const std::size_t own = static_cast<std::size_t>(comm.rank());
  check_own(call.outgoing[own].count, call.incoming[own].count, identity);
  check_distinct(in, out, identity);
  erase<T, void>(call, session.instructions(), nullptr);
  call.input = reinterpret_cast<const std::byte*>(in.data());
  call.result = reinterpret_cast<std::byte*>(out.data());
  run_blocks<schedule::direct_exchange>(session, call);
}

}  // namespace detail

/// Sends a different block to each rank: block d of rank s becomes block s of rank d. All blocks are equally long.
///
/// @tparam C  a communicator
/// @tparam I,O  contiguous ranges of the same element
/// @param comm  the group; all its ranks make the same call
/// @param in    in: one block for each rank, in rank order; the same length on all ranks, a multiple of comm.size();
///              any alignment
/// @param out   out: one block from each rank, in rank order; as long as `in`, and apart from it
/// @param how   `automatic` or `direct`
/// @throws usage_error  for a wrong length, a null buffer with elements, any overlap; nothing has moved then
/// @throws mismatch_error, timeout_error, peer_lost  the communicator is broken then, the result's content undefined
///
/// Cost: 2 steps, (p - 1)/p S bytes a rank for S bytes of input. Collective; one thread at a time per communicator.
///
///     std::vector<int> mine(comm.size(), comm.rank()), theirs(comm.size());
///     toroid::all_to_all(comm, mine, theirs);  // theirs[r] == r
template <group C, any_range I, any_range O, algorithm Algorithm = automatic>
void all_to_all(C&& comm, I&& in, O&& out, const Algorithm& how = {}, call_site at = call_site::current()) {
  detail::check_buffer<I>();
  detail::check_output<O>();
  detail::check_same_elements<I, O>();
  const auto result = detail::as_span(out);
  using T = typename decltype(result)::element_type;
  detail::all_to_all(comm, std::span<const T>(detail::as_span(in)), result, how, at);
}

/// Sends a different block to each rank, each of its own length.
///
/// @tparam C  a communicator
/// @tparam I,O  contiguous ranges of the same element
/// @tparam N,D,M,E  contiguous ranges of integers
/// @param comm    the group; all its ranks make the same call
/// @param in      in: at least up to the end of the block that ends last; any alignment
/// @param in_counts,in_displacements    in, comm.size() each: elements that go to each rank, and where in `in` they
///                begin. Both are this rank's own matter, but that a rank must expect what it is sent.
/// @param out     out: as above, and apart from `in`; elements between blocks keep their values
/// @param out_counts,out_displacements  in, comm.size() each: elements that come from each rank, and where in `out`
///                they go. These blocks must not overlap.
/// @throws usage_error  for another number of counts than ranks, negative ones, a buffer that is too short, blocks of
///         the result that overlap, input and result that overlap, an own block of two lengths; nothing has moved then
/// @throws mismatch_error  where a rank is sent another number of elements than it expects; over messages only what is
///         longer is noticed
/// @throws timeout_error, peer_lost  the communicator is broken then, the result's content undefined
///
/// Cost: 2 steps; a rank sends what is not for itself. Collective; one thread at a time per communicator.
///
///     toroid::all_to_all_v(comm, mine, in_counts, in_displacements, theirs, out_counts, out_displacements);
template <group C, any_range I, counts_range N, counts_range D, any_range O, counts_range M, counts_range E>
void all_to_all_v(C&& comm, I&& in, const N& in_counts, const D& in_displacements, O&& out, const M& out_counts,
                  const E& out_displacements, call_site at = call_site::current()) {
  detail::check_buffer<I>();
  detail::check_output<O>();
  detail::check_same_elements<I, O>();
  const auto result = detail::as_span(out);
  using T = typename decltype(result)::element_type;
  detail::all_to_all_v(comm, std::span<const T>(detail::as_span(in)), in_counts, in_displacements, result, out_counts,
                       out_displacements, at);
}

/// The same with blocks one behind the other, in rank order.
template <group C, any_range I, counts_range N, any_range O, counts_range M>
void all_to_all_v(C&& comm, I&& in, const N& in_counts, O&& out, const M& out_counts,
                  call_site at = call_site::current()) {
  detail::check_buffer<I>();
  detail::check_output<O>();
  detail::check_same_elements<I, O>();
  const auto result = detail::as_span(out);
  using T = typename decltype(result)::element_type;
  detail::all_to_all_v(comm, std::span<const T>(detail::as_span(in)), in_counts, detail::packed{}, result, out_counts,
                       detail::packed{}, at);
}

}  // namespace toroid
