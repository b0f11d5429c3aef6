// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/algorithms.hpp>
#include <toroid/collective/detail/policies.hpp>
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

template <class Group, class T, class First, class Second>
void reduce(Group& comm, std::span<const T> in, std::span<T> out, int root, const First& first, const Second& second,
            call_site at) {
  using policies = chosen_policies<std::decay_t<First>, std::decay_t<Second>>;  // a function becomes a pointer
  using algorithm_type = typename policies::algorithm;
  using operation_type = typename policies::operation;
  using carried_out = algorithm_for<algorithm_type, is_commutative<operation_type>>;
  check_policies<T, operation_type, algorithm_type>();
  static_assert(
      picks_by_length<carried_out> || requires { typename schedules_of<carried_out>::reduce; },
      "toroid: reduce is done by automatic, direct, ring or tree");
  const policies given = policies::of(first, second);
  auto& session = access::session(comm);
  collective_call call;
  call_identity& identity = call.identity;  // filled where it stays: a copy would wait for these stores
  identity.collective = collective_kind::reduce;
  identity.algorithm = algorithm_of<carried_out>;
  identity.count = in.size();
  identity.segment_bytes = segment_bytes_of(given.how);
  identity.root = root;
  identity.at = at;
  check_root(root, comm.size(), identity);
  check_span(in, "the input", identity);
  if (comm.rank() == root) {
    check_span(out, "the result", identity);
    if (in.size() != out.size())
      refuse(
          identity.collective, at,
          "the input has " + std::to_string(in.size()) + " elements, the root's result " + std::to_string(out.size()));
    check_overlap(in.data(), in.size_bytes(), out.data(), out.size_bytes(), 0, identity);
    call.result = reinterpret_cast<std::byte*>(out.data());
  }
  erase<T>(call, session.instructions(), &given.combine);
  call.input = reinterpret_cast<const std::byte*>(in.data());
  call.result_at_root = true;
  if constexpr (!picks_by_length<carried_out>) {
    run_long<typename schedules_of<carried_out>::reduce>(session, call);
  } else {
    if (call.bytes() <= transport::inline_bytes)
      run_short<schedule::one_shot_reduce>(session, call);
    else
      run_long<schedule::direct_reduce, schedule::direct_reduce, schedule::fetching_reduce>(session, call);
  }
}

}  // namespace detail

/// Combines the vectors of all ranks, element by element, and leaves the result on one of them.
///
/// @tparam C  a communicator
/// @tparam I,O  contiguous ranges of the same element
/// @param comm  the group; all its ranks make the same call
/// @param in    in: this rank's vector, the same length on all ranks, any alignment
/// @param out   out, on the root: the combined vector, as long as `in`; the same memory as `in` or apart from it. On
///              the others neither read nor written, whatever its length: an empty span will do.
/// @param root  who gets the result, in [0, comm.size()); the same on all ranks
/// @param first,second  an operator (default `sum`) and an algorithm (`automatic`, `direct`, `ring` or `tree`; default
///              `automatic`), in either order. Operators that are not known to commute combine in rank order, whoever
///              the root is.
/// @throws usage_error  for a root out of range, a wrong length, a null buffer with elements, partial overlap; nothing
///         has moved then
/// @throws mismatch_error, timeout_error, peer_lost  the communicator is broken then, the result's content undefined.
///         Ranks other than the root may learn of a disagreement one call late.
///
/// Cost: every rank but the root sends S bytes for a vector of S bytes; up to 4 KiB in one exchange. Collective; a
/// short message holds nobody up but the root. One thread at a time per communicator.
///
///     std::vector<float> total(comm.rank() == 0 ? losses.size() : 0);
///     toroid::reduce(comm, losses, total, 0);
template <group C, any_range I, any_range O, policy First = detail::not_given, policy Second = detail::not_given>
void reduce(C&& comm, I&& in, O&& out, int root, const First& first = {}, const Second& second = {},
            call_site at = call_site::current()) {
  detail::check_buffer<I>();
  detail::check_output<O>();
  detail::check_same_elements<I, O>();
  const auto result = detail::as_span(out);
  using T = typename decltype(result)::element_type;
  detail::reduce(comm, std::span<const T>(detail::as_span(in)), result, root, first, second, at);
}

/// The same, in place: the root's vector becomes the combined one, the others' stay as they are.
template <group C, any_range B, policy First = detail::not_given, policy Second = detail::not_given>
void reduce(C&& comm, B&& buffer, int root, const First& first = {}, const Second& second = {},
            call_site at = call_site::current()) {
  detail::check_output<B>();
  const auto elements = detail::as_span(buffer);
  using T = typename decltype(elements)::element_type;
  detail::reduce(comm, std::span<const T>(elements), elements, root, first, second, at);
}

}  // namespace toroid
