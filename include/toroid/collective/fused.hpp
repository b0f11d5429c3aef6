// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/detail/fused_call.hpp>
#include <toroid/core/buffer.hpp>
#include <toroid/core/call_site.hpp>

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace toroid {

/// Several buffers of the caller's that one operation is to combine, each with its namesakes on the other ranks.
///
/// @tparam T  the types of their elements
template <element... T>
class fused_buffers {
 public:
  constexpr explicit fused_buffers(const std::array<detail::fused_part, sizeof...(T)>& parts) noexcept
      : m_parts(parts) {}
  constexpr const std::array<detail::fused_part, sizeof...(T)>& parts() const noexcept { return m_parts; }

 private:
  std::array<detail::fused_part, sizeof...(T)> m_parts;
};

/// Puts buffers together for one operation; refers to them.
///
/// @param buffers  any contiguous ranges, of the same element or of different ones, possibly empty; possibly none
///
///     toroid::all_reduce(comm, toroid::fused(weights, biases, loss));
template <any_range... B>
auto fused(B&&... buffers) noexcept {
  (detail::check_output<B>(), ...);
  return fused_buffers<std::ranges::range_value_t<B>...>(std::array<detail::fused_part, sizeof...(B)>{
      detail::fused_part_of(std::ranges::data(buffers), std::ranges::size(buffers))...});
}

/// Combines several buffers with their namesakes on all ranks, in place, as one operation.
///
/// With `direct` and `automatic` each has the bits that it would have by itself.
///
/// @tparam C  a communicator
/// @param comm     the group; all its ranks make the same call
/// @param buffers  from fused(): as many on all ranks, buffer by buffer of the same element and the same length; any
///                 alignment, none overlapping another
/// @param policies  as for one buffer; they must suit each type of element
/// @throws usage_error  for buffers that overlap (or one given twice), and as for one buffer; nothing has moved then
/// @throws mismatch_error  also where only the lengths of the buffers differ, not their sum; timeout_error, peer_lost:
///         the communicator is broken then, the buffers' contents undefined
///
/// Cost: short buffers of one type of element are copied into memory of the communicator, up to 4 MiB of it that it
/// keeps, and back, and take one call together: latency is paid once a type. Buffers of more than 8 KiB take a call
/// each, where they stand: copying them would cost more than a call. Collective; one thread at a time per communicator.
template <group C, element... T, policy P0 = detail::not_given, policy P1 = detail::not_given,
          policy P2 = detail::not_given, policy P3 = detail::not_given, policy P4 = detail::not_given>
void all_reduce(C&& comm, const fused_buffers<T...>& buffers, const P0& p0 = {}, const P1& p1 = {}, const P2& p2 = {},
                const P3& p3 = {}, const P4& p4 = {}, call_site at = call_site::current()) {
  detail::all_reduce_fused(comm, detail::fused_types<T...>{}, buffers.parts(), at, p0, p1, p2, p3, p4);
}

}  // namespace toroid
