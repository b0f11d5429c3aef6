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
void scatter(Group& comm, std::span<const T> in, std::span<T> out, int root, const Algorithm& how, call_site at) {
  static_assert(picks_by_length<Algorithm>, "toroid: scatter is done by automatic or direct");
  auto& session = access::session(comm);
  collective_call call;
  call_identity& identity = call.identity;  // filled where it stays: a copy would wait for these stores
  identity.collective = collective_kind::scatter;
  identity.algorithm = algorithm_of<Algorithm>;
  identity.segment_bytes = segment_bytes_of(how);
  identity.root = root;
  identity.at = at;
  check_root(root, comm.size(), identity);
  check_span(out, "the result", identity);
  identity.count = times_ranks<T>(out.size(), comm.size(), identity);
  if (comm.rank() == root) {
    check_span(in, "the input", identity);
    if (in.size() != identity.count)
      refuse(identity.collective, at,
             "the result has " + std::to_string(out.size()) + " elements, and the root's input " +
                 std::to_string(in.size()) + " instead of " + std::to_string(identity.count) +
                 ", as many for each of " + std::to_string(comm.size()) + " ranks");
    check_overlap(in.data(), in.size_bytes(), out.data(), out.size_bytes(),
                  -static_cast<std::ptrdiff_t>(static_cast<std::size_t>(root) * out.size_bytes()), identity);
    call.input = reinterpret_cast<const std::byte*>(in.data());
  }
  erase<T, void>(call, session.instructions(), nullptr);
  call.result = reinterpret_cast<std::byte*>(out.data());
  call.input_at_root = true;
  call.result_is_block = true;
  if (call.bytes() <= transport::inline_bytes)
    run_short<schedule::direct_scatter>(session, call);
  else
    run_long<schedule::direct_scatter>(session, call);
}

}  // namespace detail

/// Hands each rank its block of the root's vector. All blocks are equally long.
///
/// @tparam C  a communicator
/// @tparam I,O  contiguous ranges of the same element
/// @param comm  the group; all its ranks make the same call
/// @param in    in, on the root: all blocks in rank order, out.size() * comm.size() elements, any alignment. On the
///              others not read, whatever its length: an empty span will do.
/// @param out   out: this rank's block, the same length on all ranks. The root's may stand in place, where it is in
///              `in`; otherwise it is apart from it.
/// @param root  whose vector, in [0, comm.size()); the same on all ranks
/// @param how   `automatic` or `direct`
/// @throws usage_error  for a root out of range, a wrong length, a null buffer with elements, overlap; nothing has
///         moved then
/// @throws mismatch_error, timeout_error, peer_lost  the communicator is broken then, the result's content undefined.
///         The root may learn of a disagreement one call late.
///
/// Cost: the root sends (p - 1)/p S bytes for a vector of S bytes. Collective; a short message does not hold the root
/// up. One thread at a time per communicator.
///
///     std::array<float, 2> mine;
///     toroid::scatter(comm, all, mine, 0);  // all.size() == 2 * comm.size() on rank 0
template <group C, any_range I, any_range O, algorithm Algorithm = automatic>
void scatter(C&& comm, I&& in, O&& out, int root, const Algorithm& how = {}, call_site at = call_site::current()) {
  detail::check_buffer<I>();
  detail::check_output<O>();
  detail::check_same_elements<I, O>();
  const auto result = detail::as_span(out);
  using T = typename decltype(result)::element_type;
  detail::scatter(comm, std::span<const T>(detail::as_span(in)), result, root, how, at);
}

}  // namespace toroid
