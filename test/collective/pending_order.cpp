// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/random.hpp"

#include <toroid/collective/start.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

// Many calls in flight, on one communicator and on several, completed in any order and beside blocking ones.

namespace {

using support::demand;

/// Lengths on either side of what travels beside the flag; the longest take several pieces.
constexpr std::size_t lengths[] = {1, 3, 17, 1024, 1025, 30'000, 2, 70'001};

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

std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t seed) {
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

/// Two ranks, one of which starts and waits A, B, the other B, A.
template <class Comms>
void crosswise(Comms& comms, std::size_t count) {
  const bool first = comms[0].rank() == 0;
  sum one(comms[first ? 0 : 1], count, 1), two(comms[first ? 1 : 0], count, 1);
  one.pending.wait();
  two.pending.wait();
  one.check(comms[0].rank());
  two.check(comms[0].rank());
}

/// Rank 0 calls on C before it waits for what is in flight on A; the others the other way round.
template <class Comms>
void blocking_between(Comms& comms, std::size_t count) {
  const int rank = comms[0].rank();
  sum started(comms[0], count, 7);
  std::vector<int> called(count, rank);
  if (rank == 0) {
    toroid::all_reduce(comms[1], called);
    started.pending.wait();
  } else {
    started.pending.wait();
    toroid::all_reduce(comms[1], called);
  }
  started.check(rank);
  demand(called.back() == comms[0].size() * (comms[0].size() - 1) / 2, "the blocking sum: ", called.back());
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

}  // namespace

TEST_CASE("A hundred calls in flight complete in whatever order they are waited for", "[pending]") {
  support::run_both(3, [](auto& comm) { hundred_in_reverse(comm); });
}

TEST_CASE("Calls on two communicators complete though ranks wait for them in opposite orders", "[pending]") {
  const auto cross = [](auto& comms) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{1025}, std::size_t{70'001}})
      for (int i = 0; i < 10; ++i) crosswise(comms, count);
  };
  support::run_threads_in_groups(2, 2, {}, cross);
  support::run_processes_in_groups(2, 2, {}, cross);
}

TEST_CASE("Calls on sixteen communicators complete in the order that each rank likes", "[pending]") {
  support::run_threads_in_groups(16, 3, {}, [](auto& comms) { in_own_order(comms, 6, 30'000); });
  support::run_processes_in_groups(16, 2, {}, [](auto& comms) { in_own_order(comms, 6, 30'000); });
}

TEST_CASE("A blocking call goes on with what its thread has in flight elsewhere", "[pending]") {
  const auto both = [](auto& comms) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{70'001}})
      for (int i = 0; i < 5; ++i) blocking_between(comms, count);
  };
  support::run_threads_in_groups(2, 3, {}, both);
  support::run_processes_in_groups(2, 3, {}, both);
}

TEST_CASE("Started and blocking calls of changing lengths mix", "[pending]") {
  support::run_both(3, [](auto& comm) { mixed(comm, 300); });
}

TEST_CASE("Started calls among more ranks than cores", "[pending]") {
  support::run_both(8, [](auto& comm) { mixed(comm, 60); });
}

TEST_CASE("Threads that have communicators of their own start calls freely", "[pending]") {
  support::run_threads_in_groups(5, 2, {}, [](auto& comms) {
    std::vector<std::thread> threads;
    toroid::detail::first_error first;
    for (auto& comm : comms) {
      threads.emplace_back([&] {
        try {
          for (int i = 0; i < 40; ++i) {
            sum one(comm, 1, i), other(comm, 1500, i);
            other.pending.wait();
            one.pending.wait();
            one.check(comm.rank());
            other.check(comm.rank());
          }
        } catch (...) {
          first.note(std::current_exception());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    first.rethrow();
  });
}

TEST_CASE("Another thread than the one that started a call can wait for it", "[pending]") {
  support::run_threads_in_groups(2, 2, {}, [](auto& comms) {
    toroid::detail::first_error first;
    for (int i = 0; i < 30; ++i) {
      sum given(comms[0], 30'000, i);
      sum kept(comms[1], 20'000, i);
      std::thread helper([&first, waits = std::move(given.pending)]() mutable {
        try {
          waits.wait();
        } catch (...) {
          first.note(std::current_exception());
        }
      });
      kept.pending.wait();  // meanwhile this thread goes on with the other one, too
      helper.join();
      first.rethrow();
      given.check(comms[0].rank());
      kept.check(comms[0].rank());
      std::vector<int> values(10, 1);
      toroid::all_reduce(comms[0], values);
      demand(values[3] == 2, "the blocking sum: ", values[3]);
    }
  });
}
