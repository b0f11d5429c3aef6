// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/random.hpp"

#include <toroid/toroid.hpp>

#include <signal.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <vector>

// Ranks that throw, return early, end their process or are killed: the others learn of it at once, however long the
// limit is, and the launcher gives the first error.

namespace {

using namespace conformance;
using support::demand;
using clock_type = std::chrono::steady_clock;

/// So long that nobody waits for it here.
const toroid::options patient{.timeout = std::chrono::seconds(100)};
constexpr std::chrono::seconds soon(10);

/// What the other ranks of a group saw.
struct witness {
  std::atomic<int> lost{0};   ///< got peer_lost
  std::atomic<int> other{0};  ///< got something else, or nothing
  std::atomic<int> slow{0};   ///< took long
};

/// All ranks but `culprit` sum until an error comes; `culprit` sums a few times, then calls `end_it`.
template <class EndIt>
auto until_lost(witness& seen, int culprit, std::size_t count, EndIt end_it) {
  return [&seen, culprit, count, end_it](group_end& end) {
    std::vector<element> values(count, 1);
    if (end.rank() == culprit) {
      for (int i = 0; i < 3; ++i) end.all_reduce(values, values, {});
      return end_it();
    }
    auto last = clock_type::now();
    try {
      for (int i = 0; i < 100'000; ++i, last = clock_type::now()) end.all_reduce(values, values, {});
      ++seen.other;
    } catch (const toroid::peer_lost&) {
      ++seen.lost;
      if (clock_type::now() - last > soon) ++seen.slow;
      throw;
    } catch (...) {
      ++seen.other;
      throw;
    }
  };
}

void check_witness(const witness& seen, int others) {
  CHECK(seen.lost == others);
  CHECK(seen.other == 0);
  CHECK(seen.slow == 0);
}

struct own_error {
  int code;
};

constexpr std::size_t short_count = 5, long_count = 100'000;

}  // namespace

TEST_CASE("The first error that a thread throws comes back as it is", "[lost]") {
  for (const std::size_t count : {short_count, long_count}) {
    witness seen;
    try {
      on_threads(4, patient, until_lost(seen, 1, count, [] { throw own_error{17}; }));
      FAIL("no error");
    } catch (const own_error& error) {
      CHECK(error.code == 17);
    }
    check_witness(seen, 3);
  }
}

TEST_CASE("The first error that a process throws comes back with its type and text", "[lost]") {
  for (const std::size_t count : {short_count, long_count}) {
    const support::shared_by_all<witness> seen(3);
    const auto run = [&](std::size_t i, auto end_it) {
      on_processes(4, patient, until_lost(seen[i], 2, count, end_it));
    };
    CHECK(support::text_of<toroid::error>([&] { run(0, [] { throw std::runtime_error("the disk is full"); }); }) ==
          "the disk is full");
    CHECK(support::text_of<toroid::usage_error>([&] { run(1, [] { throw toroid::usage_error("mine"); }); }) == "mine");
    CHECK(support::text_of<toroid::error>([&] { run(2, [] { throw own_error{3}; }); }).find("unknown type") !=
          std::string::npos);
    for (std::size_t i = 0; i < 3; ++i) check_witness(seen[i], 3);
  }
}

TEST_CASE("A rank that returns early is lost to those that wait for it", "[lost]") {
  for (const std::size_t count : {short_count, long_count}) {
    const support::shared_by_all<witness> seen(2);
    const auto text =
        support::text_of<toroid::peer_lost>([&] { on_threads(3, patient, until_lost(seen[0], 1, count, [] {})); });
    support::demand_words(text, "rank 1 has left");
    support::demand_words(
        support::text_of<toroid::peer_lost>([&] { on_processes(3, patient, until_lost(seen[1], 0, count, [] {})); }),
        "rank 0 has left");
    check_witness(seen[0], 2);
    check_witness(seen[1], 2);
  }
}

TEST_CASE("A process that ends without returning is lost, and its end is told", "[lost]") {
  struct way {
    void (*end_it)();
    const char* words;
  };
  const way ways[] = {
      {[] { ::_exit(4); }, "rank 2 ended its process with status 4"},
      {[] { ::_exit(0); }, "rank 2 ended its process with status 0"},
      {[] { std::quick_exit(3); }, "rank 2 ended its process with status 3"},
      {[] { ::signal(SIGABRT, SIG_DFL), std::abort(); }, "rank 2 was ended by signal 6"},
      {[] { ::kill(::getpid(), SIGKILL); }, "rank 2 was ended by signal 9"},
  };
  for (const way& how : ways) {
    const support::shared_by_all<witness> seen;
    const auto run = [&] { on_processes(4, patient, until_lost(*seen, 2, short_count, how.end_it)); };
    support::demand_words(support::text_of<toroid::peer_lost>(run), how.words);
    check_witness(*seen, 3);
  }
}

TEST_CASE("A process may call exit, and its peers learn of it", "[lost]") {
  const support::shared_by_all<witness> seen;
  // Others in a copy of this program: exit() runs what the test framework has registered.
  const auto run = [&] { on_processes(3, patient, until_lost(*seen, 0, long_count, [] { std::exit(5); })); };
  support::demand_words(support::text_of<toroid::peer_lost>(run), "rank 0 ended its process with status");
  check_witness(*seen, 2);
}

TEST_CASE("A process killed at any moment is lost to all others", "[lost]") {
  // The victim is killed by a rank that does not wait for it just then.
  support::random_numbers random(3);
  for (int run = 0; run < 12; ++run) {
    const useconds_t moment = static_cast<useconds_t>(random.below(20'000));
    const choice how{run % 2 == 0 ? choice::kind::automatic : choice::kind::ring, 0};
    const bool shared = run % 4 < 2;
    const support::shared_by_all<witness> seen;
    const auto sum_for_ever = [&](group_end& end) {
      constexpr std::size_t count = (1 << 20) / sizeof(element);
      std::vector<element> ordinary(count, 1);
      std::span<element> values(ordinary);
      if (shared) values = {reinterpret_cast<element*>(end.allocate(1 << 20).data()), count};
      if (end.rank() == 2) {
        const pid_t self = ::getpid();
        const pid_t killer = ::fork();
        if (killer == 0) {
          ::usleep(moment);
          ::kill(self, SIGKILL);
          ::_exit(0);
        }
      }
      try {
        while (true) end.all_reduce(values, values, how);
      } catch (const toroid::peer_lost& error) {
        ++seen->lost;
        support::demand_words(error.what(), "rank 2");
      }
    };
    const auto began = clock_type::now();
    support::demand_words(support::text_of<toroid::peer_lost>([&] { on_processes(4, patient, sum_for_ever); }),
                          "rank 2 was ended by signal 9");
    CHECK(clock_type::now() - began < soon);
    CHECK(seen->lost == 3);
  }
}

TEST_CASE("A process that stops for a while is not taken for dead", "[lost]") {
  on_processes(3, patient, [](group_end& end) {
    std::vector<element> values(1000, 1);
    for (int i = 0; i < 200; ++i) {
      if (i == 100 && end.rank() == 1) {
        const pid_t self = ::getpid();
        if (const pid_t waker = ::fork(); waker == 0) {
          ::usleep(300'000);
          ::kill(self, SIGCONT);
          ::_exit(0);
        } else {
          ::kill(self, SIGSTOP);
          ::waitpid(waker, nullptr, 0);
        }
      }
      end.all_reduce(values, values, {});
      std::fill(values.begin(), values.end(), element{1});
    }
  });
}

TEST_CASE("After a loss every call gives the same error at once", "[lost]") {
  for (const launcher& launch : {launcher(on_threads), launcher(on_processes)}) {
    const auto f = [](group_end& end) {
      if (end.rank() == 0) return;
      std::vector<element> values(10, 1);
      const std::string text = support::text_of<toroid::peer_lost>([&] { end.all_reduce(values, values, {}); });
      const auto began = clock_type::now();
      for (int i = 0; i < 3; ++i)
        demand(support::text_of<toroid::peer_lost>([&] { end.barrier(); }) == text, "another error than ", text);
      demand(clock_type::now() - began < soon, "a broken communicator makes its caller wait");
    };
    launch(3, patient, f);
  }
}

TEST_CASE("A function may take the communicator over, and then fail", "[lost]") {
  const auto f = [](auto& comm) {
    auto mine = std::move(comm);
    if (mine.rank() == 0) throw std::runtime_error("failed with it");
    toroid::barrier(mine);
  };
  support::demand_words(support::text_of<std::runtime_error>([&] { support::run_threads(2, f, patient); }),
                        "failed with it");
  support::demand_words(support::text_of<toroid::error>([&] { support::run_processes(2, f, patient); }),
                        "failed with it");
}

TEST_CASE("A lost process is noticed where the program ignores the end of children", "[lost]") {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  std::string text;
  try {
    text = support::text_of<toroid::peer_lost>([] {
      (void)support::run_processes(2, [](auto& comm) {
        if (comm.rank() == 1) ::_exit(3);
        return comm.rank();
      });
    });
  } catch (...) {
    ::signal(SIGCHLD, before);
    throw;
  }
  ::signal(SIGCHLD, before);
  support::demand_words(text, "rank 1");
}
