// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/half.hpp>
#include <toroid/core/host_device.hpp>
#include <toroid/core/operators.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

/// Numbers that can be turned into one another, and what is lost by it.
namespace toroid::detail {

/// The integers that sums of 64-bit integers need: also where the standard library does not call them integers.
template <class T>
inline constexpr bool is_wide_integer = std::is_same_v<T, int128> || std::is_same_v<T, uint128>;

/// Integers but bool, and floating-point numbers.
template <class T>
concept number = (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) || half<T> || is_wide_integer<T>;

template <class T>
inline constexpr bool is_floating = std::is_floating_point_v<T> || half<T>;

template <class T>
inline constexpr bool is_signed_number = std::is_signed_v<T> || std::is_same_v<T, int128> || half<T>;

/// Bits of a number's value, without the sign.
template <number T>
constexpr int digits_of() noexcept {
  if constexpr (half<T>)
    return std::is_same_v<as_half<T>, bfloat16> ? 8 : 11;
  else if constexpr (is_wide_integer<T>)
    return std::is_same_v<T, int128> ? 127 : 128;
  else
    return std::numeric_limits<T>::digits;
}

template <number T>
constexpr int largest_exponent_of() noexcept {
  if constexpr (half<T>)
    return std::is_same_v<as_half<T>, bfloat16> ? 128 : 16;
  else if constexpr (std::is_floating_point_v<T>)
    return std::numeric_limits<T>::max_exponent;
  else
    return digits_of<T>();
}

/// Whether each value of T is one of Wide, both being integers or both floating-point numbers.
template <class Wide, class T>
constexpr bool holds() noexcept {
  if constexpr (!number<Wide> || !number<T>)
    return std::is_same_v<Wide, T>;
  else
    return is_floating<Wide> == is_floating<T> && digits_of<Wide>() >= digits_of<T>() &&
           largest_exponent_of<Wide>() >= largest_exponent_of<T>() && (is_signed_number<Wide> || !is_signed_number<T>);
}

/// The float next to a wider number that is odd where the number is none: rounding that once more, to a type with two
/// bits less or more, gives what rounding the number itself gives.
///
/// Source: S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
/// odd", IEEE Transactions on Computers 57 (2008).
template <class Wide>
TOROID_HOST_DEVICE constexpr float rounded_to_odd(Wide value) noexcept {
  const float near = static_cast<float>(value);
  if (static_cast<Wide>(near) == value || value != value) return near;
  std::uint32_t bits = __builtin_bit_cast(std::uint32_t, near);
  const bool too_far = value < 0 ? static_cast<Wide>(near) < value : static_cast<Wide>(near) > value;
  if (too_far) --bits;  // towards zero, also from infinity
  return __builtin_bit_cast(float, bits | 1u);
}

/// One number as another type. Floating-point numbers round to nearest, ties to even, once; what is too great becomes
/// infinity, NaN stays NaN, quiet. Integers wrap around.
template <number To, number From>
TOROID_HOST_DEVICE constexpr To converted(const From& value) noexcept {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (half<From>) {
    return converted<To>(widened(value));
  } else if constexpr (half<To>) {
    if constexpr (std::is_floating_point_v<From> && digits_of<From>() > digits_of<float>())
      return rounded<To>(rounded_to_odd(value));
    else
      return rounded<To>(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace toroid::detail
