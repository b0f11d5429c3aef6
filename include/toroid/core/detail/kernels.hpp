// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/detail/instruction_sets.hpp>
#include <toroid/core/detail/vector_loops.hpp>
#include <toroid/core/element.hpp>
#include <toroid/core/half.hpp>
#include <toroid/core/operators.hpp>
#include <toroid/core/reduction.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

/// Picks the reduction loop for an element type, an operator and an instruction set.
namespace toroid::detail {

/// The integer of a given size and sign, so that int64_t, long and long long share their loops.
template <std::size_t Size, bool Signed>
using integer_of = std::conditional_t<
    Size == 1, std::conditional_t<Signed, std::int8_t, std::uint8_t>,
    std::conditional_t<Size == 2, std::conditional_t<Signed, std::int16_t, std::uint16_t>,
                       std::conditional_t<Size == 4, std::conditional_t<Signed, std::int32_t, std::uint32_t>,
                                          std::conditional_t<Signed, std::int64_t, std::uint64_t>>>>;

/// Whether the order or the exact mean of the numbers matters, so that a sign does.
template <class Op>
inline constexpr bool regards_sign =
    std::is_same_v<Op, minimum> || std::is_same_v<Op, maximum> || std::is_same_v<Op, average>;

/// What a library operator on T amounts to: an operator on the lanes of a register, or no such thing.
template <class T, class Op>
struct lanes {
  static constexpr bool exist = false;
};
template <class T, class Op>
requires(std::is_integral_v<T> && sizeof(T) <= 8) struct lanes<T, Op> {
  static constexpr bool exist = true;
  using type = integer_of<sizeof(T), std::is_signed_v<T> && regards_sign<Op>>;
  using operation = Op;
};
/// Numbers that are 0 or 1: whatever another byte meant, the result is one of these.
template <class Op>
struct lanes<bool, Op> {
  static constexpr bool exist = true;
  static constexpr bool is_or = std::is_same_v<Op, sum> || std::is_same_v<Op, maximum> || std::is_same_v<Op, bit_or> ||
                                std::is_same_v<Op, logical_or>;
  using type = std::uint8_t;
  using operation =
      std::conditional_t<is_or, logical_or, std::conditional_t<std::is_same_v<Op, bit_xor>, bit_xor, logical_and>>;
};
template <class Op>
struct lanes<std::byte, Op> {
  static constexpr bool exist = true;
  using type = std::uint8_t;
  using operation = Op;
};
template <class T, class Op>
requires(std::is_same_v<T, float> || std::is_same_v<T, double>) struct lanes<T, Op> {
  static constexpr bool exist = true;
  using type = T;
  using operation = Op;
};
template <half T, class Op>
struct lanes<T, Op> {
  static constexpr bool exist = true;
  using type = as_half<T>;
  using operation = Op;
};

template <class T, class Op>
reduce_function lane_reduction_for([[maybe_unused]] instruction_set set) noexcept {
  if constexpr (std::is_same_v<Op, average> && std::is_integral_v<T>) {
#if defined(__x86_64__)
    if (set != instruction_set::baseline) return avx2::average_whole_numbers<T>;
#endif
    return baseline::average_whole_numbers<T>;
  } else {
#if defined(__x86_64__)
    if (set == instruction_set::avx512) return avx512::reduce<T, Op>;
    if (set == instruction_set::avx2) return avx2::reduce<T, Op>;
#endif
    return baseline::reduce<T, Op>;
  }
}

template <class T, class Op>
reduce_function reduction_for(instruction_set set) noexcept;

/// Arrays of Length elements each, as so many times more elements.
template <class T, std::size_t Length, class Op, instruction_set Set>
void reduce_components(const reduce_arguments& a) {
  reduce_arguments components = a;
  components.count *= Length;
  reduction_for<T, Op>(Set)(components);
}
template <class Op, class T, std::size_t Length>
reduce_function component_reduction_for([[maybe_unused]] instruction_set set, const std::array<T, Length>*) noexcept {
#if defined(__x86_64__)
  if (set == instruction_set::avx512) return reduce_components<T, Length, Op, instruction_set::avx512>;
  if (set == instruction_set::avx2) return reduce_components<T, Length, Op, instruction_set::avx2>;
#endif
  return reduce_components<T, Length, Op, instruction_set::baseline>;
}

/// The function that combines elements of type T by Op.
///
/// @tparam T an element
/// @tparam Op an operator of the library, or a functor (T, T) -> T that is passed to the function by its address
/// @param set one that this processor has, as detected_instruction_set() says
template <class T, class Op>
reduce_function reduction_for([[maybe_unused]] instruction_set set) noexcept {
  check_operator<Op, T>();
  if constexpr (is_library_operator<Op> && is_array_of<T>) {
    return component_reduction_for<Op>(set, static_cast<const T*>(nullptr));
  } else if constexpr (is_library_operator<Op> && lanes<T, Op>::exist) {
    return lane_reduction_for<typename lanes<T, Op>::type, typename lanes<T, Op>::operation>(set);
  } else {
    // No wider than AVX2: AVX-512 would also bring fused multiply-add, and with it other results of users' functors.
#if defined(__x86_64__)
    if (set != instruction_set::baseline) return avx2::reduce_tiled<T, Op>;
#endif
    return baseline::reduce_tiled<T, Op>;
  }
}

/// The function that copies its one source, `count` bytes of it, to its destinations. One that is the source stays
/// untouched.
inline reduce_function copy_for([[maybe_unused]] instruction_set set) noexcept {
#if defined(__x86_64__)
  if (set == instruction_set::avx512) return avx512::copy;
  if (set == instruction_set::avx2) return avx2::copy;
#endif
  return baseline::copy;
}

}  // namespace toroid::detail
