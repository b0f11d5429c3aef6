// SPDX-License-Identifier: Apache-2.0
#include "communicator/split_tables.hpp"
#include "support/catch.hpp"
#include "support/launch.hpp"
#include "support/process_state.hpp"
#include "support/sanitizers.hpp"

#include <toroid/collective/barrier.hpp>
#include <toroid/communicator/shm.hpp>
#include <toroid/transport/fault_injecting.hpp>

#include <signal.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

// Splits in which something fails: a rank dies, or is refused what it needs. All ranks get the error, in time, and
// nothing is left behind.

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using support::demand;
using support::demand_words;
using support::text_of;
using toroid::transport::death;
using toroid::transport::faults;

/// Lowers a limit of this process while it lives.
class lowered {
 public:
  lowered(int which, rlim_t limit) : m_which(static_cast<__rlimit_resource>(which)) {
    ::getrlimit(m_which, &m_before);
    rlimit low = m_before;
    low.rlim_cur = limit;
    demand(::setrlimit(m_which, &low) == 0, "the limit could not be lowered");
  }
  lowered(const lowered&) = delete;
  lowered& operator=(const lowered&) = delete;
  ~lowered() { ::setrlimit(m_which, &m_before); }

 private:
  __rlimit_resource m_which;
  rlimit m_before{};
};

/// `culprit` works under a limit while all split; `words` are in the error that all get.
template <class... Words>
void refused_on(int culprit, int limit, rlim_t value, const Words&... words) {
  const toroid::options chosen{.timeout = seconds(60), .region_bytes = 4096, .shared_bytes = 1 << 20};
  support::run_processes(
      4,
      [&](auto& comm) {
        const int descriptors = support::process_state::now().descriptors;
        const std::string text = text_of<toroid::system_error>([&] {
          std::optional<lowered> low;
          if (comm.rank() == culprit) low.emplace(limit, value);
          (void)comm.split(comm.rank() / 2);
        });
        demand_words(text, words...);
        demand(support::process_state::now().descriptors == descriptors, "descriptors are left");
        splits::check_sum(comm, 4);
        auto half = comm.split(comm.rank() / 2);
        splits::check_sum(half, 2);
      },
      chosen);
}

/// What ranks see of one that dies at a given place of a split, or of the barrier after it.
///
/// @param alone  in their processes, so that their descriptors can be counted
template <class Comm>
void outlive(Comm& comm, int victim, bool alone) {
  const auto before = support::process_state::now();
  try {
    {
      auto group = comm.split(comm.rank() % 2);
      toroid::barrier(comm);
    }
    toroid::barrier(comm);
  } catch (const toroid::transport::rank_has_died&) {
    throw;
  } catch (const toroid::peer_lost& error) {
    demand_words(error.what(), support::joined("rank ", victim));
    if (alone)
      demand(support::process_state::now().descriptors == before.descriptors, "descriptors are left: ", error.what());
    throw;
  }
}

constexpr int ranks = 4, victim = 2;
/// Signals and waits of a split and of a barrier.
constexpr std::uint64_t places = 3 * ranks + ranks;

faults fatal_for(int rank, std::uint64_t place, death how) {
  faults chosen;
  if (rank == victim) chosen.dies_at = place, chosen.dies_by = how;
  return chosen;
}

/// A group that is split off a group of processes sets itself up in the same way.
std::unique_ptr<toroid::detail::shm_set_up> set_up_of(int rank, const std::string& name, milliseconds patience) {
  toroid::detail::set_up_of_split split{"toroid: split (call 1)", {}, patience.count() * 1'000'000};
  return std::make_unique<toroid::detail::shm_set_up>(split, name, rank, 2,
                                                      toroid::options{.region_bytes = 4096, .shared_bytes = 1 << 20});
}

std::string fresh_name(const char* purpose) {
  return support::joined("split.", purpose, ".", ::getpid(), ".", toroid::transport::detail::monotonic_nanoseconds());
}

