// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/collective/all_gather.hpp>
#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/reduce_scatter.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

// One buffer for input and result: the same bits as with two, whatever the operator, the algorithm and the segments.
// And two buffers that share a few bytes: refused, down to part of an element.

namespace {

using support::demand;

template <class T>
std::vector<T> brought(int ranks, int rank, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>(i * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(rank));
  return values;
}

template <class T>
bool same(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// The sum of what all bring, for whole numbers.
std::vector<std::int64_t> total(int ranks, std::size_t count) {
  std::vector<std::int64_t> sums(count);
  const std::int64_t p = ranks;
  for (std::size_t i = 0; i < count; ++i) sums[i] = p * p * static_cast<std::int64_t>(i) + p * (p - 1) / 2;
  return sums;
}

template <class T, class Comm, class Op, class Algorithm>
void with_one_and_two(Comm& comm, std::size_t count, const Op& op, const Algorithm& how) {
  const std::vector<T> in = brought<T>(comm.size(), comm.rank(), count);
  std::vector<T> apart(count), together = in;
  toroid::all_reduce(comm, in, apart, op, how);
  toroid::all_reduce(comm, together, op, how);
  const auto differs = [&](const char* what) {
    return support::joined(what, " of ", count, " on ", comm.size(), " ranks differs with one buffer and two");
  };
  demand(same<T>(apart, together), differs("all_reduce"));
  if constexpr (std::is_same_v<T, std::int64_t> && std::is_same_v<Op, toroid::sum>)
    demand(together == total(comm.size(), count), "the sum of ", count, " is wrong");
  together = in;
  toroid::all_reduce(comm, together, together, op, how);  // the same said with two arguments
  demand(same<T>(apart, together), differs("all_reduce"));

  const toroid::block own = toroid::block_of(count, comm.size(), comm.rank());
  std::vector<T> block(own.count);
  toroid::reduce_scatter(comm, in, block, op, how);
  together = in;
  const std::span<T> place = std::span<T>(together).subspan(own.begin, own.count);
  toroid::reduce_scatter(comm, together, place, op, how);
  demand(same<T>(block, place), differs("reduce_scatter"));
  demand(same<T>(block, std::span<const T>(apart).subspan(own.begin, own.count)),
         "reduce_scatter and all_reduce differ on ", comm.size(), " ranks");
}

template <class T, class Comm, class Op>
void by_all_algorithms(Comm& comm, std::size_t count, const Op& op) {
  with_one_and_two<T>(comm, count, op, toroid::automatic{});
  with_one_and_two<T>(comm, count, op, toroid::direct{});
  with_one_and_two<T>(comm, count, op, toroid::direct{.segment_bytes = 256});
  // A ring has no average of integers.
  if constexpr (!std::is_same_v<Op, toroid::average> || std::is_same_v<T, float>) {
    with_one_and_two<T>(comm, count, op, toroid::ring{});
    with_one_and_two<T>(comm, count, op, toroid::ring{.segment_bytes = 256});
  }
}

}  // namespace

TEST_CASE("One buffer gives the same bits as two", "[one buffer]") {
  for (const int ranks : {2, 3, 4, 5, 7}) {
    support::run_both(ranks, [](auto& comm) {
      for (const std::size_t count :
           {std::size_t{1}, static_cast<std::size_t>(comm.size()), std::size_t{1000}, std::size_t{1001}}) {
        by_all_algorithms<std::int64_t>(comm, count, toroid::sum{});
        by_all_algorithms<std::int64_t>(comm, count, toroid::product{});
        by_all_algorithms<std::int64_t>(comm, count, toroid::minimum{});
        by_all_algorithms<std::int64_t>(comm, count, toroid::maximum{});
        by_all_algorithms<std::int64_t>(comm, count, toroid::average{});
        by_all_algorithms<std::int64_t>(comm, count, toroid::bit_xor{});
        by_all_algorithms<float>(comm, count, toroid::average{});
      }
    });
  }
}

TEST_CASE("All-gather puts blocks together with one argument, with two, and with two buffers", "[one buffer]") {
  support::run_both(3, [](auto& comm) {
    const int r = comm.rank();
    const std::vector<int> expected{0, 1, 10, 11, 20, 21};
    const auto by = [&](const auto& how) {
      const std::vector<int> mine{10 * r, 10 * r + 1};
      std::vector<int> all(6, 99);
      toroid::all_gather(comm, mine, all, how);
      demand(all == expected, "with two buffers");
      const auto begin = [&] {
        all.assign(6, 99);
        std::memcpy(&all[static_cast<std::size_t>(2 * r)], mine.data(), sizeof(int) * 2);
      };
      begin();
      toroid::all_gather(comm, all, how);
      demand(all == expected, "with one argument");
      begin();
      toroid::all_gather(comm, std::span<const int>(all).subspan(static_cast<std::size_t>(2 * r), 2), all, how);
      demand(all == expected, "with two arguments");
    };
    by(toroid::automatic{});
    by(toroid::direct{.segment_bytes = 4});
    by(toroid::ring{});
    by(toroid::ring{.segment_bytes = 4});
  });
}

TEST_CASE("Buffers that share part of an element are refused", "[one buffer]") {
  support::run_both(2, [](auto& comm) {
    std::vector<std::uint16_t> values(40, 1);  // two bytes each, so that floats may lie askew
    const std::vector<std::uint16_t> before = values;
    const auto at = [&](std::size_t half) {
      return std::span<std::array<std::uint16_t, 2>>(reinterpret_cast<std::array<std::uint16_t, 2>*>(&values[half]), 8);
    };
    const auto refused = [&](std::size_t in, std::size_t out) {
      support::demand_words(support::text_of<toroid::usage_error>([&] { toroid::all_reduce(comm, at(in), at(out)); }),
                            "overlap");
      demand(values == before, "a refused call has changed its buffer");
    };
    for (const std::size_t askew : {1u, 3u, 15u}) {
      refused(0, askew);
      refused(askew, 0);
    }
    toroid::all_reduce(comm, at(0), at(16));
    toroid::all_reduce(comm, at(16), at(0));
    demand(values[0] == 4 && values[15] == 4 && values[16] == 2 && values[31] == 2 && values[32] == 1,
           "touching buffers give ", values[0], " and ", values[16]);
  });
}
