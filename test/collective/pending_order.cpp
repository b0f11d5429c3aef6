// SPDX-License-Identifier: Apache-2.0
#include "collective/pending_calls.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/collective/start.hpp>

#include <cstddef>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

// Many calls in flight, on one communicator and on several, completed in any order and beside blocking ones.

namespace {

using support::demand;
using namespace pending_calls;

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

TEST_CASE("A communicator tells what it holds for calls in flight, and holds no more than it once needed",
          "[pending]") {
  support::run_threads(2, [](auto& comm) {
    const std::size_t before = comm.footprint();
    hundred_in_reverse(comm);
    const std::size_t after = comm.footprint();
    demand(after >= before + 100 * 512 && after <= before + 100 * 4096, after - before, " bytes for a hundred calls");
    hundred_in_reverse(comm);
    for (int i = 0; i < 1000; ++i) toroid::start_barrier(comm).wait();
    demand(comm.footprint() == after, "it grows to ", comm.footprint(), " from ", after);
  });
}

TEST_CASE("Started calls teach nothing about which way is faster", "[pending]") {
  support::run_processes(2, [](auto& comm) {
    using way = toroid::detail::path_chooser::way;
    auto& chooser = toroid::detail::access::session(comm).chooser();
    std::vector<int> values(20'000, 0);
    const std::size_t bytes = values.size() * sizeof(int);
    for (int i = 0; i < 100; ++i) toroid::start_all_reduce(comm, values).wait();
    demand(chooser.better(bytes) == way::staged, "something has been learned");
    if (comm.rank() == 0) {  // the trials are still to come, as in one that has never been asked
      toroid::detail::path_chooser fresh;
      for (int i = 0; i < 20; ++i) {
        demand(chooser.choose(bytes) == fresh.choose(bytes), "choice ", i, " is another than that of a new one");
        chooser.note(bytes, way::pulled, 10);
        fresh.note(bytes, way::pulled, 10);
      }
      demand(chooser.better(bytes) == way::staged, "one way alone has been tried");
      chooser.note(bytes, way::staged, 20);
      demand(chooser.better(bytes) == way::pulled, "the faster way is not the better one");
    }
  });
}
