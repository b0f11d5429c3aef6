// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/collective/barrier.hpp>
#include <toroid/transport/fault_injecting.hpp>

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <vector>

// Signals that end sleeps early: a wait goes on, and its deadline stays what it was.

namespace {

using namespace conformance;
using support::demand;

std::atomic<int> signals_seen{0};
static_assert(std::atomic<int>::is_always_lock_free);

/// Sends the calling thread a signal every so many microseconds; its handler does not restart system calls.
class signal_storm {
 public:
  explicit signal_storm(long microseconds) {
    struct sigaction action {};
    action.sa_handler = [](int) { ++signals_seen; };
    ::sigaction(SIGUSR1, &action, nullptr);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGUSR1;
    event._sigev_un._tid = static_cast<pid_t>(::syscall(SYS_gettid));
    if (::timer_create(CLOCK_MONOTONIC, &event, &m_timer) != 0) throw std::runtime_error("no timer");
    const itimerspec period{{0, 1000 * microseconds}, {0, 1000 * microseconds}};
    ::timer_settime(m_timer, 0, &period, nullptr);
  }
  signal_storm(const signal_storm&) = delete;
  signal_storm& operator=(const signal_storm&) = delete;
  ~signal_storm() { ::timer_delete(m_timer); }

 private:
  timer_t m_timer{};
};

}  // namespace

TEST_CASE("Signals that interrupt a rank's sleep change nothing", "[signals]") {
  for (const launcher& launch : {launcher(on_threads), launcher(on_processes)}) {
    launch(3, {.spins = 0}, [](group_end& end) {
      signals_seen = 0;
      const signal_storm storm(300);
      const element p = static_cast<element>(end.size());
      for (const choice& how : all_choices()) {
        for (const std::size_t count : {5u, 5000u}) {
          std::vector<element> values(count, static_cast<element>(end.rank()) + 1);
          if (end.rank() == static_cast<int>(count) % 3) ::usleep(5000);
          end.all_reduce(values, values, how);
          for (const element value : values) demand(value == p * (p + 1) / 2, "the sum is ", value);
        }
      }
      demand(signals_seen > 0, "no signal came: this test tests nothing");
    });
  }
}

TEST_CASE("Signals do not put a deadline off", "[signals]") {
  for (const launcher& launch : {launcher(on_threads), launcher(on_processes)}) {
    launch(2, {.timeout = std::chrono::milliseconds(200), .spins = 0}, [](group_end& end) {
      if (end.rank() == 1) {
        ::usleep(1'500'000);
        return;
      }
      const signal_storm storm(2000);
      const auto began = std::chrono::steady_clock::now();
      support::text_of<toroid::timeout_error>([&] { end.barrier(); });
      demand(std::chrono::steady_clock::now() - began < std::chrono::milliseconds(1400), "the deadline was put off");
    });
  }
}

TEST_CASE("A fault-injecting transport interrupts and delays as often as asked", "[signals][faults]") {
  using toroid::transport::fault_counts;
  using toroid::transport::faults;
  using slow = toroid::transport::fault_injecting<toroid::transport::threads>;
  const auto times = [](const faults& chosen, fault_counts& counts, toroid::transport::waiting how) {
    const auto make = [&](toroid::transport::threads base) {
      faults counted = chosen;
      counted.counts = &counts;
      return slow(std::move(base), counted);
    };
    const auto began = std::chrono::steady_clock::now();
    support::run_threads_over(2, {}, how, make, [](auto& comm) {
      for (int i = 0; i < 100; ++i) toroid::barrier(comm);
    });
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  const toroid::transport::waiting awake{.spins = 1000, .yields = 10}, asleep{.spins = 0, .yields = 0};
  fault_counts always, sometimes, never, no_length;
  // A hundred calls hold a rank up three hundred times, for half a millisecond on average.
  CHECK(times({.longest_delay = 1000, .delay_one_in = 1, .interrupt_one_in = 0}, always, awake) > 0.1);
  CHECK(always.delays == 600);
  CHECK(always.signals == 200);
  CHECK(always.waits == 200);
  CHECK(always.interruptions == 0);
  times({.longest_delay = 3, .delay_one_in = 4, .interrupt_one_in = 0}, sometimes, awake);
  CHECK(sometimes.delays > 75);
  CHECK(sometimes.delays < 300);
  times({.longest_delay = 1000, .delay_one_in = 0, .interrupt_one_in = 0}, never, asleep);
  CHECK(never.delays + never.interruptions == 0);
  times({.longest_delay = 0, .delay_one_in = 1, .interrupt_one_in = 0}, no_length, awake);
  CHECK(no_length.delays == 0);

  const std::atomic<std::uint32_t> doorbell{0};
  CHECK(toroid::transport::detail::interrupted_sleep(doorbell, 0, 1'000'000'000) == EINTR);
  CHECK(toroid::transport::detail::interrupted_sleep(doorbell, 1, 1'000'000'000) == EAGAIN);
}

TEST_CASE("A fault-injecting transport interrupts single sleeps of a wait", "[signals][faults]") {
  using toroid::transport::fault_counts;
  using slow = toroid::transport::fault_injecting<toroid::transport::threads>;
  const auto interruptions_of_one_wait = [](int one_in) {
    fault_counts counts;
    const auto make = [&](toroid::transport::threads base) {
      const bool waits = base.rank() == 0;
      return slow(std::move(base), {.delay_one_in = 0, .interrupt_one_in = waits ? one_in : 0, .counts = &counts});
    };
    support::run_threads_over(2, {}, {.spins = 0, .yields = 0, .timeout = 30'000'000'000}, make, [](auto& comm) {
      if (comm.rank() == 1) ::usleep(350'000);
      toroid::barrier(comm);
    });
    CHECK(counts.waits == 2);
    return counts.interruptions.load();
  };
  // Some thousand sleeps of 20 microseconds, were there no other load.
  CHECK(interruptions_of_one_wait(1) > 10);
  // Interrupted sleeps are short, others last a tenth of a second: of those there are four at most.
  const std::uint64_t some = interruptions_of_one_wait(2);
  CHECK(some < 200);
  CHECK(interruptions_of_one_wait(0) == 0);
}
