// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/random.hpp"

#include <toroid/core/detail/converting_loops.hpp>
#include <toroid/core/numbers.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

// Numbers turned into another type: run by run as one by one, at any address, by each instruction set; rounded once.

namespace {

using toroid::bfloat16;
using toroid::float16;
using toroid::detail::converted;
using toroid::detail::instruction_set;

template <class T>
T number(support::random_numbers& random) {
  const std::uint64_t bits = random.next();
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// All runs of up to 150 numbers, at odd addresses, with bytes around that must stay.
template <class From, class To>
void as_one_by_one() {
  support::random_numbers random(7);
  for (const instruction_set set : {instruction_set::baseline, toroid::detail::detected_instruction_set()}) {
    for (std::size_t count = 0; count < 150; ++count) {
      std::vector<std::byte> from(count * sizeof(From) + 3), to(count * sizeof(To) + 2, std::byte{0xa5});
      std::vector<To> right(count);
      for (std::size_t i = 0; i < count; ++i) {
        const From value = number<From>(random);
        std::memcpy(from.data() + 3 + i * sizeof(From), &value, sizeof value);
        right[i] = converted<To>(value);
      }
      toroid::detail::conversion_for<From, To>(set)(from.data() + 3, to.data() + 1, count);
      CHECK((count == 0 || std::memcmp(to.data() + 1, right.data(), count * sizeof(To)) == 0));
      CHECK((to.front() == std::byte{0xa5} && to.back() == std::byte{0xa5}));
    }
  }
}

}  // namespace

TEST_CASE("Runs of numbers are converted as one by one", "[numbers]") {
  as_one_by_one<float, bfloat16>();
  as_one_by_one<bfloat16, float>();
  as_one_by_one<float, float16>();
  as_one_by_one<float16, float>();
  as_one_by_one<std::int32_t, std::int64_t>();
  as_one_by_one<std::int64_t, std::int8_t>();
}

TEST_CASE("Single and double precision become halves in one rounding", "[numbers]") {
  // Just above a tie of bfloat16, by less than float can tell: by way of float it would be the tie, and go to even.
  const double above = 1.0 + 0x1p-8 + 0x1p-40, below = 1.0 + 3 * 0x1p-8 - 0x1p-40;
  CHECK(double{converted<bfloat16>(above)} == 1.0 + 0x1p-7);
  CHECK(double{converted<bfloat16>(-above)} == -1.0 - 0x1p-7);
  CHECK(double{converted<bfloat16>(below)} == 1.0 + 0x1p-7);
  CHECK(double{converted<bfloat16>(1.0 + 0x1p-8)} == 1.0);
  CHECK(double{converted<float16>(1.0 + 0x1p-11 + 0x1p-40)} == 1.0 + 0x1p-10);
  CHECK(std::isinf(double{converted<bfloat16>(1e300)}));
  CHECK(std::isinf(double{converted<float16>(65520.0)}));
  CHECK(double{converted<float16>(65519.999999999)} == 65504.0);
  CHECK(std::isnan(double{converted<bfloat16>(std::nan(""))}));
  CHECK(double{converted<bfloat16>(-std::numeric_limits<double>::infinity())} ==
        -std::numeric_limits<double>::infinity());
  CHECK(double{converted<double>(bfloat16(1.5f))} == 1.5);
}

TEST_CASE("Which numbers hold which", "[numbers]") {
  using toroid::detail::holds;
  STATIC_REQUIRE((holds<float, bfloat16>() && holds<float, float16>() && holds<double, float>()));
  STATIC_REQUIRE((!holds<bfloat16, float16>() && !holds<float16, bfloat16>() && !holds<float, double>()));
  STATIC_REQUIRE((holds<int, short>() && holds<int, unsigned short>() && holds<std::int64_t, std::uint32_t>()));
  STATIC_REQUIRE(
      (!holds<unsigned, short>() && !holds<int, unsigned>() && !holds<float, int>() && !holds<int, float>()));
  STATIC_REQUIRE((holds<toroid::detail::int128, std::int64_t>()));
}
