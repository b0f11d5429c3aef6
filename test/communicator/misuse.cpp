// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/barrier.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <string>
#include <thread>
#include <vector>

// A communicator in wrong hands: in a forked copy of its rank, in two threads at a time; one that is given up.

namespace {

using namespace conformance;
using support::demand;

/// Forks this rank and tells how its copy ended.
template <class F>
int status_of_a_copy(F f) {
  const pid_t copy = ::fork();
  if (copy == 0) ::_exit(f());
  int status = -1;
  ::waitpid(copy, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void sums_go_on(group_end& end, int calls) {
  for (int i = 0; i < calls; ++i) {
    std::vector<element> values(i % 10 == 0 ? 3000 : 3, 1);
    end.all_reduce(values, values, {});
    demand(values[0] == static_cast<element>(end.size()), "sum ", i, " is ", values[0]);
  }
}

}  // namespace

TEST_CASE("A copy forked from a rank cannot speak for it, and does no harm when it ends", "[misuse]") {
  on_processes(2, {}, [](group_end& end) {
    sums_go_on(end, 3);
    demand(status_of_a_copy([] { return 7; }) == 7, "a copy that only ends");
    const auto call = [&] {
      try {
        end.barrier();
      } catch (const toroid::usage_error& error) {
        return std::string(error.what()).find("forked") != std::string::npos ? 8 : 2;
      }
      return 1;
    };
    demand(status_of_a_copy(call) == 8, "a copy that calls");
    const auto leave = [&] {
      end.drop();
      return 9;
    };
    demand(status_of_a_copy(leave) == 9, "a copy that destroys the communicator");
    sums_go_on(end, 500);
  });
}

TEST_CASE("A rank that aborts ends the calls of all", "[misuse]") {
  for (const launcher& launch : {launcher(on_threads), launcher(on_processes)}) {
    launch(3, {.timeout = std::chrono::seconds(100)}, [](group_end& end) {
      sums_go_on(end, 3);
      const auto began = std::chrono::steady_clock::now();
      if (end.rank() == 1) {
        ::usleep(50'000);
        end.abort();
      }
      support::demand_words(support::text_of<toroid::peer_lost>([&] { sums_go_on(end, 1'000'000); }),
                            "rank 1 has aborted");
      demand(std::chrono::steady_clock::now() - began < std::chrono::seconds(20), "it took too long");
    });
  }
}

TEST_CASE("Another thread may abort a call that waits", "[misuse]") {
  support::run_threads(2,
                       [](auto& comm) {
                         if (comm.rank() == 1) {
                           ::usleep(400'000);
                           return;
                         }
                         std::thread other([&] {
                           ::usleep(50'000);
                           comm.abort();
                         });
                         const std::string text = support::text_of<toroid::peer_lost>([&] { toroid::barrier(comm); });
                         other.join();
                         support::demand_words(text, "rank 0 has aborted");
                       },
                       {.timeout = std::chrono::seconds(100)});
}

TEST_CASE("Two threads that use one communicator at a time are told", "[misuse]") {
  support::run_threads(2, [](auto& comm) {
    if (comm.rank() == 1) {
      ::usleep(300'000);
      return toroid::barrier(comm);
    }
    std::string text;
    std::thread other([&] {
      ::usleep(100'000);  // the first is inside its call
      text = support::text_of<toroid::usage_error>([&] { toroid::barrier(comm); });
    });
    toroid::barrier(comm);
    other.join();
    support::demand_words(text, "two threads");
  });
}

TEST_CASE("With check::data all ranks learn who brings a number that is not finite, and go on", "[misuse]") {
  for (const std::size_t count : {std::size_t{10}, std::size_t{30'000}}) {
    support::run_threads(
        3,
        [=](auto& comm) {
          std::vector<float> values(count, 1.0f);
          for (const float flaw : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
            std::vector<float> flawed = values;
            if (comm.rank() == 1) flawed[7] = flawed[8] = flaw;
            if (comm.rank() == 2) flawed[2] = flaw;
            const std::string text = support::text_of<toroid::usage_error>([&] { toroid::all_reduce(comm, flawed); });
            support::demand_words(text, "rank 1", "index 7", "misuse.cpp");
            flawed = values;
            toroid::all_reduce(comm, flawed);
            demand(flawed[7] == 3.0f, "the sum is ", flawed[7]);
          }
        },
        {.checking = toroid::check::data});
  }
}
