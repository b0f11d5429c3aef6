// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace toroid {

/// The number that an integer of any type stands for. None is truncated, and no two that differ become the same: -1 is
/// not 2^64 - 1.
class exact_integer {
 public:
  template <std::integral I>
  requires(sizeof(I) <= sizeof(std::uint64_t)) constexpr exact_integer(I value) noexcept
      : m_bits(static_cast<std::uint64_t>(value)) {
    if constexpr (std::is_signed_v<I>) m_negative = value < 0;
  }

  friend constexpr bool operator==(const exact_integer& a, const exact_integer& b) noexcept = default;
  friend constexpr bool operator<(const exact_integer& a, const exact_integer& b) noexcept {
    return a.m_negative != b.m_negative ? a.m_negative : a.m_bits < b.m_bits;
  }

 private:
  std::uint64_t m_bits;  // of equal signs, two's complement is in order
  bool m_negative = false;
};

/// In place of a colour: the rank takes part in the split, and joins no group.
struct no_group_t {};
inline constexpr no_group_t no_group{};

/// What ranks that are to form a group have in common when a communicator is split: any integer, negative ones too, of
/// up to 64 bits, or no_group.
class colour {
 public:
  template <std::integral I>
  requires(sizeof(I) <= sizeof(std::uint64_t)) constexpr colour(I value) noexcept : m_value(value) {}
  constexpr colour(no_group_t) noexcept : m_is_none(true) {}

  /// Whether it is no_group.
  constexpr bool is_none() const noexcept { return m_is_none; }
  /// Whether ranks of these colours belong together; none does with none.
  constexpr bool joins(const colour& other) const noexcept {
    return !m_is_none && !other.m_is_none && m_value == other.m_value;
  }

 private:
  exact_integer m_value = 0;
  bool m_is_none = false;
};

static_assert(!std::is_convertible_v<double, colour> && !std::is_convertible_v<double, exact_integer>);
static_assert(!colour(-1).joins(~std::uint64_t{0}) && colour(5).joins(std::uint8_t{5}) && !colour(no_group).joins(0));
static_assert(!colour(std::int64_t{1} << 32 | 7).joins(7) && exact_integer(-1) < 0 && exact_integer(-2) < -1);

}  // namespace toroid
