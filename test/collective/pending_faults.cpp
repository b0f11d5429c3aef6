// SPDX-License-Identifier: Apache-2.0
#include "collective/pending_calls.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/collective/start.hpp>
#include <toroid/transport/fault_injecting.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

// Started calls of ranks that are late at random places, whose sleeps are interrupted, and whose signals get lost.

namespace {

using support::demand;
using namespace pending_calls;
using toroid::transport::faults;

template <class F>
void with_faults(int ranks, const faults& injected, const toroid::options& chosen, F f) {
  const toroid::transport::waiting how{.spins = 50, .yields = 5, .timeout = chosen.timeout.count()};
  support::run_threads_over(
      ranks, chosen, how,
      [&](toroid::transport::threads base) {
        return toroid::transport::fault_injecting<toroid::transport::threads>(std::move(base), injected);
      },
      f);
}

}  // namespace

TEST_CASE("Started calls of ranks that are late at random places are right", "[pending]") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const faults late{.seed = seed, .longest_delay = 300, .delay_one_in = 20, .interrupt_one_in = 2};
    with_faults(3, late, {}, [](auto& comm) { mixed(comm, 60); });
    with_faults(3, late, {.progress = toroid::progress::thread}, [](auto& comm) { mixed(comm, 60); });
  }
}

TEST_CASE("A signal that gets lost is a timeout_error where the call is waited for", "[pending]") {
  for (const std::uint64_t from : {5U, 9U, 12U}) {
    with_faults(3, {.drop_from = from}, {.timeout = std::chrono::milliseconds(200)}, [](auto& comm) {
      std::string text;
      for (int i = 0; text.empty(); ++i) {
        demand(i < 100, "no error in a hundred calls");
        sum one(comm, 70'001, i), two(comm, 3, i);
        try {
          two.pending.wait();
          one.pending.wait();
        } catch (const toroid::timeout_error& error) {
          text = error.what();
        }
        one.values = {};
      }
      support::demand_words(text, "no answer within 200 ms");
      sum next(comm, 1, 1);
      demand(support::text_of<toroid::timeout_error>([&] { next.pending.wait(); }) == text, "another than ", text);
    });
  }
}
