// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/reduce_scatter.hpp>
#include <toroid/core/half.hpp>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

// Sums, averages and flags at the ends of what a type holds.

namespace {

using support::demand;

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

/// Every element of rank r is contributions[r]; short and long vectors, in place.
///
/// (Arrays rather than vectors: a vector of bool packs its elements.)
template <class T, std::size_t Ranks, class Op, class... Algorithms>
void all_alike(const T (&contributions)[Ranks], const Op& op, T right, const Algorithms&... algorithms) {
  support::run_both(static_cast<int>(Ranks), [&](auto& comm) {
    const auto one = [&](const auto& how) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{33}, std::size_t{5003}}) {
        const std::unique_ptr<T[]> values(new T[count]);
        std::fill_n(values.get(), count, contributions[comm.rank()]);
        toroid::all_reduce(comm, std::span<T>(values.get(), count), op, how);
        for (std::size_t i = 0; i < count; ++i)
          demand(same_bits(values[i], right), "element ", i, " of ", count, " is ", +values[i], ", not ", +right);
      }
    };
    (one(algorithms), ...);
  });
}

constexpr toroid::automatic automatic{};
constexpr toroid::ring ring{};
constexpr toroid::direct short_pieces{.segment_bytes = 64};

toroid::float16 half(float value) { return toroid::float16(value); }

/// With one rank every operator gives back what it got.
template <class Op, class Comm, class Algorithm>
void alone(Comm& comm, const Op& op, const Algorithm& how) {
  for (std::size_t count = 1; count <= 71; ++count) {
    const std::size_t n = count == 71 ? 4097 : count;
    std::vector<toroid::bfloat16> in(n), out(n, toroid::bfloat16(-1.0f));
    for (std::size_t i = 0; i < n; ++i) in[i] = toroid::bfloat16(static_cast<float>(i % 200 + 1));
    const std::vector<toroid::bfloat16> before = in;
    toroid::all_reduce(comm, in, out, op, how);
    for (std::size_t i = 0; i < n; ++i)
      demand(same_bits(out[i], before[i]), "element ", i, " of ", n, " alone is ", +out[i]);
    toroid::all_reduce(comm, in, op, how);
    for (std::size_t i = 0; i < n; ++i)
      demand(same_bits(in[i], before[i]), "element ", i, " of ", n, " in place is ", +in[i]);
  }
}

}  // namespace

TEST_CASE("Sums of integers wrap around", "[numbers]") {
  all_alike<std::int8_t>({120, 100}, toroid::sum{}, -36, automatic, ring);
  all_alike<std::uint8_t>({200, 100}, toroid::sum{}, 44, automatic, ring);
  all_alike<std::int32_t>({INT_MAX, 1}, toroid::sum{}, INT_MIN, automatic, ring);
}

TEST_CASE("Of bool, a sum and a maximum are or, a product and a minimum are and", "[numbers]") {
  all_alike<bool>({true, true, true}, toroid::sum{}, true, automatic, ring);
  all_alike<bool>({false, true, false}, toroid::sum{}, true, automatic, ring);
  all_alike<bool>({false, false, false}, toroid::sum{}, false, automatic, ring);
  all_alike<bool>({true, true, true}, toroid::product{}, true, automatic, ring);
  all_alike<bool>({true, false, true}, toroid::product{}, false, automatic, ring);
  all_alike<bool>({true, false, true}, toroid::minimum{}, false, automatic, ring);
  all_alike<bool>({true, true, true}, toroid::minimum{}, true, automatic, ring);
  all_alike<bool>({false, false, true}, toroid::maximum{}, true, automatic, ring);
  all_alike<bool>({false, false, false}, toroid::maximum{}, false, automatic, ring);
}

