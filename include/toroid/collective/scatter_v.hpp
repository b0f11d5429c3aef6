// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/counts.hpp>
#include <toroid/collective/detail/exchange_call.hpp>
#include <toroid/collective/detail/prepare.hpp>
#include <toroid/collective/detail/run.hpp>
#include <toroid/communicator/communicator.hpp>
#include <toroid/core/buffer.hpp>
#include <toroid/core/call_site.hpp>
#include <toroid/schedule/exchange.hpp>

#include <cstddef>
#include <span>

namespace toroid {

namespace detail {

template <class Transport, class T, class N, class D>
void scatter_v(communicator<Transport>& comm, std::span<const T> in, std::span<T> out, const N& counts,
               const D& displacements, int root, call_site at) {
  auto& session = access::session(comm);
  exchange_call call;
  call_identity& identity = call.identity;
  identity.collective = collective_kind::scatter_v;
  identity.root = root;
  identity.at = at;
  check_root(root, comm.size(), identity);
  check_span(out, "the result", identity);
  const std::size_t ranks = static_cast<std::size_t>(comm.size());
  call.outgoing.resize(ranks);
  call.incoming.resize(ranks);  // nothing, but from the root
  call.incoming[static_cast<std::size_t>(root)] = {0, out.size()};
  if (comm.rank() == root) {
    check_span(in, "the input", identity);
    call.outgoing = blocks_of(counts, displacements, comm.size(), "input", identity);
    check_room(call.outgoing, in.size(), "input", identity);
    const block own = call.outgoing[static_cast<std::size_t>(root)];
    check_own(own.count, out.size(), identity);
    check_overlap(in.data(), in.size_bytes(), out.data(), out.size_bytes(),
                  -static_cast<std::ptrdiff_t>(own.begin * sizeof(T)), identity);
    call.input = reinterpret_cast<const std::byte*>(in.data());
  }
  erase<T, void>(call, session.instructions(), nullptr);
  call.result = reinterpret_cast<std::byte*>(out.data());
  run_blocks<schedule::direct_exchange>(session, call);
}

}  // namespace detail

/// Hands each rank its block of the root's vector; each block has its own length.
///
/// @tparam C  a communicator
/// @tparam I,O  contiguous ranges of the same element
/// @tparam N,D  contiguous ranges of integers
/// @param comm    the group; all its ranks make the same call
/// @param in      in, on the root: at least up to the end of the block that ends last, any alignment. On the others not
///                read: an empty span will do.
/// @param out     out: this rank's block, all of it. The root's may stand in place, where it is in `in`; otherwise it
///                is apart from it.
/// @param counts  in, on the root, comm.size() of them: elements for each rank. Not read on the others.
/// @param displacements  in, on the root, comm.size() of them: where in `in` each block begins; blocks may overlap. Not
///                read on the others.
/// @param root    whose vector, in [0, comm.size()); the same on all ranks
/// @throws usage_error  for a root out of range and, on the root, another number of counts than ranks, negative ones, a
///         wrong length, a null buffer with elements, partial overlap; nothing has moved then
/// @throws mismatch_error  where a rank expects another number of elements than the root has for it; over messages only
///         what is longer is noticed
/// @throws timeout_error, peer_lost  the communicator is broken then, the result's content undefined
///
/// Cost: 2 steps; the root sends all blocks but its own. Collective; one thread at a time per communicator.
///
///     toroid::scatter_v(comm, all, mine, std::array{2, 1, 3}, std::array{4, 0, 7}, 0);  // all.size() >= 10 on rank 0
template <group C, any_range I, any_range O, counts_range N, counts_range D>
void scatter_v(C&& comm, I&& in, O&& out, const N& counts, const D& displacements, int root,
               call_site at = call_site::current()) {
  detail::check_buffer<I>();
  detail::check_output<O>();
  detail::check_same_elements<I, O>();
  const auto result = detail::as_span(out);
  using T = typename decltype(result)::element_type;
  detail::scatter_v(comm, std::span<const T>(detail::as_span(in)), result, counts, displacements, root, at);
}

/// The same with blocks one behind the other, in rank order.
template <group C, any_range I, any_range O, counts_range N>
void scatter_v(C&& comm, I&& in, O&& out, const N& counts, int root, call_site at = call_site::current()) {
  detail::check_buffer<I>();
  detail::check_output<O>();
  detail::check_same_elements<I, O>();
  const auto result = detail::as_span(out);
  using T = typename decltype(result)::element_type;
  detail::scatter_v(comm, std::span<const T>(detail::as_span(in)), result, counts, detail::packed{}, root, at);
}

}  // namespace toroid
