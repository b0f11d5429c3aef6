// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/random.hpp"
#include "support/sanitizers.hpp"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

// Many calls, one straight after the other, on many communicators, past the ends of counters.

namespace {

using namespace conformance;
using support::demand;

/// Calls of changing length with no barrier between them; now and then one rank is late.
void back_to_back(group_end& end, int calls, std::uint64_t seed) {
  support::random_numbers same_on_all(seed), own(seed * 1000 + static_cast<std::uint64_t>(end.rank()));
  constexpr std::size_t lengths[] = {1, 3, 17, 4096, 65'537, 2, 200'000};
  const element p = static_cast<element>(end.size());
  const std::vector<choice> choices = all_choices();
  std::vector<element> values(200'000);
  for (int call = 0; call < calls; ++call) {
    const std::size_t count = lengths[same_on_all.below(std::size(lengths) - (call % 8 == 0 ? 0 : 1))];
    const choice how = choices[same_on_all.below(choices.size())];
    const int late = static_cast<int>(same_on_all.below(4 * p));
    if (late == end.rank()) ::usleep(static_cast<useconds_t>(own.below(2000)));
    const std::span<element> v = std::span<element>(values).first(count);
    const element salt = static_cast<element>(call);
    if (same_on_all.below(8) == 0) {
      const int root = static_cast<int>(same_on_all.below(p));
      std::fill(v.begin(), v.end(), end.rank() == root ? salt : 0u);
      end.broadcast(v, root, how);
      for (std::size_t i = 0; i < count; ++i)
        demand(v[i] == salt, "call ", call, ", element ", i, " of ", count, " is ", v[i]);
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) v[i] = salt + static_cast<element>(i) + static_cast<element>(end.rank());
    end.all_reduce(v, v, how);
    for (std::size_t i = 0; i < count; ++i)
      demand(v[i] == p * (salt + static_cast<element>(i)) + p * (p - 1) / 2, "call ", call, ", element ", i, " of ",
             count, " is ", v[i]);
  }
}

void sums_of_one(group_end& end, int calls) {
  for (int i = 0; i < calls; ++i) {
    element one = 1;
    end.all_reduce({&one, 1}, {&one, 1}, {});
    demand(one == static_cast<element>(end.size()), "sum ", i, " is ", one);
  }
}

}  // namespace

TEST_CASE("Calls of changing length follow each other without a barrier", "[many]") {
  on_both(4, {}, [](group_end& end) { back_to_back(end, support::sanitized ? 100 : 400, 1); });
}

TEST_CASE("Ten thousand calls of changing length follow each other", "[many][slow]") {
  on_both(4, {}, [](group_end& end) { back_to_back(end, 10'000, 2); });
}

TEST_CASE("Counters pass the ends of 16 and 32 bits", "[many]") {
  for (const std::uint64_t limit : {std::uint64_t{1} << 16, std::uint64_t{1} << 31, std::uint64_t{1} << 32}) {
    for (const int ranks : {2, 4}) {
      on_both(ranks, {.region_bytes = 4096}, [&](group_end& end) {
        end.start_at(limit - 3, limit - 3);
        back_to_back(end, 12, 3);
        check(end, memory_kind::ordinary, {5, 5000}, all_choices(), extent::brief);
      });
    }
  }
}

TEST_CASE("Threads use many communicators at the same time", "[many]") {
  // Ten groups of four, each run from a thread of its own.
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 10; ++t)
    threads.emplace_back([&] {
      try {
        on_threads(4, {}, [](group_end& end) { sums_of_one(end, 300); });
        ++right;
      } catch (const std::exception&) {
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 10);
}

TEST_CASE("A rank may use several communicators by turns", "[many]") {
  on_threads(3, {}, [](group_end& outer) {
    // Every rank of the outer group is the only one of an inner group, and sums in both.
    toroid::run_threads(1, [&](auto& inner) {
      for (int i = 0; i < 50; ++i) {
        std::vector<element> values(1000, 1);
        toroid::barrier(inner);
        outer.all_reduce(values, values, {});
        demand(values[999] == 3, "the sum is ", values[999]);
      }
    });
  });
}

TEST_CASE("A communicator works at once, though a rank is slow to set up", "[many]") {
  for (int i = 0; i < 20; ++i) on_processes_with_a_late_one(3, i % 3, [](group_end& end) { sums_of_one(end, 20); });
}

TEST_CASE("A thousand communicators work at once, though rank 0 is slow to set up", "[many][slow]") {
  const auto rank_0_late = [](toroid::transport::shm base) {
    if (base.rank() == 0) ::usleep(50'000);
    return base;
  };
  for (int i = 0; i < 1000; ++i)
    support::run_processes_over(4, {}, toroid::detail::waiting_of(4, {}), rank_0_late,
                                erased([](group_end& end) { back_to_back(end, 3, 8); }));
}

TEST_CASE("A hundred thousand short sums on four ranks are right", "[many][slow]") {
  on_both(4, {}, [](group_end& end) { sums_of_one(end, 100'000); });
}
