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
#include <string>
#include <type_traits>

namespace toroid {

namespace detail {

template <class Group, class T, class Algorithm>
void all_gather(Group& comm, std::span<const T> in, std::span<T> out, const Algorithm& how, call_site at) {
  static_assert(
      picks_by_length<Algorithm> || requires { typename schedules_of<Algorithm>::all_gather; },
      "toroid: all_gather is done by automatic, direct, ring or halving_doubling");
  auto& session = access::session(comm);
  collective_call call;
  call_identity& identity = call.identity;  // filled where it stays: a copy would wait for these stores
  identity.collective = collective_kind::all_gather;
  identity.algorithm = algorithm_of<Algorithm>;
  identity.count = out.size();
  identity.segment_bytes = segment_bytes_of(how);
  identity.at = at;
  check_span(in, "the input", identity);
  check_span(out, "the result", identity);
  const block own = block_of(out.size(), comm.size(), comm.rank());
  if (in.size() != own.count)
    refuse(identity.collective, at,
           "the input has " + std::to_string(in.size()) + " elements, but this rank's block of " +
               std::to_string(out.size()) + " has " + std::to_string(own.count) + " (toroid::block_of)");
  check_overlap(in.data(), in.size_bytes(), out.data(), out.size_bytes(),
                static_cast<std::ptrdiff_t>(own.begin * sizeof(T)), identity);
  erase<T, void>(call, session.instructions(), nullptr);
  call.input = reinterpret_cast<const std::byte*>(in.data());
  call.result = reinterpret_cast<std::byte*>(out.data());
  call.input_is_block = true;
  if constexpr (!picks_by_length<Algorithm>) {
    run_long<typename schedules_of<Algorithm>::all_gather>(session, call);
  } else {
    if (call.bytes() <= transport::inline_bytes)
      run_short<schedule::direct_all_gather>(session, call);
    else
      run_long<schedule::direct_all_gather>(session, call);
  }
}

}  // namespace detail

/// Puts the blocks of all ranks together, on every rank.
///
/// @tparam C  a communicator
/// @tparam I,O  contiguous ranges of the same element
/// @param comm  the group; all its ranks make the same call
/// @param in    in: this rank's block, block_of(out.size(), comm.size(), comm.rank()).count elements. In place, it is
///              that block of `out`; otherwise apart from it.
/// @param out   out: all blocks in rank order; the same length on all ranks, any alignment
/// @param how   the algorithm
/// @throws usage_error  for a wrong length, a null buffer with elements, partial overlap; nothing has moved then
/// @throws mismatch_error, timeout_error, peer_lost  the communicator is broken then, the result's content undefined
///
/// Cost: (p - 1)/p S bytes a rank for S bytes of result. Collective; one thread at a time per communicator.
///
///     std::vector<int> ranks(comm.size());
///     toroid::all_gather(comm, std::array{comm.rank()}, ranks);
template <group C, any_range I, any_range O, algorithm Algorithm = automatic>
void all_gather(C&& comm, I&& in, O&& out, const Algorithm& how = {}, call_site at = call_site::current()) {
  detail::check_buffer<I>();
  detail::check_output<O>();
  detail::check_same_elements<I, O>();
  const auto result = detail::as_span(out);
  using T = typename decltype(result)::element_type;
  detail::all_gather(comm, std::span<const T>(detail::as_span(in)), result, how, at);
}

/// The same, in place: this rank's block already stands where block_of says.
template <group C, any_range B, algorithm Algorithm = automatic>
void all_gather(C&& comm, B&& buffer, const Algorithm& how = {}, call_site at = call_site::current()) {
  detail::check_output<B>();
  const auto all = detail::as_span(buffer);
  using T = typename decltype(all)::element_type;
  const auto& transport = detail::access::session(comm).transport();
  const block own = block_of(all.size(), transport.size(), transport.rank());
  detail::all_gather(comm, std::span<const T>(all).subspan(own.begin, own.count), all, how, at);
}

/// Refuses policies of reductions by name.
template <group C, any_range B, class... Given>
requires(detail::is_further_policy<Given> || ...) void all_gather(C&&, B&&, const Given&...) {
  static_assert(sizeof...(Given) == 0,
                "toroid: all_gather combines nothing: it takes an algorithm, but neither wire, accumulate nor require");
}

}  // namespace toroid
