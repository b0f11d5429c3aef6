// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <toroid/core/element.hpp>
#include <toroid/core/operators.hpp>

#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <set>
#include <string>

using namespace toroid;
using toroid::detail::element_code;
using toroid::detail::element_name;
using toroid::detail::operator_code;
using toroid::detail::operator_name;

namespace {

// What the operators mean, as constants: usable in constant expressions, without undefined behaviour.
static_assert(sum{}(2, 3) == 5 && product{}(2, 3) == 6 && minimum{}(2, 3) == 2 && maximum{}(2, 3) == 3);
static_assert(sum{}(std::int8_t{120}, std::int8_t{100}) == -36);
static_assert(sum{}(std::numeric_limits<int>::max(), 1) == std::numeric_limits<int>::min());
static_assert(product{}(std::uint16_t{0xffff}, std::uint16_t{0xffff}) == 1);
static_assert(product{}(std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}) ==
              std::numeric_limits<std::int64_t>::min());
static_assert(sum{}(true, true) && !product{}(true, false) && maximum{}(false, true) && !minimum{}(false, true));
static_assert(bit_and{}(0xF0, 0x3C) == 0x30 && bit_or{}(0xF0, 0x3C) == 0xFC && bit_xor{}(0xF0, 0x3C) == 0xCC);
static_assert(bit_and{}(std::byte{0xF0}, std::byte{0x3C}) == std::byte{0x30});
static_assert(logical_and{}(2, 4) == 1 && logical_and{}(2, 0) == 0 && logical_or{}(0.0, 0.5) == 1.0 &&
              logical_or{}(0, 0) == 0);
static_assert(minimum{}(0ull, ~0ull) == 0 && maximum{}(0ull, ~0ull) == ~0ull);
static_assert(average{}(1, 2) == 3 && average::divide(-4, 3) == -1 && average::divide(4, 3) == 1);
static_assert(average::divide(0xffffffffu, 3) == 0x55555555u && average::divide(10.0f, 4) == 2.5f);
static_assert(sum{}(std::array{1, 2}, std::array{3, 4}) == std::array{4, 6});
static_assert(average::divide(std::array{3, -5}, 2) == std::array{1, -2});
static_assert(sum{}(float16(1.0f), float16(2.0f)) == 3.0f && maximum{}(bfloat16(1.0f), bfloat16(2.0f)) == 2.0f);
static_assert(std::is_empty_v<sum> && std::is_empty_v<average> && std::is_empty_v<logical_or>);

struct multiply {
  template <class T>
  constexpr T operator()(const T& a, const T& b) const {
    return a * b;
  }
};
static_assert(is_commutative<sum> && is_commutative<average> && is_commutative<bit_xor> && is_commutative<logical_and>);
static_assert(!is_commutative<multiply> && is_commutative<commutative_operator<multiply>>);
static_assert(commutative(multiply{})(3, 4) == 12);
static_assert(toroid::detail::is_library_operator<sum> && !toroid::detail::is_library_operator<multiply> &&
              !toroid::detail::is_library_operator<commutative_operator<multiply>>);

template <class T>
void check_nan() {
  const T nan = std::numeric_limits<T>::quiet_NaN(), infinity = std::numeric_limits<T>::infinity();
  for (const T other : {T{1}, -infinity, infinity, nan}) {
    CHECK(std::isnan(minimum{}(nan, other)));
    CHECK(std::isnan(minimum{}(other, nan)));
    CHECK(std::isnan(maximum{}(nan, other)));
    CHECK(std::isnan(maximum{}(other, nan)));
  }
  CHECK(maximum{}(-infinity, T{-5}) == T{-5});
  CHECK(minimum{}(infinity, T{5}) == T{5});
  CHECK(logical_or{}(T{0}, nan) == T{1});
  CHECK(logical_and{}(T{-0.0}, nan) == T{0});
}

TEST_CASE("NaN is the minimum and the maximum of all") {
  check_nan<float>();
  check_nan<double>();
  check_nan<long double>();
  CHECK(std::isnan(static_cast<float>(maximum{}(float16(NAN), float16(1.0f)))));
  CHECK(std::isnan(static_cast<float>(minimum{}(bfloat16(1.0f), bfloat16(NAN)))));
}

TEST_CASE("complex numbers are added, multiplied and divided") {
  using complex = std::complex<float>;
  CHECK(sum{}(complex(1, 2), complex(3, 4)) == complex(4, 6));
  CHECK(product{}(complex(1, 2), complex(3, 4)) == complex(-5, 10));
  CHECK(average::divide(complex(4, 6), 2) == complex(2, 3));
}

TEST_CASE("codes of operators are different, and have names") {
  const std::set<std::uint32_t> codes = {
      operator_code<sum>(),         operator_code<product>(),   operator_code<minimum>(), operator_code<maximum>(),
      operator_code<average>(),     operator_code<bit_and>(),   operator_code<bit_or>(),  operator_code<bit_xor>(),
      operator_code<logical_and>(), operator_code<logical_or>()};
  CHECK(codes.size() == 10);
  CHECK(codes.count(0) == 0);
  CHECK(operator_code<multiply>() == 0);
  CHECK(std::string(operator_name(operator_code<sum>())) == "sum");
  CHECK(std::string(operator_name(operator_code<bit_xor>())) == "bit_xor");
  CHECK(std::string(operator_name(operator_code<logical_or>())) == "logical_or");
  CHECK(std::string(operator_name(0)) == "a functor");
  CHECK(std::string(operator_name(1000)) == "unknown operator");
}

struct pair_of_floats {
  float x, y;
};
struct pair_of_ints {
  std::int32_t x, y;
};
enum class colour : std::uint16_t { red };

TEST_CASE("codes of elements tell kinds and sizes apart, and have names") {
  const std::set<std::uint32_t> codes = {
      element_code<bool>(),          element_code<char>(),          element_code<std::int8_t>(),
      element_code<std::uint8_t>(),  element_code<std::int16_t>(),  element_code<std::uint16_t>(),
      element_code<std::int32_t>(),  element_code<std::uint32_t>(), element_code<std::int64_t>(),
      element_code<std::uint64_t>(), element_code<float>(),         element_code<double>(),
      element_code<float16>(),       element_code<bfloat16>(),      element_code<long double>(),
      element_code<pair_of_floats>()};
  CHECK(codes.size() == 16);
  CHECK(element_code<long>() == element_code<std::conditional_t<sizeof(long) == 8, long long, int>>());
  CHECK(element_code<std::byte>() == element_code<std::uint8_t>());
  CHECK(element_code<colour>() == element_code<std::uint16_t>());
  CHECK(element_code<pair_of_floats>() == element_code<pair_of_ints>());
  CHECK(element_code<pair_of_floats>() != element_code<std::complex<double>>());
  CHECK(element_code<pair_of_floats>() != element_code<std::array<double, 1>>());  // the same size, another alignment
  CHECK(std::string(element_name(element_code<float>())) == "float");
  CHECK(std::string(element_name(element_code<long long>())) == "int64");
  CHECK(std::string(element_name(element_code<unsigned char>())) == "uint8");
  CHECK(std::string(element_name(element_code<bfloat16>())) == "bfloat16");
  CHECK(std::string(element_name(element_code<float16>())) == "float16");
  CHECK(std::string(element_name(element_code<bool>())) == "bool");
  CHECK(std::string(element_name(element_code<pair_of_floats>())) == "struct");
}

}  // namespace