TEST_CASE("A flag raised by 256 ranks is raised", "[numbers]") {
  // As a sum of bytes it would be 0.
  support::run_threads(256,
                       [](auto& comm) {
                         bool flags[3] = {true, comm.rank() == 77, false};
                         toroid::all_reduce(comm, flags);
                         demand(flags[0] && flags[1] && !flags[2], "rank ", comm.rank(), " has ", flags[0], flags[1],
                                flags[2]);
                         unsigned char byte = 1;
                         std::memcpy(&byte, &flags[0], 1);
                         demand(byte == 1, "true is stored as ", int{byte});
                       },
                       {.region_bytes = 4096});
}

TEST_CASE("Averages of integers are cut off towards zero", "[numbers]") {
  all_alike<std::int32_t>({7, 8, 9}, toroid::average{}, 8, automatic, short_pieces);
  all_alike<std::int32_t>({1, 1, 2}, toroid::average{}, 1, automatic, short_pieces);
  all_alike<std::int32_t>({-1, -1, -2}, toroid::average{}, -1, automatic, short_pieces);
  all_alike<std::int32_t>({INT_MAX, INT_MAX, INT_MAX - 3}, toroid::average{}, INT_MAX - 1, automatic, short_pieces);
}

TEST_CASE("Each algorithm does each operator", "[numbers]") {
  constexpr float one_to_four[] = {1, 2, 3, 4};
  constexpr toroid::direct direct{}, short_segments{.segment_bytes = 128};
  constexpr toroid::ring short_arcs{.segment_bytes = 128};
  all_alike<float>(one_to_four, toroid::sum{}, 10, automatic, direct, short_segments, ring, short_arcs);
  all_alike<float>(one_to_four, toroid::average{}, 2.5, automatic, direct, short_segments, ring, short_arcs);
  all_alike<float>(one_to_four, toroid::minimum{}, 1, automatic, direct, short_segments, ring, short_arcs);
  all_alike<float>(one_to_four, toroid::maximum{}, 4, automatic, direct, short_segments, ring, short_arcs);
  all_alike<float>(one_to_four, toroid::product{}, 24, automatic, direct, short_segments, ring, short_arcs);
}

TEST_CASE("With one rank every result is the input, to the last element", "[numbers]") {
  support::run_both(1, [](auto& comm) {
    const auto by_all = [&](const auto& op) {
      alone(comm, op, automatic);
      alone(comm, op, short_pieces);
      alone(comm, op, ring);
    };
    by_all(toroid::average{});
    by_all(toroid::sum{});
    by_all(toroid::product{});
    by_all(toroid::minimum{});
    by_all(toroid::maximum{});
  });
}

TEST_CASE("Averages of halves neither overflow nor vanish", "[numbers]") {
  const float tiny = 0x1p-24f, big = 16384.0f;
  for (const float value : {big, tiny}) {
    toroid::float16 alike[8];
    std::fill_n(alike, 8, half(value));
    all_alike(alike, toroid::average{}, half(value), automatic, short_pieces);
  }
  support::run_threads(8, [&](auto& comm) {
    for (const std::size_t count : {std::size_t{10}, std::size_t{3001}}) {
      std::vector<toroid::float16> mixed(count), block(toroid::block_of(count, 8, comm.rank()).count);
      for (std::size_t i = 0; i < count; ++i) mixed[i] = half(i % 2 == 0 ? big : tiny);
      toroid::reduce_scatter(comm, mixed, block, toroid::average{});
      const std::size_t begin = toroid::block_of(count, 8, comm.rank()).begin;
      for (std::size_t i = 0; i < block.size(); ++i)
        demand(same_bits(block[i], half((begin + i) % 2 == 0 ? big : tiny)), "element ", begin + i, " is ", +block[i]);
      toroid::all_reduce(comm, mixed, toroid::average{});
      for (std::size_t i = 0; i < count; ++i)
        demand(same_bits(mixed[i], half(i % 2 == 0 ? big : tiny)), "element ", i, " is ", +mixed[i]);
    }
  });
}
