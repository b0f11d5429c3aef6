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
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

namespace toroid {

namespace detail {

template <class Algorithm, class Session>
void run_all_reduce(Session& session, const collective_call& call) {
  static_assert(
      picks_by_length<Algorithm> || requires { typename schedules_of<Algorithm>::all_reduce; },
      "toroid: this algorithm names no schedule for all_reduce");
  if constexpr (!picks_by_length<Algorithm>) {
    run_long<typename schedules_of<Algorithm>::all_reduce>(session, call);
  } else {
    if (call.bytes() <= transport::inline_bytes)
      run_short<schedule::one_shot_all_reduce>(session, call);
    else if (session.transport().size() == 2)
      // Two ranks: what a staged exchange moves is the same in one step as in two.
      run_long<schedule::direct_all_reduce, schedule::one_shot_all_reduce>(session, call);
    else
      run_long<schedule::direct_all_reduce>(session, call);
  }
}

template <class Group, class T, class... Given>
void all_reduce(Group& comm, std::span<const T> in, std::span<T> out, call_site line, const Given&... all_given) {
  using policies = trailing_policies<std::decay_t<Given>...>;  // a function becomes a pointer
  using algorithm_type = typename policies::algorithm;
  using operation_type = typename policies::operation;
  using carried_out = algorithm_for<algorithm_type, is_commutative<operation_type>>;
  check_trailing_policies<T, policies>();
  const call_site at = policies::site(line, all_given...);
  const policies given = policies::of(all_given...);
  collective_call call;
  call_identity& identity = call.identity;  // filled where it stays: a copy would wait for these stores
  identity.collective = collective_kind::all_reduce;
  identity.algorithm = algorithm_of<carried_out>;
  identity.count = in.size();
  identity.segment_bytes = segment_bytes_of(given.how);
  identity.at = at;
  check_span(in, "the input", identity);
  check_span(out, "the result", identity);
  if (in.size() != out.size())
    refuse(identity.collective, at,
           "the input has " + std::to_string(in.size()) + " elements, the result " + std::to_string(out.size()));
  check_overlap(in.data(), in.size_bytes(), out.data(), out.size_bytes(), 0, identity);
  auto& session = access::session(comm);
  if constexpr (std::is_same_v<algorithm_type, torus_2d>)
    identity.rows = grid_of(given.how, session.transport().size(), identity).rows;
  if constexpr (travel<T, policies>::plain) {
    erase<T>(call, session.instructions(), &given.combine);
    call.input = reinterpret_cast<const std::byte*>(in.data());
    call.result = reinterpret_cast<std::byte*>(out.data());
    run_all_reduce<carried_out>(session, call);
  } else {
    check_runs_to_its_end<Group>();
    run_travelling(session, call, in, out, given,
                   [&](const collective_call& part) { run_all_reduce<carried_out>(session, part); });
  }
}

}  // namespace detail

/// Combines the vectors of all ranks, element by element, and leaves the result on every rank; in place.
///
/// The result is the same, bit for bit, on all ranks and in every run (see the algorithm's determinism level).
///
/// @tparam C  a communicator
/// @tparam B  a contiguous range of elements
/// @param comm    the group; all its ranks make the same call
/// @param buffer  in: this rank's vector; out: the combined one. Any alignment; the same number of elements on all
///                ranks, possibly none. Vectors in memory from toroid::allocate are read and written in place by peers.
/// @param policies  in any order: an operator (default `sum`), an algorithm (default `automatic`), `wire<W>`,
///                  `accumulate<A>`, `require<level>`
/// @throws usage_error  for a null buffer with elements, for a grid that does not fit the ranks; nothing has moved then
/// @throws mismatch_error, timeout_error, peer_lost  the communicator is broken then, the buffer's content undefined
///
/// Cost: see the algorithms. Collective; one thread at a time per communicator.
///
///     std::vector<float> gradient(1000, float(comm.rank()));
///     toroid::all_reduce(comm, gradient, toroid::average{});
template <group C, any_range B, policy P0 = detail::not_given, policy P1 = detail::not_given,
          policy P2 = detail::not_given, policy P3 = detail::not_given, policy P4 = detail::not_given>
void all_reduce(C&& comm, B&& buffer, const P0& p0 = {}, const P1& p1 = {}, const P2& p2 = {}, const P3& p3 = {},
                const P4& p4 = {}, call_site at = call_site::current()) {
  detail::check_output<B>();
  const auto elements = detail::as_span(buffer);
  using T = typename decltype(elements)::element_type;
  detail::all_reduce(comm, std::span<const T>(elements), elements, at, p0, p1, p2, p3, p4);
}

/// The same, out of place: the input stays as it is.
///
/// @param in   in: this rank's vector
/// @param out  out: the combined one; as many elements as `in`; the same memory or apart, not overlapping in part
/// @throws usage_error  also for different lengths and for partial overlap
template <group C, any_range I, any_range O, policy P0 = detail::not_given, policy P1 = detail::not_given,
          policy P2 = detail::not_given, policy P3 = detail::not_given, policy P4 = detail::not_given>
void all_reduce(C&& comm, I&& in, O&& out, const P0& p0 = {}, const P1& p1 = {}, const P2& p2 = {}, const P3& p3 = {},
                const P4& p4 = {}, call_site at = call_site::current()) {
  detail::check_buffer<I>();
  detail::check_output<O>();
  detail::check_same_elements<I, O>();
  const auto result = detail::as_span(out);
  using T = typename decltype(result)::element_type;
  detail::all_reduce(comm, std::span<const T>(detail::as_span(in)), result, at, p0, p1, p2, p3, p4);
}

}  // namespace toroid
