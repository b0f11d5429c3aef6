// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/algorithms.hpp>
#include <toroid/collective/detail/prepare.hpp>
#include <toroid/collective/detail/run.hpp>
#include <toroid/collective/detail/schedules.hpp>
#include <toroid/communicator/communicator.hpp>
#include <toroid/core/buffer.hpp>
#include <toroid/core/call_site.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

namespace toroid {

namespace detail {

template <class Group, class T, class Algorithm>
void gather(Group& comm, std::span<const T> in, std::span<T> out, int root, const Algorithm& how, call_site at) {
  static_assert(picks_by_length<Algorithm>, "toroid: gather is done by automatic or direct");
  auto& session = access::session(comm);
  collective_call call;
  call_identity& identity = call.identity;  // filled where it stays: a copy would wait for these stores
  identity.collective = collective_kind::gather;
  identity.algorithm = algorithm_of<Algorithm>;
  identity.segment_bytes = segment_bytes_of(how);
  identity.root = root;
  identity.at = at;
  check_root(root, comm.size(), identity);
  check_span(in, "the input", identity);
  identity.count = times_ranks<T>(in.size(), comm.size(), identity);
  if (comm.rank() == root) {
    check_span(out, "the result", identity);
    if (out.size() != identity.count)
      refuse(identity.collective, at,
             "the input has " + std::to_string(in.size()) + " elements, and the root's result " +
                 std::to_string(out.size()) + " instead of " + std::to_string(identity.count) +
                 ", as many from each of " + std::to_string(comm.size()) + " ranks");
    check_overlap(in.data(), in.size_bytes(), out.data(), out.size_bytes(),
                  static_cast<std::ptrdiff_t>(static_cast<std::size_t>(root) * in.size_bytes()), identity);
    call.result = reinterpret_cast<std::byte*>(out.data());
  }
  erase<T, void>(call, session.instructions(), nullptr);
  call.input = reinterpret_cast<const std::byte*>(in.data());
  call.input_is_block = true;
  call.result_at_root = true;
  if (call.bytes() <= transport::inline_bytes)
    run_short<schedule::direct_gather>(session, call);
  else
    run_long<schedule::direct_gather, schedule::direct_gather, schedule::fetching_gather>(session, call);
}

}  // namespace detail

/// Puts the blocks of all ranks together, on one of them. All blocks are equally long.
///
/// @tparam C  a communicator
/// @tparam I,O  contiguous ranges of the same element
/// @param comm  the group; all its ranks make the same call
/// @param in    in: this rank's block, the same length on all ranks, any alignment. The root's may stand in place,
///              where it belongs in `out`; otherwise it is apart from it.
/// @param out   out, on the root: all blocks in rank order, in.size() * comm.size() elements. On the others neither
///              read nor written, whatever its length: an empty span will do.
/// @param root  who gets the blocks, in [0, comm.size()); the same on all ranks
/// @param how   `automatic` or `direct`
/// @throws usage_error  for a root out of range, a wrong length, a null buffer with elements, overlap; nothing has
///         moved then
/// @throws mismatch_error, timeout_error, peer_lost  the communicator is broken then, the result's content undefined.
///         Ranks other than the root may learn of a disagreement one call late.
///
/// Cost: every rank but the root sends its block. Collective; a short message holds nobody up but the root. One thread
/// at a time per communicator.
///
///     std::vector<int> ranks(comm.rank() == 0 ? comm.size() : 0);
///     toroid::gather(comm, std::array{comm.rank()}, ranks, 0);
template <group C, any_range I, any_range O, algorithm Algorithm = automatic>
void gather(C&& comm, I&& in, O&& out, int root, const Algorithm& how = {}, call_site at = call_site::current()) {
  detail::check_buffer<I>();
  detail::check_output<O>();
  detail::check_same_elements<I, O>();
  const auto result = detail::as_span(out);
  using T = typename decltype(result)::element_type;
  detail::gather(comm, std::span<const T>(detail::as_span(in)), result, root, how, at);
}

}  // namespace toroid
