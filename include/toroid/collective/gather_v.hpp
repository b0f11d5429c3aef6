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
void gather_v(communicator<Transport>& comm, std::span<const T> in, std::span<T> out, const N& counts,
              const D& displacements, int root, call_site at) {
  auto& session = access::session(comm);
  exchange_call call;
  call_identity& identity = call.identity;
  identity.collective = collective_kind::gather_v;
  identity.root = root;
  identity.at = at;
  check_root(root, comm.size(), identity);
  check_span(in, "the input", identity);
  const std::size_t ranks = static_cast<std::size_t>(comm.size());
  call.outgoing.resize(ranks);  // nothing, but to the root
  call.outgoing[static_cast<std::size_t>(root)] = {0, in.size()};
  call.incoming.resize(ranks);
  if (comm.rank() == root) {
    check_span(out, "the result", identity);
    call.incoming = blocks_of(counts, displacements, comm.size(), "result", identity);
    check_room(call.incoming, out.size(), "result", identity);
    check_apart(call.incoming, "result", identity);
    const block own = call.incoming[static_cast<std::size_t>(root)];
    check_own(in.size(), own.count, identity);
    check_overlap(in.data(), in.size_bytes(), out.data(), out.size_bytes(),
                  static_cast<std::ptrdiff_t>(own.begin * sizeof(T)), identity);
    call.result = reinterpret_cast<std::byte*>(out.data());
  }
  erase<T, void>(call, session.instructions(), nullptr);
  call.input = reinterpret_cast<const std::byte*>(in.data());
  run_blocks<schedule::direct_exchange>(session, call);
}

}  // namespace detail

/// Puts the blocks of all ranks together, on one of them; each block has its own length.
///
/// @tparam C  a communicator
/// @tparam I,O  contiguous ranges of the same element
/// @tparam N,D  contiguous ranges of integers
/// @param comm    the group; all its ranks make the same call
/// @param in      in: this rank's block, of any length and alignment. The root's may stand in place, where it belongs
///                in `out`; otherwise it is apart from it.
/// @param out     out, on the root: at least up to the end of the block that ends last; elements between blocks keep
///                their values. On the others neither read nor written: an empty span will do.
/// @param counts  in, on the root, comm.size() of them: elements that each rank brings. Not read on the others.
/// @param displacements  in, on the root, comm.size() of them: where in `out` each block begins. The blocks must not
///                overlap. Not read on the others.
/// @param root    who gets the blocks, in [0, comm.size()); the same on all ranks
/// @throws usage_error  for a root out of range and, on the root, another number of counts than ranks, negative ones, a
///         wrong length, blocks that overlap, a null buffer with elements, partial overlap; nothing has moved then
/// @throws mismatch_error  where a rank brings another number of elements than the root expects; over messages only
///         what is longer is noticed
/// @throws timeout_error, peer_lost  the communicator is broken then, the result's content undefined
///
/// Cost: 2 steps; every rank but the root sends its block. Collective; one thread at a time per communicator.
///
///     toroid::gather_v(comm, mine, all, std::array{2, 1, 3}, std::array{4, 0, 7}, 0);  // all.size() >= 10 on rank 0
template <group C, any_range I, any_range O, counts_range N, counts_range D>
void gather_v(C&& comm, I&& in, O&& out, const N& counts, const D& displacements, int root,
              call_site at = call_site::current()) {
  detail::check_buffer<I>();
  detail::check_output<O>();
  detail::check_same_elements<I, O>();
  const auto result = detail::as_span(out);
  using T = typename decltype(result)::element_type;
  detail::gather_v(comm, std::span<const T>(detail::as_span(in)), result, counts, displacements, root, at);
}

/// The same with blocks one behind the other, in rank order.
template <group C, any_range I, any_range O, counts_range N>
void gather_v(C&& comm, I&& in, O&& out, const N& counts, int root, call_site at = call_site::current()) {
  detail::check_buffer<I>();
  detail::check_output<O>();
  detail::check_same_elements<I, O>();
  const auto result = detail::as_span(out);
  using T = typename decltype(result)::element_type;
  detail::gather_v(comm, std::span<const T>(detail::as_span(in)), result, counts, detail::packed{}, root, at);
}

}  // namespace toroid
