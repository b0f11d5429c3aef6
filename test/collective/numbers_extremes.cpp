// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/broadcast.hpp>
#include <toroid/core/half.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

// minimum, maximum and their kind where ranks bring NaN, infinities, negative or unsigned numbers.

namespace {

using support::demand;

template <class T>
constexpr T number(double value) {
  if constexpr (toroid::half<T>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

template <class T>
bool is_nan(T value) {
  return std::isnan(static_cast<double>(value));
}

/// Whether all ranks hold the same bytes.
template <class T, class Comm>
bool same_everywhere(Comm& comm, const std::vector<T>& values) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  std::vector<std::byte> of_first(bytes.begin(), bytes.end());
  toroid::broadcast(comm, of_first, 0);
  return std::memcmp(of_first.data(), bytes.data(), bytes.size()) == 0;
}

/// Reduces what `of` brings on each rank, by each algorithm, short and long, and compares with `expected`.
///
/// @param of        of(rank, index)
/// @param expected  expected(index)
template <class T, class Op, class Of, class Expected>
void reduce(int ranks, const Op& op, Of of, Expected expected) {
  support::run_both(ranks, [&](auto& comm) {
    const auto one = [&](std::size_t count, const auto& how) {
      std::vector<T> values(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = of(comm.rank(), i);
      toroid::all_reduce(comm, values, op, how);
      for (std::size_t i = 0; i < count; ++i) {
        const T right = expected(i);
        const bool same = is_nan(right) ? is_nan(values[i]) : values[i] == right;
        demand(same, "element ", i, " of ", count, " on ", ranks, " ranks is ", +values[i], ", not ", +right);
      }
      demand(same_everywhere(comm, values), "ranks differ in ", count, " elements");
    };
    for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{5003}}) {
      one(count, toroid::automatic{});
      one(count, toroid::ring{});
      if (count == 1) continue;
      one(count, toroid::direct{.segment_bytes = 256});
      one(count, toroid::ring{.segment_bytes = 256});
    }
  });
}

/// One element for each rank that alone brings a NaN, beside numbers and beside infinities of either sign; one NaN that
/// all bring, then none.
template <class T, class Op>
void nan_wins(const Op& op) {
  for (const int ranks : {3, 4, 5}) {
    const std::size_t p = static_cast<std::size_t>(ranks);
    const std::size_t kinds = 3 * p + 2;
    const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    const auto of = [=](int rank, std::size_t index) {
      const std::size_t kind = index % kinds, r = static_cast<std::size_t>(rank);
      if (kind < p) return number<T>(kind == r ? nan : 1.0 + rank);
      if (kind < 2 * p) return number<T>(kind - p == r ? nan : infinity);
      if (kind < 3 * p) return number<T>(kind - 2 * p == r ? nan : -infinity);
      if (kind == 3 * p) return number<T>(nan);
      return number<T>(1.0 + rank);
    };
    const auto expected = [=](double best) {
      return [=](std::size_t index) { return number<T>(index % kinds <= 3 * p ? nan : best); };
    };
    reduce<T>(ranks, op, of, expected(std::is_same_v<Op, toroid::maximum> ? ranks : 1));
  }
}

/// Every element of every rank alike.
template <class T, class Op>
void all_alike(const std::vector<T>& contributions, const Op& op, T right) {
  reduce<T>(
      static_cast<int>(contributions.size()), op,
      [&](int rank, std::size_t) { return contributions[static_cast<std::size_t>(rank)]; },
      [=](std::size_t) { return right; });
}

template <class T>
void extremes_of_unsigned() {
  constexpr T most = std::numeric_limits<T>::max();
  all_alike<T>({0, most}, toroid::minimum{}, 0);
  all_alike<T>({0, most}, toroid::maximum{}, most);
}

}  // namespace

TEST_CASE("A NaN of any rank is the minimum and the maximum", "[numbers]") {
  nan_wins<float>(toroid::maximum{});
  nan_wins<float>(toroid::minimum{});
  nan_wins<double>(toroid::maximum{});
  nan_wins<double>(toroid::minimum{});
  nan_wins<toroid::float16>(toroid::maximum{});
  nan_wins<toroid::float16>(toroid::minimum{});
  nan_wins<toroid::bfloat16>(toroid::maximum{});
  nan_wins<toroid::bfloat16>(toroid::minimum{});
}

TEST_CASE("Unsigned numbers are compared as unsigned", "[numbers]") {
  extremes_of_unsigned<std::uint8_t>();
  extremes_of_unsigned<std::uint16_t>();
  extremes_of_unsigned<std::uint32_t>();
  extremes_of_unsigned<std::uint64_t>();
}

TEST_CASE("Only what ranks bring counts: negative maxima, infinite minima", "[numbers]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  all_alike<std::int8_t>({-5, -3}, toroid::maximum{}, -3);
  all_alike<float>({-5, -7, -3}, toroid::maximum{}, -3);
  all_alike<float>({-infinity, -infinity}, toroid::maximum{}, -infinity);
  all_alike<float>({infinity, infinity}, toroid::minimum{}, infinity);
  all_alike<std::uint8_t>({0xf0, 0x3c}, toroid::bit_and{}, 0x30);
  all_alike<int>({-2, 3, 5}, toroid::product{}, -30);
  all_alike<float>({-2, 3, 5}, toroid::product{}, -30);
}