void kill_in_new_group(bool watched) {
  const toroid::options chosen{.timeout = seconds(60), .region_bytes = 4096, .shared_bytes = 1 << 20};
  const support::shared_by_all<std::atomic<int>> seen(ranks);
  const auto f = [&](auto& comm) {
    auto half = comm.split(comm.rank() % 2);
    auto old_half = comm.split(comm.rank() / 2);
    splits::check_sum(half, 2);
    if (comm.rank() == victim) ::kill(::getpid(), SIGKILL);
    if (comm.rank() == 0) demand_words(text_of<toroid::peer_lost>([&] { toroid::barrier(half); }), "rank 1");
    if (comm.rank() == 3) demand_words(text_of<toroid::peer_lost>([&] { toroid::barrier(old_half); }), "rank 0");
    if (comm.rank() % 2 == 1) splits::check_sum(half, 2);
    if (comm.rank() < 2) splits::check_sum(old_half, 2);
    demand_words(text_of<toroid::peer_lost>([&] { toroid::barrier(comm); }), "rank 2");
    demand_words(text_of<toroid::peer_lost>([&] { (void)comm.split(0); }), "rank 2");
    if (comm.rank() % 2 == 1) splits::check_sum(half, 2);
    seen[static_cast<std::size_t>(comm.rank())] = 1;
  };
  const std::string text = text_of<toroid::peer_lost>([&] {
    if (watched)
      support::run_processes(ranks, f, chosen);
    else
      support::run_processes_in_groups(1, ranks, chosen, [&](auto& ends) { f(ends[0]); });
  });
  INFO(text);
  CHECK(text.find("rank 2 was ended by signal 9") != std::string::npos);
  for (int r = 0; r < ranks; ++r) CHECK(seen[static_cast<std::size_t>(r)] == (r == victim ? 0 : 1));
}

/// Rank 0 uses one group, then the other; rank 1 the other way round.
template <class Communicator>
void in_different_order(Communicator& comm) {
  const toroid::options chosen{.timeout = milliseconds(150), .region_bytes = 4096, .shared_bytes = 1 << 20};
  auto a = comm.split(0, 0, chosen);
  auto b = comm.split(0, 0, chosen);
  for (int i = 0; i < 3; ++i) toroid::barrier(a);
  for (int i = 0; i < 5; ++i) toroid::barrier(b);
  std::vector<int> values(5000, 1);
  auto& first = comm.rank() == 0 ? a : b;
  auto& second = comm.rank() == 0 ? b : a;
  const auto began = std::chrono::steady_clock::now();
  const std::string text = text_of<toroid::timeout_error>([&] {
    toroid::all_reduce(first, values);
    toroid::all_reduce(second, values);
  });
  demand(std::chrono::steady_clock::now() - began < seconds(20), "a time-out that took long");
  demand_words(text, comm.rank() == 0 ? "all_reduce (call 4," : "all_reduce (call 6,", "150 ms",
               comm.rank() == 0 ? "rank 1" : "rank 0");
  splits::check_sum(comm, 2);
}

