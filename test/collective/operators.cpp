// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/reduce_scatter.hpp>
#include <toroid/core/half.hpp>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

// Every operator and every type through a collective, in pairs. The loops have all combinations elsewhere.

namespace {

using support::demand;

/// A small number, exact in every type, as are sums and products of four.
template <class T>
T number(int value) {
  if constexpr (toroid::half<T>)
    return T(static_cast<float>(value));
  else if constexpr (toroid::detail::is_array_of<T>)
    return {number<typename T::value_type>(value), number<typename T::value_type>(value + 1)};
  else if constexpr (std::is_constructible_v<T, float>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

template <class T>
T contribution(int rank, std::size_t index) {
  return number<T>(static_cast<int>((index + static_cast<std::size_t>(rank)) % 4));
}

/// The result of the element `index`, by a plain loop.
template <class T, class Op>
T by_a_loop(int ranks, std::size_t index, const Op& op) {
  T all = contribution<T>(0, index);
  for (int r = 1; r < ranks; ++r) all = op(all, contribution<T>(r, index));
  if constexpr (std::is_same_v<Op, toroid::average>) all = toroid::average::divide(all, ranks);
  return all;
}

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

/// Four ranks: sums of what they bring divide evenly where an average is taken of numbers that all add up to 6.
template <class T, class Op, class Algorithm>
void reduce(const Op& op, const Algorithm& how) {
  support::run_threads(4, [&](auto& comm) {
    for (const std::size_t count : {std::size_t{9}, std::size_t{1501}}) {
      const std::unique_ptr<T[]> in(new T[count]), out(new T[count]);
      const std::span<T> result(out.get(), count);
      for (std::size_t i = 0; i < count; ++i) in[i] = contribution<T>(comm.rank(), i);
      toroid::all_reduce(comm, std::span<const T>(in.get(), count), result, op, how);
      for (std::size_t i = 0; i < count; ++i)
        demand(same_bits(out[i], by_a_loop<T>(4, i, op)), "element ", i, " of ", count);
    }
  });
}

template <class T, class Op, class Algorithm>
void scatter(const Op& op, const Algorithm& how) {
  support::run_threads(4, [&](auto& comm) {
    for (const std::size_t count : {std::size_t{9}, std::size_t{1501}}) {
      const toroid::block own = toroid::block_of(count, comm.size(), comm.rank());
      const std::unique_ptr<T[]> in(new T[count]), out(new T[own.count]);
      for (std::size_t i = 0; i < count; ++i) in[i] = contribution<T>(comm.rank(), i);
      toroid::reduce_scatter(comm, std::span<const T>(in.get(), count), std::span<T>(out.get(), own.count), how, op);
      for (std::size_t i = 0; i < own.count; ++i)
        demand(same_bits(out[i], by_a_loop<T>(4, own.begin + i, op)), "element ", own.begin + i, " of ", count);
    }
  });
}

constexpr toroid::direct direct{};
constexpr toroid::ring ring{};

}  // namespace

TEST_CASE("Sums, products and averages of many types are those of a plain loop", "[operators]") {
  scatter<std::uint16_t>(toroid::sum{}, ring);
  scatter<double>(toroid::sum{}, direct);
  reduce<std::complex<float>>(toroid::sum{}, ring);
  scatter<std::array<double, 2>>(toroid::sum{}, ring);
  reduce<std::uint64_t>(toroid::product{}, direct);
  reduce<double>(toroid::average{}, ring);
  scatter<std::int16_t>(toroid::average{}, direct);
}

TEST_CASE("Minima and maxima of many types are those of a plain loop", "[operators]") {
  reduce<toroid::float16>(toroid::minimum{}, ring);
  scatter<std::int32_t>(toroid::maximum{}, direct);
}

TEST_CASE("Bits and truths of many types are those of a plain loop", "[operators]") {
  reduce<std::uint32_t>(toroid::bit_and{}, ring);
  scatter<std::byte>(toroid::bit_or{}, direct);
  reduce<std::int64_t>(toroid::bit_xor{}, direct);
  scatter<bool>(toroid::logical_and{}, ring);
  scatter<float>(toroid::logical_or{}, direct);
}
