// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/random.hpp"

#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/broadcast.hpp>

#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

// The same sum again and again, on any number of ranks, each late at random: the same bits every time and everywhere.

namespace {

using support::demand;

/// Numbers over twelve decimal orders of magnitude, so that another order of adding gives other bits.
std::vector<float> brought(int rank, std::size_t count) {
  support::random_numbers random(static_cast<std::uint64_t>(rank) + 5);
  std::vector<float> values(count);
  for (float& value : values)
    value = std::ldexp(static_cast<float>(random.below(1 << 20)) - 5e5f, static_cast<int>(random.below(40)) - 20);
  return values;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

template <class Comm, class Algorithm>
void repeat(Comm& comm, std::size_t count, int times, const Algorithm& how) {
  support::random_numbers random(static_cast<std::uint64_t>(comm.rank()) * 31 + count);
  const std::vector<float> mine = brought(comm.rank(), count);
  std::vector<float> first, values(count);
  for (int i = 0; i < times; ++i) {
    if (random.below(8) == 0) ::usleep(static_cast<useconds_t>(random.below(200)));
    if (i % 2 == 0) {
      toroid::all_reduce(comm, mine, values, how);
    } else {
      values = mine;
      toroid::all_reduce(comm, values, how);
    }
    if (i == 0) first = values;
    demand(same(values, first), "sum ", i, " of ", count, " on rank ", comm.rank(), " differs from the first");
  }
  toroid::broadcast(comm, values, comm.size() - 1);
  demand(same(values, first), "ranks have different sums of ", count);
}

void repeat_all(int ranks, int times) {
  support::run_both(ranks, [=](auto& comm) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{5}, std::size_t{4097}}) {
      repeat(comm, count, times, toroid::automatic{});
      repeat(comm, count, times, toroid::direct{.segment_bytes = 512});
      repeat(comm, count, times, toroid::ring{});
    }
  });
}

}  // namespace

TEST_CASE("Sums on any number of ranks are the same bits each time", "[repeats]") {
  for (const int ranks : {3, 4, 5, 6, 7}) repeat_all(ranks, 20);
}

TEST_CASE("A hundred sums on any number of ranks are the same bits", "[repeats][slow]") {
  for (const int ranks : {3, 4, 5, 6, 7}) repeat_all(ranks, 100);
}
