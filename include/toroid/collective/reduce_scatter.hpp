// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/algorithms.hpp>
#include <toroid/collective/detail/prepare.hpp>
#include <toroid/collective/detail/run.hpp>
#include <toroid/collective/detail/schedules.hpp>
#include <toroid/collective/detail/trailing_policies.hpp>
#include <toroid/collective/detail/travelling.hpp>
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

template <class Algorithm, class Session>
void run_reduce_scatter(Session& session, const collective_call& call) {
  if constexpr (!picks_by_length<Algorithm>) {
    run_long<typename schedules_of<Algorithm>::reduce_scatter>(session, call);
  } else {
    if (call.bytes() <= transport::inline_bytes)
      run_short<schedule::direct_reduce_scatter>(session, call);
    else
      run_long<schedule::direct_reduce_scatter>(session, call);
  }
}

template <class Group, class T, class... Given>
void reduce_scatter(Group& comm, std::span<const T> in, std::span<T> out, call_site line, const Given&... all_given) {
  using policies = trailing_policies<std::decay_t<Given>...>;  // a function becomes a pointer
  using algorithm_type = typename policies::algorithm;
  check_trailing_policies<T, policies>();
  static_assert(
      picks_by_length<algorithm_type> || requires { typename schedules_of<algorithm_type>::reduce_scatter; },
      "toroid: reduce_scatter is done by automatic, direct, ring or halving_doubling");
  const call_site at = policies::site(line, all_given...);
  const policies given = policies::of(all_given...);
  auto& session = access::session(comm);
  collective_call call;
  call_identity& identity = call.identity;  // filled where it stays: a copy would wait for these stores
  identity.collective = collective_kind::reduce_scatter;
  identity.algorithm = algorithm_of<algorithm_type>;
  identity.count = in.size();
  identity.segment_bytes = segment_bytes_of(given.how);
  identity.at = at;
  check_span(in, "the input", identity);
  check_span(out, "the result", identity);
  const block own = block_of(in.size(), comm.size(), comm.rank());
  if (out.size() != own.count)
    refuse(identity.collective, at,
           "the result has " + std::to_string(out.size()) + " elements, but this rank's block of " +
               std::to_string(in.size()) + " has " + std::to_string(own.count) + " (toroid::block_of)");
  check_overlap(in.data(), in.size_bytes(), out.data(), out.size_bytes(),
                -static_cast<std::ptrdiff_t>(own.begin * sizeof(T)), identity);
  call.result_is_block = true;
  if constexpr (travel<T, policies>::plain) {
    erase<T>(call, session.instructions(), &given.combine);
    call.input = reinterpret_cast<const std::byte*>(in.data());
    call.result = reinterpret_cast<std::byte*>(out.data());
    run_reduce_scatter<algorithm_type>(session, call);
  } else {
    check_runs_to_its_end<Group>();
    run_travelling(session, call, in, out, given,
                   [&](const collective_call& part) { run_reduce_scatter<algorithm_type>(session, part); });
  }
}

}  // namespace detail

/// Combines the vectors of all ranks, element by element, and leaves one block of the result on each rank.
///
/// @tparam C  a communicator
/// @tparam I,O  contiguous ranges of the same element
/// @param comm  the group; all its ranks make the same call
/// @param in    in: this rank's vector, the same length on all ranks, any alignment
/// @param out   out: block_of(in.size(), comm.size(), comm.rank()).count elements. In place, it is that block of `in`;
///              otherwise apart from it.
/// @param policies  in any order: an operator (default `sum`), an algorithm (default `automatic`), `wire<W>`,
///                  `accumulate<A>`, `require<level>`
/// @throws usage_error  for a wrong length, a null buffer with elements, partial overlap; nothing has moved then
/// @throws mismatch_error, timeout_error, peer_lost  the communicator is broken then, the result's content undefined
///
/// Cost: (p - 1)/p S bytes a rank for S bytes of input. Collective; one thread at a time per communicator.
///
///     std::vector<float> mine(toroid::block_of(g.size(), comm.size(), comm.rank()).count);
///     toroid::reduce_scatter(comm, g, mine);
template <group C, any_range I, any_range O, policy P0 = detail::not_given, policy P1 = detail::not_given,
          policy P2 = detail::not_given, policy P3 = detail::not_given, policy P4 = detail::not_given>
void reduce_scatter(C&& comm, I&& in, O&& out, const P0& p0 = {}, const P1& p1 = {}, const P2& p2 = {},
                    const P3& p3 = {}, const P4& p4 = {}, call_site at = call_site::current()) {
  detail::check_buffer<I>();
  detail::check_output<O>();
  detail::check_same_elements<I, O>();
  const auto result = detail::as_span(out);
  using T = typename decltype(result)::element_type;
  detail::reduce_scatter(comm, std::span<const T>(detail::as_span(in)), result, at, p0, p1, p2, p3, p4);
}

}  // namespace toroid
