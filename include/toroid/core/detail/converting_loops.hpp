// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/detail/instruction_sets.hpp>
#include <toroid/core/detail/kernels.hpp>
#include <toroid/core/detail/vector_loops.hpp>
#include <toroid/core/half.hpp>
#include <toroid/core/numbers.hpp>
#include <toroid/core/operators.hpp>
#include <toroid/core/reduction.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

/// Loops that turn numbers of one type into another, and that combine numbers in another type than they are stored in.
namespace toroid::detail {

namespace baseline {
#include <toroid/core/detail/converting_loops.inc>
}  // namespace baseline

// No wider than AVX2: AVX-512 would also bring fused multiply-add, and with it other results of users' functors.
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,f16c")
#endif
namespace avx2 {
#include <toroid/core/detail/converting_loops.inc>
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif  // x86-64

/// From where, where to, how many numbers.
using convert_function = void (*)(const std::byte*, std::byte*, std::size_t);

/// The function that turns numbers of one type into another. Neither needs to be aligned; they do not overlap.
template <number From, number To>
convert_function conversion_for([[maybe_unused]] instruction_set set) noexcept {
#if defined(__x86_64__)
  if (set != instruction_set::baseline) return avx2::convert<From, To>;
#endif
  return baseline::convert<From, To>;
}

/// Whether the loops that combine T anyway do so in A.
template <class T, class A, class Op>
inline constexpr bool combines_as = std::is_same_v<T, A>;
template <half T, class Op>
inline constexpr bool combines_as<T, float, Op> = is_library_operator<Op>;
template <half T, class Op>
inline constexpr bool combines_as<T, T, Op> = !is_library_operator<Op>;

/// The function that combines numbers stored as T in type A, by Op.
///
/// Averages of integers are sums in A, divided in it at the end: A must hold them.
template <class T, class A, class Op>
reduce_function reduction_through([[maybe_unused]] instruction_set set) noexcept {
  if constexpr (combines_as<T, A, Op> && !(std::is_same_v<Op, average> && !is_floating<T>)) {
    return reduction_for<T, Op>(set);
  } else {
    check_operator<Op, A>();
#if defined(__x86_64__)
    if (set != instruction_set::baseline) return avx2::reduce_accumulated<T, A, Op>;
#endif
    return baseline::reduce_accumulated<T, A, Op>;
  }
}

}  // namespace toroid::detail
