// SPDX-License-Identifier: Apache-2.0
#include "collective/pending_calls.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/collective/start.hpp>
#include <toroid/communicator/shm.hpp>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

// options.progress = thread: calls get on while nobody waits.

namespace {

using support::demand;
using namespace pending_calls;
using std::chrono::milliseconds;

const toroid::options by_thread{.progress = toroid::progress::thread};

constexpr milliseconds limit(300);

/// Rank 0 starts, and does not come back to the library until the others, who wait, have the result.
template <class Comm>
void nobody_waits(Comm& comm, std::size_t count, std::atomic<int>& arrived) {
  sum started(comm, count, 1);
  if (comm.rank() == 0)
    while (arrived.load() != comm.size() - 1) ::usleep(100);
  started.pending.wait();
  if (comm.rank() != 0) ++arrived;
  started.check(comm.rank());
}

}  // namespace

TEST_CASE("A thread goes on with calls that nobody waits for", "[pending]") {
  const support::shared_by_all<std::atomic<int>> arrived(4);
  std::size_t at = 0;
  for (const std::size_t count : {std::size_t{3}, std::size_t{70'001}}) {
    support::run_threads(
        3, [&](auto& comm) { nobody_waits(comm, count, arrived[at]); }, by_thread);
    support::run_processes(
        3, [&](auto& comm) { nobody_waits(comm, count, arrived[at + 1]); }, by_thread);
    at += 2;
  }
}

TEST_CASE("Started and blocking calls mix with a thread that goes on with them", "[pending]") {
  support::run_both(
      3, [](auto& comm) { mixed(comm, 150); }, by_thread);
  support::run_both(
      2, [](auto& comm) { hundred_in_reverse(comm); }, by_thread);
}

TEST_CASE("Threads go on with calls on several communicators", "[pending]") {
  const auto own_order = [](auto& comms) { in_own_order(comms, 4, 2000); };
  support::run_threads_in_groups(4, 2, by_thread, own_order);
  support::run_processes_in_groups(4, 2, by_thread, own_order);
}

TEST_CASE("The deadline of a call that a thread goes on with counts while somebody waits", "[pending]") {
  toroid::options chosen = by_thread;
  chosen.timeout = limit;
  support::run_processes(
      2,
      [](auto& comm) {
        toroid::barrier(comm);
        if (comm.rank() == 1) ::usleep(3 * 1000 * static_cast<useconds_t>(limit.count()));
        sum late(comm, 2000, 1);
        if (comm.rank() == 0) ::usleep(4 * 1000 * static_cast<useconds_t>(limit.count()));  // does not wait meanwhile
        late.pending.wait();
        late.check(comm.rank());
        if (comm.rank() == 1) {
          ::usleep(3 * 1000 * static_cast<useconds_t>(limit.count()));
          return;
        }
        sum missing(comm, 2000, 1);
        const std::string text = support::text_of<toroid::timeout_error>([&] { missing.pending.wait(); });
        missing.values = {};
        support::demand_words(text, "all_reduce (call 3", "rank 1");
        sum next(comm, 1, 1);
        demand(support::text_of<toroid::timeout_error>([&] { next.pending.wait(); }) == text, "another than ", text);
      },
      chosen);
}

TEST_CASE("A communicator with a thread is destroyed with calls in flight", "[pending]") {
  for (const std::size_t count : {std::size_t{3}, std::size_t{70'001}}) {
    support::run_both(
        3,
        [=](auto& given) {
          const int rank = given.rank();
          std::vector<sum> sums;
          {
            auto comm = std::move(given);
            toroid::barrier(comm);
            if (rank == 2) return;
            for (int i = 0; i < 3; ++i) sums.emplace_back(comm, count, i);
            if (rank == 1) ::usleep(2000);
          }
          for (sum& s : sums) {
            s.values = {};
            (void)support::text_of<toroid::peer_lost>([&] { s.pending.wait(); });
          }
        },
        by_thread);
  }
}

TEST_CASE("A process whose communicator has a thread refuses to fork ranks", "[pending]") {
  support::run_processes(1, [](auto&) {
    auto comm = toroid::shm::make_communicator("pending-thread-" + std::to_string(::getpid()), 0, 1, by_thread);
    support::run_processes(1, [](auto&) {});  // there is none before the first start
    int one = 1;
    toroid::start_all_reduce(comm, std::span<int>(&one, 1)).wait();
    support::demand_words(support::text_of<toroid::usage_error>([] { toroid::run_processes(1, [](auto&) {}); }),
                          "threads");
    { const auto ended = std::move(comm); }
    support::run_processes(1, [](auto&) {});
  });
}

TEST_CASE("Ranks that want different progress do not come together", "[pending]") {
  const std::string name = "pending-differ-" + std::to_string(::getpid());
  support::run_processes(2, [&](auto& comm) {
    toroid::options chosen;
    if (comm.rank() == 1) chosen = by_thread;
    chosen.timeout = std::chrono::seconds(2);
    const auto meet = [&] { (void)toroid::shm::make_communicator(name, comm.rank(), 2, chosen); };
    if (comm.rank() == 0)
      support::demand_words(support::text_of<toroid::timeout_error>(meet), "other options: progress of 1");
    else
      support::demand_words(support::text_of<toroid::usage_error>(meet), "progress of 1");
  });
}
