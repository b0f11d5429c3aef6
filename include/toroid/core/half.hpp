// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>

#include <cstdint>
#include <type_traits>

namespace toroid {

namespace detail {

/// IEEE binary16 to float: exact. A signalling NaN becomes quiet, as the hardware's conversion makes it.
TOROID_HOST_DEVICE constexpr float float_of_float16(std::uint16_t bits) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  std::uint32_t wide = 0;
  if (magnitude >= 0x7c00u) {  // infinity, NaN
    wide = 0x7f800000u | (magnitude & 0x3ffu) << 13 | (magnitude > 0x7c00u ? 0x400000u : 0u);
  } else if (magnitude >= 0x400u) {
    wide = (magnitude << 13) + 0x38000000u;  // exponents are biased by 127 instead of 15
  } else {
    wide = __builtin_bit_cast(std::uint32_t, static_cast<float>(magnitude) * 0x1p-24f);
  }
  return __builtin_bit_cast(float, sign | wide);
}

/// float to IEEE binary16, to nearest, ties to even; overflow gives infinity, NaN a quiet NaN with the upper payload.
TOROID_HOST_DEVICE constexpr std::uint16_t float16_of_float(float value) noexcept {
  const std::uint32_t wide = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t sign = wide >> 16 & 0x8000u;
  const std::uint32_t magnitude = wide & 0x7fffffffu;
  std::uint32_t narrow = 0;
  if (magnitude > 0x7f800000u) {
    narrow = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  } else if (magnitude >= 0x47800000u) {  // 2^16 and more
    narrow = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // normal: rounding up may carry into the exponent, up to infinity
    const std::uint32_t rebiased = magnitude - 0x38000000u;
    narrow = (rebiased + 0xfffu + (rebiased >> 13 & 1u)) >> 13;
  } else if (magnitude > 0x33000000u) {  // more than half of the least subnormal
    const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t shift = 126u - (magnitude >> 23);
    const std::uint32_t rest = mantissa & ((1u << shift) - 1u);
    const std::uint32_t tie = 1u << (shift - 1u);
    narrow = mantissa >> shift;
    if (rest > tie || (rest == tie && (narrow & 1u) != 0)) ++narrow;
  }
  return static_cast<std::uint16_t>(sign | narrow);
}

TOROID_HOST_DEVICE constexpr float float_of_bfloat16(std::uint16_t bits) noexcept {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}

/// float to bfloat16, to nearest, ties to even; NaN gives a quiet NaN with the upper payload.
TOROID_HOST_DEVICE constexpr std::uint16_t bfloat16_of_float(float value) noexcept {
  const std::uint32_t wide = __builtin_bit_cast(std::uint32_t, value);
  if ((wide & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(wide >> 16 | 0x40u);
  return static_cast<std::uint16_t>((wide + 0x7fffu + (wide >> 16 & 1u)) >> 16);
}

}  // namespace detail

/// IEEE binary16: 5 bits of exponent, 10 of mantissa.
///
/// A storage type: it converts to float by itself, exactly, so that arithmetic and comparisons are those of float;
/// the way back rounds (to nearest, ties to even) and must be asked for.
/// Source: IEEE 754-2019, 3.6.
struct float16 {
  std::uint16_t bits;

  float16() = default;
  TOROID_HOST_DEVICE constexpr explicit float16(float value) noexcept : bits(detail::float16_of_float(value)) {}
  TOROID_HOST_DEVICE constexpr operator float() const noexcept { return detail::float_of_float16(bits); }
  TOROID_HOST_DEVICE static constexpr float16 from_bits(std::uint16_t bits) noexcept {
    return __builtin_bit_cast(float16, bits);
  }
};

/// The upper half of a float: 8 bits of exponent, 7 of mantissa. A storage type like float16.
struct bfloat16 {
  std::uint16_t bits;

  bfloat16() = default;
  TOROID_HOST_DEVICE constexpr explicit bfloat16(float value) noexcept : bits(detail::bfloat16_of_float(value)) {}
  TOROID_HOST_DEVICE constexpr operator float() const noexcept { return detail::float_of_bfloat16(bits); }
  TOROID_HOST_DEVICE static constexpr bfloat16 from_bits(std::uint16_t bits) noexcept {
    return __builtin_bit_cast(bfloat16, bits);
  }
};

static_assert(std::is_trivially_copyable_v<float16> && std::is_trivial_v<float16> && sizeof(float16) == 2);
static_assert(std::is_trivially_copyable_v<bfloat16> && std::is_trivial_v<bfloat16> && sizeof(bfloat16) == 2);

/// Says of a 16-bit floating-point type which of the two formats it has. To reduce foreign ones, specialise it:
///
///     template <>
///     struct toroid::half_traits<__half> {
///       using type = toroid::float16;
///     };
template <class T>
struct half_traits {};
template <>
struct half_traits<float16> {
  using type = float16;
};
template <>
struct half_traits<bfloat16> {
  using type = bfloat16;
};
#if defined(__STDCPP_FLOAT16_T__)
template <>
struct half_traits<decltype(0.0f16)> {
  using type = float16;
};
#endif
#if defined(__STDCPP_BFLOAT16_T__)
template <>
struct half_traits<decltype(0.0bf16)> {
  using type = bfloat16;
};
#endif

/// The one of float16 and bfloat16 that has the same bits as T.
template <class T>
using as_half = typename half_traits<T>::type;

/// float16, bfloat16, and what half_traits maps to them.
template <class T>
concept half = requires {
  typename half_traits<T>::type;
}
&&sizeof(T) == 2 && std::is_trivially_copyable_v<T>;

namespace detail {

template <half T>
TOROID_HOST_DEVICE constexpr float widened(const T& value) noexcept {
  return static_cast<float>(__builtin_bit_cast(as_half<T>, value));
}
template <half T>
TOROID_HOST_DEVICE constexpr T rounded(float value) noexcept {
  return __builtin_bit_cast(T, as_half<T>(value));
}

}  // namespace detail
}  // namespace toroid
