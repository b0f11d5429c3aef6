// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/sanitizers.hpp"

#include <toroid/collective/all_reduce.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

// Ranks that have ten threads and ten communicators each: thread t of every rank sums on communicator t, all at the
// same time. A flag that is seen before its data, or that shares what belongs to another group, shows as a wrong sum.

namespace {

using support::demand;

constexpr int ranks = 4, groups = 10;

/// Sums of one, each beside a number that no other call has, so that data left over from an earlier call shows.
template <class Communicator>
void sums_of_one(Communicator& comm, int group, int calls) {
  const std::uint32_t p = static_cast<std::uint32_t>(comm.size()), r = static_cast<std::uint32_t>(comm.rank());
  for (int i = 0; i < calls; ++i) {
    const std::uint32_t salt = static_cast<std::uint32_t>(groups * i + group);
    std::uint32_t values[2] = {1, salt + r};
    toroid::all_reduce(comm, values);
    demand(values[0] == p, "sum ", i, " of group ", group, " on rank ", r, " is ", values[0]);
    demand(values[1] == p * salt + p * (p - 1) / 2, "sum ", i, " of group ", group, " on rank ", r,
           " mixes calls: ", values[1]);
  }
}

/// What a rank does: a thread for each of its communicators.
auto on_all_groups(int calls) {
  return [calls](auto& ends) {
    toroid::detail::first_error first;
    std::vector<std::thread> threads;
    for (std::size_t g = 0; g < ends.size(); ++g) {
      threads.emplace_back([&, g] {
        try {
          sums_of_one(ends[g], static_cast<int>(g), calls);
        } catch (...) {
          first.note(std::current_exception());
          for (auto& end : ends) end.abort();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    first.rethrow();
  };
}

constexpr int few_calls = support::sanitized ? 500 : 2000;
constexpr int many_calls = 100'000;
/// A limit for what hangs, on slow and loaded machines too.
constexpr unsigned long_patience = 580;

}  // namespace

TEST_CASE("Ten threads of each rank, a thread itself, sum on ten communicators", "[many]") {
  support::run_threads_in_groups(groups, ranks, {}, on_all_groups(few_calls));
}

TEST_CASE("Ten threads of each rank, a process, sum on ten communicators", "[many]") {
  support::run_processes_in_groups(groups, ranks, {}, on_all_groups(few_calls));
}

TEST_CASE("A hundred thousand sums on each of ten communicators, ranks being threads, are right", "[many][slow]") {
  support::run_threads_in_groups(groups, ranks, {}, on_all_groups(many_calls), long_patience);
}

TEST_CASE("A hundred thousand sums on each of ten communicators, ranks being processes, are right", "[many][slow]") {
  support::run_processes_in_groups(groups, ranks, {}, on_all_groups(many_calls), long_patience);
}