/// Threads of each rank, each with a group that was split off.
template <class Communicator>
void on_threads_of_their_own(Communicator& comm, int calls) {
  std::vector<Communicator> groups;
  for (int g = 0; g < 3; ++g) groups.push_back(comm.split(g == 0 ? 0 : comm.rank() % 2, g));
  toroid::detail::first_error first;
  std::vector<std::thread> threads;
  for (Communicator& group : groups) {
    threads.emplace_back([&] {
      try {
        for (int i = 0; i < calls; ++i) {
          std::array<std::int64_t, 2> values{1, i * 1000 + group.rank()};
          toroid::all_reduce(group, values);
          const std::int64_t p = group.size();
          demand(values[0] == p && values[1] == i * 1000 * p + p * (p - 1) / 2, "sum ", i, " is ", values[0], ", ",
                 values[1]);
        }
      } catch (...) {
        first.note(std::current_exception());
        for (Communicator& other : groups) other.abort();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  first.rethrow();
}

}  // namespace

TEST_CASE("A split for which a founder has no descriptors fails on all ranks", "[split]") {
  if (support::sanitized) {
    WARN("skipped: the checks of virtual calls open descriptors of their own, and take a refusal for a fault");
    return;
  }
  refused_on(0, RLIMIT_NOFILE, 0, "ulimit -n");
  refused_on(2, RLIMIT_NOFILE, 0, "ulimit -n");
}

TEST_CASE("A split for which another rank has no descriptors fails on all ranks", "[split]") {
  if (support::sanitized) {
    WARN("skipped: the checks of virtual calls open descriptors of their own, and take a refusal for a fault");
    return;
  }
  refused_on(3, RLIMIT_NOFILE, 0, "ulimit -n");
}

TEST_CASE("A split for which there is no memory fails on all ranks", "[split]") {
  refused_on(2, RLIMIT_FSIZE, 4096, "ulimit -f");
}

TEST_CASE("A thread that dies anywhere in a split is named to all others", "[split]") {
  const toroid::options chosen{.timeout = seconds(60), .region_bytes = 4096};
  for (std::uint64_t place = 1; place <= places; ++place) {
    INFO("place " << place);
    std::array<std::string, ranks> seen;
    CHECK_THROWS(support::run_threads_over(
        ranks, chosen, toroid::detail::waiting_of(ranks, chosen),
        [&](toroid::transport::threads end) {
          const faults mine = fatal_for(end.rank(), place, death::throws);
          return toroid::transport::fault_injecting<toroid::transport::threads>(std::move(end), mine);
        },
        [&](auto& comm) {
          auto& text = seen[static_cast<std::size_t>(comm.rank())];
          try {
            outlive(comm, victim, false);
          } catch (const toroid::transport::rank_has_died&) {
            text = "died";
            throw;
          } catch (const toroid::peer_lost&) {
            text = "lost";
            throw;
          } catch (const std::exception& error) {
            text = error.what();
            throw;
          }
        }));
    for (int r = 0; r < ranks; ++r) CHECK(seen[static_cast<std::size_t>(r)] == (r == victim ? "died" : "lost"));
  }
}

TEST_CASE("A process that is killed anywhere in a split is named to all others", "[split]") {
  const toroid::options chosen{.timeout = seconds(60), .region_bytes = 4096, .shared_bytes = 1 << 20};
  for (std::uint64_t place = 1; place <= places; place += support::sanitized ? 4 : 1) {
    INFO("place " << place);
    const support::shared_by_all<std::atomic<int>> lost(ranks);
    const std::string text = text_of<toroid::peer_lost>([&] {
      support::run_processes_over(
          ranks, chosen, toroid::detail::waiting_of(ranks, chosen),
          [&](toroid::transport::shm end) {
            const faults mine = fatal_for(end.rank(), place, death::killed);
            return toroid::transport::fault_injecting<toroid::transport::shm>(std::move(end), mine);
          },
          [&](auto& comm) {
            try {
              outlive(comm, victim, true);
            } catch (const toroid::peer_lost&) {
              lost[static_cast<std::size_t>(comm.rank())] = 1;
              throw;
            }
          });
    });
    INFO(text);
    for (int r = 0; r < ranks; ++r) CHECK(lost[static_cast<std::size_t>(r)] == (r == victim ? 0 : 1));
  }
}

TEST_CASE("A founder that goes away while others set up the new group is missed at once", "[split]") {
  const std::string name = fresh_name("founder");
  auto founder = set_up_of(0, name, seconds(60));
  founder->open_door();
  auto other = set_up_of(1, name, seconds(60));
  founder = nullptr;
  demand_words(text_of<toroid::peer_lost>([&] { (void)other->run(); }), "split (call 1)", "rank 0", "went away");
}

TEST_CASE("A rank that does not come to set up the new group is waited for, but not for ever", "[split]") {
  auto founder = set_up_of(0, fresh_name("late"), milliseconds(100));
  founder->open_door();
  demand_words(text_of<toroid::timeout_error>([&] { (void)founder->run(); }), "split (call 1)", "missing: 1");
}

TEST_CASE("A rank killed in a new group is noticed there and in the old one", "[split]") {
  kill_in_new_group(true);
  kill_in_new_group(false);
}

TEST_CASE("Two groups used in different order end in time-outs that name call and number", "[split]") {
  support::run_both(2, [](auto& comm) { in_different_order(comm); });
}

TEST_CASE("Threads of a rank use groups that were split off at the same time", "[split]") {
  support::run_both(4, [](auto& comm) { on_threads_of_their_own(comm, support::sanitized ? 200 : 1000); });
}
