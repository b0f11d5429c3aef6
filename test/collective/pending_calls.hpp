// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "support/demand.hpp"
#include "support/random.hpp"

#include <toroid/collective/start.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

/// What ranks do in tests of started calls, over whatever transport.
namespace pending_calls {

using support::demand;

/// Lengths on either side of what travels beside the flag; the longest take several pieces.
inline constexpr std::size_t lengths[] = {1, 3, 17, 1024, 1025, 30'000, 2, 70'001};

/// A sum in flight, whose right result is known.
struct sum {
  template <class Comm>
  sum(Comm& comm, std::size_t count, int number) : values(count, comm.rank() + number) {
    expected = comm.size() * (comm.size() - 1) / 2 + comm.size() * number;
    if (number % 3 == 1)
      pending = toroid::start_all_reduce(comm, values, toroid::ring{});
    else
      pending = toroid::start_all_reduce(comm, values);
  }
  void check(int rank) const {
    for (const int value : values) demand(value == expected, "rank ", rank, " has ", value, " for ", expected);
  }
  std::vector<int> values;
  int expected = 0;
  toroid::pending pending;
};

inline std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  support::random_numbers random(seed);
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

template <class Comm>
void hundred_in_reverse(Comm& comm) {
  std::vector<sum> sums;
  sums.reserve(100);
  for (int i = 0; i < 100; ++i) sums.emplace_back(comm, lengths[static_cast<std::size_t>(i) % 8], i);
  for (std::size_t i = sums.size(); i-- > 0;) {
    sums[i].pending.wait();
    sums[i].check(comm.rank());
    demand(!sums[i].pending.valid() && sums[i].pending.test(), "not over after wait()");
  }
  int one = 1;
  toroid::all_reduce(comm, std::span<int>(&one, 1));
  demand(one == comm.size(), "the call after them: ", one);
}

/// Starts on all communicators in an order of the rank's own, and waits in another one.
template <class Comms>
void in_own_order(Comms& comms, int rounds, std::size_t longest) {
  const int rank = comms[0].rank();
  for (int round = 0; round < rounds; ++round) {
    const auto seed = static_cast<std::uint64_t>(round * 64 + rank);
    std::vector<sum> sums;
    sums.reserve(comms.size());
    const std::vector<std::size_t> starts = shuffled(comms.size(), 2 * seed), waits = shuffled(comms.size(), seed + 9);
    std::vector<std::size_t> where(comms.size());
    for (const std::size_t i : starts) {
      where[i] = sums.size();
      const std::size_t count = lengths[(i + static_cast<std::size_t>(round)) % 8];
      sums.emplace_back(comms[i], count < longest ? count : longest, static_cast<int>(i) + round);
    }
    for (const std::size_t i : waits) {
      if (round % 4 == 3)
        while (!sums[where[i]].pending.test()) ::usleep(20);
      else
        sums[where[i]].pending.wait();
      sums[where[i]].check(rank);
    }
  }
}

/// Started and blocking calls on one communicator, of changing lengths, with late ranks.
template <class Comm>
void mixed(Comm& comm, int rounds) {
  support::random_numbers late(static_cast<std::uint64_t>(comm.rank()) + 71), same_for_all(5);
  std::vector<sum> sums;
  sums.reserve(8);
  for (int round = 0; round < rounds; ++round) {
    if (late.below(16) == 0) ::usleep(static_cast<useconds_t>(late.below(2000)));
    const std::uint64_t what = same_for_all.below(8);
    const std::size_t count = lengths[same_for_all.below(8)];
    if (what == 0) {
      std::vector<int> values(count, comm.rank());
      toroid::all_reduce(comm, values);  // completes those in flight before
      demand(values.back() == comm.size() * (comm.size() - 1) / 2, "the blocking sum: ", values.back());
    } else if (what == 1) {
      toroid::barrier(comm);
    } else {
      if (sums.size() == 8) {
        for (const std::size_t i : shuffled(8, late.below(1000))) {
          sums[i].pending.wait();
          sums[i].check(comm.rank());
        }
        sums.clear();
      }
      sums.emplace_back(comm, count, round);
    }
  }
  for (sum& s : sums) {
    s.pending.wait();
    s.check(comm.rank());
  }
}

}  // namespace pending_calls
