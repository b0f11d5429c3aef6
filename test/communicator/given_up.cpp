// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/toroid.hpp>

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

// Communicators that are destroyed or aborted while peers are missing, calls are pending or an exception is under way:
// it always returns, and nobody waits who need not.

namespace {

using namespace conformance;
using support::demand;
using clock_type = std::chrono::steady_clock;

/// So long that nobody waits for it here.
const toroid::options patient{.timeout = std::chrono::seconds(100)};
constexpr std::chrono::seconds soon(5);

template <class F>
void soon_done(const char* what, F f) {
  const auto began = clock_type::now();
  f();
  demand(clock_type::now() - began < soon, what, " took too long");
}

void sum_once(group_end& end) {
  std::vector<element> values(5000, 1);
  end.all_reduce(values, values, {});
  demand(values[4999] == static_cast<element>(end.size()), "the sum is ", values[4999]);
}

/// The ranks that stay: one destroys at once, one first tries a call, one waits until the missing one is gone.
void destroy_without(group_end& end, const std::function<bool()>& gone) {
  if (end.rank() == 1) support::text_of<toroid::peer_lost>([&] { sum_once(end); });
  if (end.rank() == 3)
    while (!gone()) ::usleep(1000);
  soon_done("destruction", [&] { end.drop(); });
}

/// Two communicators of three ranks of which the last calls neither; the others have a call pending in each.
///
/// @param first  which is aborted first, on each of the two ranks
void abort_two(std::atomic<int>& through, auto& ends, int first) {
  const int rank = ends[0].rank();
  if (rank == 2) {
    while (through < 2) ::usleep(1000);
    return;
  }
  std::atomic<bool> done[2] = {false, false};
  std::string problem[2];
  std::vector<std::thread> callers;
  for (const std::size_t g : {0u, 1u}) {
    callers.emplace_back([&, g] {
      try {
        std::vector<int> values(g == 0 ? 3 : 50'000, 1);
        support::demand_words(support::text_of<toroid::peer_lost>([&] { toroid::all_reduce(ends[g], values); }),
                              "has aborted");
      } catch (const std::exception& error) {
        problem[g] = error.what();
      }
      done[g] = true;
    });
  }
  ::usleep(50'000);
  const std::size_t a = static_cast<std::size_t>(first), b = 1 - a;
  const bool alone = rank == 0;  // rank 0 aborts the one, and long after it the other
  if (alone) {
    ends[a].abort();
    while (!done[a]) ::usleep(1000);
    const bool still_pending = !done[b];
    ::usleep(20'000);
    ends[b].abort();
    while (!done[b]) ::usleep(1000);
    for (std::thread& caller : callers) caller.join();
    demand(still_pending, "aborting one communicator has ended a call of the other");
  } else {
    for (std::thread& caller : callers) caller.join();  // a peer's abort is enough
  }
  for (const std::string& text : problem) demand(text.empty(), text);
  soon_done("destruction", [&] { ends.clear(); });
  ++through;
}

/// As abort_two, but both ranks abort both, in opposite orders.
void abort_crosswise(std::atomic<int>& through, auto& ends) {
  const int rank = ends[0].rank();
  if (rank == 2) {
    while (through < 2) ::usleep(1000);
    return;
  }
  std::thread other([&] {
    ::usleep(50'000);
    ends[static_cast<std::size_t>(rank)].abort();
    ends[static_cast<std::size_t>(1 - rank)].abort();
  });
  std::string problem;
  try {
    for (auto& end : ends)
      support::demand_words(support::text_of<toroid::peer_lost>([&] { toroid::barrier(end); }), "has aborted");
  } catch (const std::exception& error) {
    problem = error.what();
  }
  other.join();
  demand(problem.empty(), problem);
  soon_done("destruction", [&] { ends.clear(); });
  ++through;
}

/// Something that owns a communicator and is unwound with it.
template <class Communicator>
struct model {
  std::vector<float> weights;
  std::unique_ptr<Communicator> comm;
};

}  // namespace

TEST_CASE("A process that ends without destroying holds nobody up who destroys", "[given up]") {
  for (void (*end_it)() : {+[] { ::_exit(0); }, +[] { ::kill(::getpid(), SIGKILL), ::pause(); }}) {
    const support::shared_by_all<std::atomic<pid_t>> missing;
    support::text_of<toroid::peer_lost>([&] {
      on_processes(4, patient, [&](group_end& end) {
        if (end.rank() == 2) *missing = ::getpid();
        sum_once(end);
        if (end.rank() == 2) end_it();
        destroy_without(end, [&] { return ::kill(*missing, 0) != 0; });
      });
    });
  }
}

TEST_CASE("A process that is stopped holds nobody up who destroys", "[given up]") {
  struct shared {
    std::atomic<pid_t> stopped;
    std::atomic<int> through;
  };
  const support::shared_by_all<shared> state;
  on_processes(4, patient, [&](group_end& end) {
    if (end.rank() == 2) state->stopped = ::getpid();
    sum_once(end);
    if (end.rank() == 2) {
      ::kill(::getpid(), SIGSTOP);
      return;
    }
    ::usleep(50'000);  // it has stopped by now
    soon_done("destruction", [&] { end.drop(); });
    if (++state->through == 3) {
      // It may not even have stopped yet: wake it until it is through.
      while (::kill(state->stopped, SIGCONT) == 0) ::usleep(1000);
    }
  });
}

TEST_CASE("A thread that ends without destroying holds nobody up who destroys", "[given up]") {
  std::optional<toroid::communicator<toroid::transport::threads>> kept;
  std::atomic<bool> gone{false};
  support::run_threads(
      4,
      [&](auto& comm) {
        if (comm.rank() == 2) {
          kept.emplace(std::move(comm));
          end_of end(*kept);
          sum_once(end);
          gone = true;
          return;
        }
        end_of end(comm);
        sum_once(end);
        while (!gone) ::usleep(1000);
        soon_done("destruction", [&] { end.drop(); });
      },
      patient);
  support::text_of<toroid::peer_lost>([&] { toroid::barrier(*kept); });
}

TEST_CASE("Two communicators with calls pending on a missing rank are aborted in either order", "[given up]") {
  for (const int first : {0, 1}) {
    const support::shared_by_all<std::atomic<int>> through(2);
    support::run_threads_in_groups(2, 3, patient, [&](auto& ends) { abort_two(through[0], ends, first); });
    support::run_processes_in_groups(2, 3, patient, [&](auto& ends) { abort_two(through[1], ends, first); });
    CHECK((through[0] == 2 && through[1] == 2));
  }
}

TEST_CASE("Two ranks abort two communicators in opposite orders", "[given up]") {
  const support::shared_by_all<std::atomic<int>> through(2);
  support::run_threads_in_groups(2, 3, patient, [&](auto& ends) { abort_crosswise(through[0], ends); });
  support::run_processes_in_groups(2, 3, patient, [&](auto& ends) { abort_crosswise(through[1], ends); });
  CHECK((through[0] == 2 && through[1] == 2));
}

TEST_CASE("What was moved from can be destroyed, assigned and aborted", "[given up]") {
  support::run_both(
      3,
      [](auto& comm) {
        using comm_type = std::remove_reference_t<decltype(comm)>;
        std::vector<int> values(2000, 1);
        {
          comm_type first = std::move(comm);
          comm_type second = std::move(first);
          first.abort();  // nobody's
          comm = std::move(first);
          first = std::move(second);
          comm_type& itself = first;
          first = std::move(itself);
          toroid::all_reduce(first, values);
          demand(values[1999] == 3, "the sum is ", values[1999]);
          comm = std::move(first);
        }
        values.assign(2000, 1);
        toroid::all_reduce(comm, values);
        demand(values[1999] == 3, "the sum is ", values[1999]);
        for (int time = 0; time < 2; ++time) end_of(comm).drop();
      },
      patient);
}

TEST_CASE("A communicator that is assigned over leaves its group", "[given up]") {
  const auto f = [](auto& ends) {
    const int rank = ends[0].rank();
    if (rank == 0) {
      ends[0] = std::move(ends[1]);
    } else {
      support::demand_words(support::text_of<toroid::peer_lost>([&] { toroid::barrier(ends[0]); }), "rank 0 has left");
      ends[0] = std::move(ends[1]);
    }
    std::vector<int> values(3, 1);
    toroid::all_reduce(ends[0], values);
    demand(values[2] == 2, "the sum is ", values[2]);
  };
  support::run_threads_in_groups(2, 2, patient, f);
  support::run_processes_in_groups(2, 2, patient, f);
}

TEST_CASE("An exception that unwinds a communicator's owner ends the calls of the others", "[given up]") {
  const auto f = [](auto& comm) {
    using comm_type = std::remove_reference_t<decltype(comm)>;
    const int rank = comm.rank();
    const auto began = clock_type::now();
    try {
      model<comm_type> mine{std::vector<float>(20'000, 1.0f), std::make_unique<comm_type>(std::move(comm))};
      for (int step = 0;; ++step) {
        if (rank == 1 && step == 3) throw std::runtime_error("unwound");
        toroid::all_reduce(*mine.comm, mine.weights, toroid::maximum{});
      }
    } catch (const toroid::peer_lost& error) {
      demand(rank != 1, "the wrong error: ", error.what());
      support::demand_words(error.what(), "rank 1 has left");
    } catch (const std::runtime_error& error) {
      demand(rank == 1 && std::string(error.what()) == "unwound", "the wrong error: ", error.what());
    }
    demand(clock_type::now() - began < std::chrono::seconds(30), "rank ", rank, " waited");
  };
  support::run_both(4, f, patient);
}
