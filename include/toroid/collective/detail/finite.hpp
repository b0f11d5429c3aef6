// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/half.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace toroid::detail {

/// Finds the first element that is not a finite number: its index, or `count` if all are.
using flaw_finder = std::size_t (*)(const std::byte* elements, std::size_t count);

/// @tparam Word  unsigned integer of the numbers' size
/// @tparam Exponent  the bits that are all set in infinities and NaN, and only there
template <class Word, Word Exponent>
std::size_t first_not_finite(const std::byte* elements, std::size_t count) {
  constexpr std::size_t tile = 256;
  const auto word_at = [&](std::size_t i) {
    Word word;
    std::memcpy(&word, elements + i * sizeof(Word), sizeof(Word));
    return word;
  };
  std::size_t i = 0;
  for (; i + tile <= count; i += tile) {
    Word found = 0;
    for (std::size_t k = 0; k < tile; ++k) found |= static_cast<Word>((word_at(i + k) & Exponent) == Exponent);
    if (found != 0) break;
  }
  for (; i < count; ++i)
    if ((word_at(i) & Exponent) == Exponent) return i;
  return count;
}

/// Numbers that stand side by side in an element: two in a complex number.
template <class T>
concept complex_number = requires(const T& z) {
  typename T::value_type;
  { z.real() } -> std::convertible_to<typename T::value_type>;
  { z.imag() } -> std::convertible_to<typename T::value_type>;
}
&&sizeof(T) == 2 * sizeof(typename T::value_type);

template <class T>
std::size_t first_flawed_pair(const std::byte* elements, std::size_t count);

/// How to search elements of type T, or null where they hold no floating-point numbers that are known.
template <class T>
constexpr flaw_finder flaw_finder_for() noexcept {
  if constexpr (std::is_same_v<T, float>)
    return first_not_finite<std::uint32_t, 0x7f80'0000u>;
  else if constexpr (std::is_same_v<T, double>)
    return first_not_finite<std::uint64_t, 0x7ff0'0000'0000'0000u>;
  else if constexpr (half<T>)
    return first_not_finite < std::uint16_t, std::is_same_v<as_half<T>, bfloat16> ? 0x7f80u : 0x7c00u > ;
  else if constexpr (complex_number<T>)
    return flaw_finder_for<typename T::value_type>() != nullptr ? first_flawed_pair<typename T::value_type> : nullptr;
  else
    return nullptr;
}

template <class T>
std::size_t first_flawed_pair(const std::byte* elements, std::size_t count) {
  return flaw_finder_for<T>()(elements, 2 * count) / 2;
}

}  // namespace toroid::detail
