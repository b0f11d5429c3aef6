// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/process_state.hpp"
#include "support/sanitizers.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include <chrono>
#include <vector>

// More ranks than cores. What counts is processor time: how long it takes besides depends on what else runs here.

namespace {

using namespace conformance;
using support::demand;

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Leaves this process, and what it starts, the first `cores` of its cores.
void use_cores(int cores) {
  cpu_set_t all, some;
  CPU_ZERO(&some);
  demand(::sched_getaffinity(0, sizeof all, &all) == 0, "no affinity");
  for (std::size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&some) < cores; ++core)
    if (CPU_ISSET(core, &all)) CPU_SET(core, &some);
  demand(::sched_setaffinity(0, sizeof some, &some) == 0, "no affinity");
}

/// Runs `launch` in a copy of this process that has so few cores.
///
/// @return processor seconds that it took, of all ranks together
template <class Launch>
double processor_seconds(int cores, Launch launch) {
  const support::ending how = support::in_a_copy([&] {
    use_cores(cores);
    const double before = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    launch();
    rusage children{};
    ::getrusage(RUSAGE_CHILDREN, &children);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return std::to_string(seconds_of(CLOCK_PROCESS_CPUTIME_ID) - before + seconds(children.ru_utime) +
                          seconds(children.ru_stime));
  });
  INFO(how.text);
  REQUIRE(how.status == 0);
  return std::stod(how.text);
}

void thousand_sums(group_end& end) {
  for (int i = 0; i < 1000; ++i) {
    element one = 1;
    end.all_reduce({&one, 1}, {&one, 1}, {});
    demand(one == 8, "the sum is ", one);
  }
}

/// One rank sleeps; the others wait for it and tell how much of the time they used a core.
void wait_for_a_sleeper(group_end& end) {
  const double began = seconds_of(CLOCK_MONOTONIC), used = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  if (end.rank() == 0) ::usleep(1'000'000);
  std::vector<element> values(10'000, 1);
  end.all_reduce(values, values, {});
  const double share = (seconds_of(CLOCK_THREAD_CPUTIME_ID) - used) / (seconds_of(CLOCK_MONOTONIC) - began);
  demand(share < 0.5, "rank ", end.rank(), " used ", 100 * share, " % of a core to wait");
}

}  // namespace

TEST_CASE("A thousand short sums of eight ranks on one or two cores take little processor time", "[crowded]") {
  constexpr double limit = support::sanitized ? 20 : 4;
  for (const int cores : {1, 2}) {
    CHECK(processor_seconds(cores, [] { on_processes(8, {}, thousand_sums); }) < limit);
    CHECK(processor_seconds(cores, [] { on_threads(8, {}, thousand_sums); }) < limit);
  }
}

TEST_CASE("Ranks that wait long sleep", "[crowded]") { on_both(4, {}, wait_for_a_sleeper); }
