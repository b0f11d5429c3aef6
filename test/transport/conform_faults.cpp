// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/launch.hpp"

#include <toroid/transport/fault_injecting.hpp>

// The suite once more on ranks that are late at random, whose sleeps are interrupted, and that sleep at once.

namespace {

using namespace conformance;
using toroid::transport::fault_injecting;

constexpr toroid::transport::faults often{.seed = 11, .longest_delay = 60, .delay_one_in = 24, .interrupt_one_in = 3};

toroid::transport::waiting sleepy() { return {.spins = 10, .yields = 0, .timeout = 30'000'000'000}; }

launcher on_slow_threads(support::ways admitted) {
  return [=](int ranks, const toroid::options& chosen, const std::function<void(group_end&)>& f) {
    const auto slow = [=](toroid::transport::threads base) {
      return fault_injecting(support::restricted(std::move(base), admitted), often);
    };
    support::run_threads_over(ranks, chosen, sleepy(), slow, erased(f));
  };
}

void on_slow_processes(int ranks, const toroid::options& chosen, const std::function<void(group_end&)>& f) {
  const auto slow = [](toroid::transport::shm base) { return fault_injecting(std::move(base), often); };
  support::run_processes_over(ranks, chosen, sleepy(), slow, erased(f));
}

}  // namespace

TEST_CASE("Threads that are late and interrupted conform", "[conformance][faults]") {
  const launcher launch = on_slow_threads(support::ways::all);
  for (const int ranks : {2, 3, 5}) check(launch, memory_kind::ordinary, extent::brief, ranks);
}

TEST_CASE("Threads that are late and interrupted conform through hand-over regions", "[conformance][faults]") {
  const launcher launch = on_slow_threads(support::ways::through_regions);
  for (const int ranks : {2, 4}) check(launch, memory_kind::ordinary, extent::brief, ranks);
}

TEST_CASE("Processes that are late and interrupted conform", "[conformance][faults]") {
  for (const int ranks : {2, 3}) check(on_slow_processes, memory_kind::ordinary, extent::brief, ranks);
  check(on_slow_processes, memory_kind::mixed, extent::brief, 4);
}
