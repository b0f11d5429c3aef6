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
void all_gather_v(communicator<Transport>& comm, std::span<const T> in, std::span<T> out, const N& counts,
                  const D& displacements, call_site at) {
  auto& session = access::session(comm);
  exchange_call call;
  call_identity& identity = call.identity;
  identity.collective = collective_kind::all_gather_v;
  identity.at = at;
  check_span(in, "the input", identity);
  check_span(out, "the result", identity);
  call.outgoing = {{0, in.size()}};
  call.incoming = blocks_of(counts, displacements, comm.size(), "result", identity);
  identity.count = total(call.incoming, identity);
  check_room(call.incoming, out.size(), "result", identity);
  check_apart(call.incoming, "result", identity);
  const block own = call.incoming[static_cast<std::size_t>(comm.rank())];
  check_own(in.size(), own.count, identity);
  check_overlap(in.data(), in.size_bytes(), out.data(), out.size_bytes(),
                static_cast<std::ptrdiff_t>(own.begin * sizeof(T)), identity);
  erase<T, void>(call, session.instructions(), nullptr);
  call.input = reinterpret_cast<const std::byte*>(in.data());
  call.result = reinterpret_cast<std::byte*>(out.data());
  run_blocks<schedule::fetching_all_gather>(session, call);
}

}  // namespace detail

/// Puts the blocks of all ranks together, on every rank; each block has its own length.
///
/// @tparam C  a communicator
/// @tparam I,O  contiguous ranges of the same element
/// @tparam N,D  contiguous ranges of integers
/// @param comm    the group; all its ranks make the same call
/// @param in      in: this rank's block, counts[comm.rank()] elements, any alignment. It may stand in place, where it
///                belongs in `out`; otherwise it is apart from it.
/// @param out     out: at least up to the end of the block that ends last; elements between blocks keep their values
/// @param counts  in, comm.size() of them: elements that each rank brings; the same on all ranks
/// @param displacements  in, comm.size() of them: where in `out` each block begins; this rank's own matter. The blocks
///                must not overlap.
/// @throws usage_error  for another number of counts than ranks, negative ones, a wrong length, blocks that overlap, a
///         null buffer with elements, partial overlap; nothing has moved then
/// @throws mismatch_error  where a rank brings another number of elements than another expects; over messages only what
///         is longer is noticed
/// @throws timeout_error, peer_lost  the communicator is broken then, the result's content undefined
///
/// Cost: 2 steps; a rank sends its block to each of the others. Collective; one thread at a time per communicator.
///
///     toroid::all_gather_v(comm, mine, all, std::array{2, 1, 3}, std::array{4, 0, 7});  // all.size() >= 10
template <group C, any_range I, any_range O, counts_range N, counts_range D>
void all_gather_v(C&& comm, I&& in, O&& out, const N& counts, const D& displacements,
                  call_site at = call_site::current()) {
  detail::check_buffer<I>();
  detail::check_output<O>();
  detail::check_same_elements<I, O>();
  const auto result = detail::as_span(out);
  using T = typename decltype(result)::element_type;
  detail::all_gather_v(comm, std::span<const T>(detail::as_span(in)), result, counts, displacements, at);
}

/// The same with blocks one behind the other, in rank order.
template <group C, any_range I, any_range O, counts_range N>
void all_gather_v(C&& comm, I&& in, O&& out, const N& counts, call_site at = call_site::current()) {
  detail::check_buffer<I>();
  detail::check_output<O>();
  detail::check_same_elements<I, O>();
  const auto result = detail::as_span(out);
  using T = typename decltype(result)::element_type;
  detail::all_gather_v(comm, std::span<const T>(detail::as_span(in)), result, counts, detail::packed{}, at);
}

}  // namespace toroid
