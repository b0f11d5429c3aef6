// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/algorithms.hpp>
#include <toroid/collective/detail/counts.hpp>
#include <toroid/collective/detail/exchange_call.hpp>
#include <toroid/collective/detail/policies.hpp>
#include <toroid/collective/detail/prepare.hpp>
#include <toroid/collective/detail/run.hpp>
#include <toroid/communicator/communicator.hpp>
#include <toroid/core/buffer.hpp>
#include <toroid/core/call_site.hpp>
#include <toroid/schedule/exchange.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

namespace toroid {

namespace detail {

template <class Transport, class T, class N, class Operation>
void reduce_scatter_v(communicator<Transport>& comm, std::span<const T> in, std::span<T> out, const N& counts,
                      const Operation& combine, call_site at) {
  check_policies<T, Operation, automatic>();
  auto& session = access::session(comm);
  exchange_call call;
  call_identity& identity = call.identity;
  identity.collective = collective_kind::reduce_scatter_v;
  identity.at = at;
  check_span(in, "the input", identity);
  check_span(out, "the result", identity);
  call.outgoing = blocks_of(counts, packed{}, comm.size(), "input", identity);
  call.incoming = {{0, out.size()}};
  identity.count = total(call.outgoing, identity);
  check_room(call.outgoing, in.size(), "input", identity);
  const block own = call.outgoing[static_cast<std::size_t>(comm.rank())];
  check_own(own.count, out.size(), identity);
  check_overlap(in.data(), in.size_bytes(), out.data(), out.size_bytes(),
                -static_cast<std::ptrdiff_t>(own.begin * sizeof(T)), identity);
  erase<T>(call, session.instructions(), &combine);
  call.input = reinterpret_cast<const std::byte*>(in.data());
  call.result = reinterpret_cast<std::byte*>(out.data());
  run_blocks<schedule::mapped_reduce_scatter>(session, call);
}

}  // namespace detail

/// Combines the vectors of all ranks, element by element, and leaves one block of the result on each rank; each block
/// has its own length.
///
/// @tparam C  a communicator
/// @tparam I,O  contiguous ranges of the same element
/// @tparam N  a contiguous range of integers
/// @param comm    the group; all its ranks make the same call
/// @param in      in: this rank's vector: the blocks for all ranks one behind the other, any alignment
/// @param out     out: counts[comm.rank()] elements. In place, it is that block of `in`; otherwise apart from it.
/// @param counts  in, comm.size() of them: elements for each rank; the same on all ranks
/// @param combine an operator; operands combine in rank order, so that any will do
/// @throws usage_error  for another number of counts than ranks, negative ones, a wrong length, a null buffer with
///         elements, partial overlap; nothing has moved then
/// @throws mismatch_error  also where ranks disagree about a count; over messages only what is longer is noticed
/// @throws timeout_error, peer_lost  the communicator is broken then, the result's content undefined
///
/// Cost: 2 steps; a rank sends its vector but for its own block. Collective; one thread at a time per communicator.
///
///     std::vector<float> mine(counts[comm.rank()]);
///     toroid::reduce_scatter_v(comm, gradient, mine, counts, toroid::average{});
template <group C, any_range I, any_range O, counts_range N, class Operation = sum>
void reduce_scatter_v(C&& comm, I&& in, O&& out, const N& counts, const Operation& combine = {},
                      call_site at = call_site::current()) {
  detail::check_buffer<I>();
  detail::check_output<O>();
  detail::check_same_elements<I, O>();
  static_assert(!algorithm<Operation>, "toroid: reduce_scatter_v takes an operator, and chooses its algorithm itself");
  const auto result = detail::as_span(out);
  using T = typename decltype(result)::element_type;
  const std::decay_t<Operation> operation = combine;  // a function becomes a pointer
  detail::reduce_scatter_v(comm, std::span<const T>(detail::as_span(in)), result, counts, operation, at);
}

}  // namespace toroid
