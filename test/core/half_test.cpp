// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <toroid/core/half.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace {

using toroid::bfloat16;
using toroid::float16;

/// The value of a finite 16-bit float by its definition: a significand times a power of two.
double value_of(std::uint16_t bits, int mantissa_bits) {
  const int exponent_bits = 15 - mantissa_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int significand = exponent == 0 ? mantissa : mantissa | 1 << mantissa_bits;
  const double magnitude = std::ldexp(significand, (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/// The last pattern that is a finite positive number.
constexpr std::uint16_t largest(int mantissa_bits) { return static_cast<std::uint16_t>(0x7fff - (1 << mantissa_bits)); }

template <class Half>
void check_all_patterns(int mantissa_bits) {
  const std::uint16_t infinity = static_cast<std::uint16_t>(largest(mantissa_bits) + 1);
  int wrong = 0;
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const float value = Half::from_bits(bits);
    const Half back(value);
    const std::uint16_t magnitude = bits & 0x7fff;
    if (magnitude > infinity) {
      wrong += !std::isnan(value) || !std::isnan(static_cast<float>(back));
      wrong += std::signbit(value) != (bits >= 0x8000);
    } else if (magnitude == infinity) {
      wrong += !std::isinf(value) || std::signbit(value) != (bits >= 0x8000) || back.bits != bits;
    } else {
      wrong += static_cast<double>(value) != value_of(bits, mantissa_bits) || back.bits != bits;
      wrong += std::signbit(value) != (bits >= 0x8000);
    }
  }
  CHECK(wrong == 0);
}

/// Rounds between neighbours as the standard says, with nothing but comparisons in double.
std::uint16_t nearest(float value, int mantissa_bits) {
  const double exact = std::fabs(static_cast<double>(value));
  std::uint16_t low = 0, high = static_cast<std::uint16_t>(largest(mantissa_bits) + 1);
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (value_of(middle, mantissa_bits) <= exact ? low : high) = middle;
  }
  const double below = exact - value_of(low, mantissa_bits);
  // Above the largest number the next one would be as far away as the one below it.
  const auto end = static_cast<std::uint16_t>(low == largest(mantissa_bits) ? low - 1 : high);
  const double step = std::fabs(value_of(end, mantissa_bits) - value_of(low, mantissa_bits));
  const bool up = below > step / 2 || (below == step / 2 && (low & 1) != 0);
  return static_cast<std::uint16_t>((up ? high : low) | (std::signbit(value) ? 0x8000 : 0));
}

template <class Half>
void check_rounding(int mantissa_bits) {
  int wrong = 0;
  const auto check = [&](float value) { wrong += Half(value).bits != nearest(value, mantissa_bits); };
  // All numbers, the ties between neighbours, and the floats next to those.
  for (std::uint16_t bits = 0; bits <= largest(mantissa_bits); ++bits) {
    const float here = Half::from_bits(bits);
    const double step =
        bits == largest(mantissa_bits)
            ? value_of(bits, mantissa_bits) - value_of(static_cast<std::uint16_t>(bits - 1), mantissa_bits)
            : value_of(static_cast<std::uint16_t>(bits + 1), mantissa_bits) - value_of(bits, mantissa_bits);
    const float tie = static_cast<float>(value_of(bits, mantissa_bits) + step / 2);
    for (const float middle : {here, tie})
      for (const float value : {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, 1e38f)}) {
        check(value);
        check(-value);
      }
  }
  std::mt19937 random(7);
  for (int i = 0; i < 200'000; ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(value)) check(value);
  }
  CHECK(wrong == 0);
}

TEST_CASE("every float16 is the float that its definition says, and comes back") { check_all_patterns<float16>(10); }
TEST_CASE("every bfloat16 is the float that its definition says, and comes back") { check_all_patterns<bfloat16>(7); }
TEST_CASE("float16 is rounded to nearest, ties to even") { check_rounding<float16>(10); }
TEST_CASE("bfloat16 is rounded to nearest, ties to even") { check_rounding<bfloat16>(7); }

TEST_CASE("halves at the ends of their range") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(float16(65504.0f).bits == 0x7bff);
  CHECK(float16(65519.996f).bits == 0x7bff);
  CHECK(float16(65520.0f).bits == 0x7c00);
  CHECK(float16(-1e30f).bits == 0xfc00);
  CHECK(float16(infinity).bits == 0x7c00);
  CHECK(float16(0x1p-24f).bits == 0x0001);
  CHECK(float16(0x1p-25f).bits == 0x0000);
  CHECK(float16(0x1.000002p-25f).bits == 0x0001);
  CHECK(float16(-0.0f).bits == 0x8000);
  CHECK(bfloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(bfloat16(std::numeric_limits<float>::denorm_min()).bits == 0x0000);
  CHECK(bfloat16(-0.0f).bits == 0x8000);
}

TEST_CASE("NaN stays NaN, also where its payload would be rounded away") {
  for (const std::uint32_t bits : {0x7f800001u, 0x7fffffffu, 0x7fc00000u, 0xff800001u, 0xffffffffu, 0x7f80ffffu}) {
    const float nan = std::bit_cast<float>(bits);
    CHECK(std::isnan(static_cast<float>(float16(nan))));
    CHECK(std::isnan(static_cast<float>(bfloat16(nan))));
    CHECK((float16(nan).bits >> 15) == (bits >> 31));
    CHECK((bfloat16(nan).bits >> 15) == (bits >> 31));
  }
}

TEST_CASE("halves compare and compute as float") {
  CHECK(float16(1.5f) < float16(2.0f));
  CHECK(float16(0.0f) == float16(-0.0f));
  CHECK_FALSE(float16(NAN) == float16(NAN));
  CHECK(float16(1.5f) * float16(2.0f) == 3.0f);
  CHECK(bfloat16(1.5f) + bfloat16(2.0f) == 3.5f);
  CHECK(static_cast<float>(bfloat16(float16(0.5f))) == 0.5f);
}

static_assert(float16(1.0f).bits == 0x3c00 && static_cast<float>(float16(1.0f)) == 1.0f);
static_assert(bfloat16(1.0f).bits == 0x3f80 && static_cast<float>(bfloat16(1.0f)) == 1.0f);
static_assert(static_cast<float>(float16(0x1p-24f)) == 0x1p-24f);
static_assert(!std::is_convertible_v<float, float16> && std::is_convertible_v<float16, float>);
static_assert(!toroid::half<std::uint16_t> && toroid::half<float16> && toroid::half<bfloat16>);

}  // namespace
