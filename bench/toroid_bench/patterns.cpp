// SPDX-License-Identifier: Apache-2.0
#include "patterns.hpp"

#include <toroid/core/half.hpp>

#include <algorithm>
#include <type_traits>

namespace bench {
namespace {

std::int64_t bits_of(element type) { return std::int64_t(std::min<std::size_t>(8 * size_of(type), 62)); }

/// All integers up to this one are exact.
std::int64_t exact_up_to(element type) {
  switch (type) {
    case element::float16:
      return 1 << 11;
    case element::bfloat16:
      return 1 << 8;
    case element::float32:
      return 1 << 24;
    case element::float64:
      return std::int64_t{1} << 53;
    default:
      return (std::int64_t{1} << (std::min<std::int64_t>(bits_of(type), 33) - 1)) - 1;
  }
}

bool is_signed(element type) { return type != element::uint8 && type != element::uint32 && type != element::uint64; }

/// Inputs of a sum are below this: the sum of all ranks is exact.
std::int64_t sum_modulus(const settings& s) {
  return std::clamp<std::int64_t>(exact_up_to(s.element) / s.ranks, 2, pattern::period);
}

/// Inputs of an average are a value below this and an even distance that sums up to a multiple of the ranks.
std::int64_t average_modulus(const settings& s) {
  return std::clamp<std::int64_t>(exact_up_to(s.element) / s.ranks - s.ranks, 2, pattern::period);
}

template <class T>
T element_of(std::int64_t value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return T(static_cast<float>(value));
}

template <class T>
patterns make(const settings& s) {
  patterns result;
  for (int r = 0; r < s.ranks; ++r)
    result.inputs.push_back(pattern::of<T>([&](std::size_t phase) { return element_of<T>(input_value(s, r, phase)); }));
  if (s.reduces())
    result.reduced = pattern::of<T>([&](std::size_t phase) { return element_of<T>(reduced_value(s, phase)); });
  return result;
}

}  // namespace

std::int64_t input_value(const settings& s, int rank, std::size_t phase) {
  const std::int64_t p = s.ranks, r = rank, i = std::int64_t(phase);
  if (!s.reduces()) return (i + 7 * r) % std::int64_t{pattern::period};
  switch (s.reduction) {
    case reduction::sum:
      return (i + 7 * r) % sum_modulus(s);
    case reduction::average:
      return i % average_modulus(s) + 2 * ((r + i) % p);
    case reduction::product:  // twos few enough for the narrowest exponent
      return (i + r) % std::max<std::int64_t>(4, p / 8 + 1) == 0 ? 2 : 1;
    case reduction::minimum:
    case reduction::maximum:
      return (5 * i + 13 * r) % std::int64_t{pattern::period} - (is_signed(s.element) ? 30 : 0);
    case reduction::bit_and:
      return ~(std::int64_t{1} << (i + r) % bits_of(s.element));
    case reduction::bit_or:
      return std::int64_t{1} << (i + 3 * r) % bits_of(s.element);
    case reduction::bit_xor:
      return (i + 1) * 0x9E3779B1 ^ (r + 1) * 0x85EBCA77;
    case reduction::logical_and:
      return (i + 3 * r) % std::min<std::int64_t>(2 * p + 1, pattern::period) == 0 ? 0 : 1 + i % 3;
    case reduction::logical_or:
      return (i + 3 * r) % std::min<std::int64_t>(2 * p + 1, pattern::period) == 0 ? 1 + i % 3 : 0;
  }
  return 0;
}

std::int64_t reduced_value(const settings& s, std::size_t phase) {
  std::int64_t value = input_value(s, 0, phase);
  const bool logical = s.reduction == reduction::logical_and || s.reduction == reduction::logical_or;
  if (logical && s.ranks > 1) value = value != 0;
  for (int r = 1; r < s.ranks; ++r) {
    const std::int64_t next = input_value(s, r, phase);
    switch (s.reduction) {
      case reduction::sum:
      case reduction::average:
        value += next;
        break;
      case reduction::product:
        value *= next;
        break;
      case reduction::minimum:
        value = std::min(value, next);
        break;
      case reduction::maximum:
        value = std::max(value, next);
        break;
      case reduction::bit_and:
        value &= next;
        break;
      case reduction::bit_or:
        value |= next;
        break;
      case reduction::bit_xor:
        value ^= next;
        break;
      case reduction::logical_and:
        value = value != 0 && next != 0;
        break;
      case reduction::logical_or:
        value = value != 0 || next != 0;
        break;
    }
  }
  return s.reduction == reduction::average ? value / s.ranks : value;
}

bool exact(const settings& s) {
  const std::int64_t limit = exact_up_to(s.element);
  if (s.reduction == reduction::sum) return s.ranks <= limit || is_integer(s.element);  // integers wrap on both sides
  if (s.reduction == reduction::average) return 2 * s.ranks <= limit;
  return true;
}

patterns make_patterns(const settings& s) {
  switch (s.element) {
    case element::int8:
      return make<std::int8_t>(s);
    case element::uint8:
      return make<std::uint8_t>(s);
    case element::int32:
      return make<std::int32_t>(s);
    case element::uint32:
      return make<std::uint32_t>(s);
    case element::int64:
      return make<std::int64_t>(s);
    case element::uint64:
      return make<std::uint64_t>(s);
    case element::float16:
      return make<toroid::float16>(s);
    case element::bfloat16:
      return make<toroid::bfloat16>(s);
    case element::float32:
      return make<float>(s);
    case element::float64:
      return make<double>(s);
  }
  return {};
}

}  // namespace bench
