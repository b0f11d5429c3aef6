// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/process_state.hpp"
#include "support/random.hpp"
#include "support/sanitizers.hpp"
#include "support/watchdog.hpp"

#include <toroid/toroid.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

// One of four processes that sum up 1 MiB again and again is killed, from outside, at any moment. Every other rank gets
// the error that names it, soon, and nothing stays behind.

namespace {

using namespace conformance;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::demand;

constexpr int ranks = 4, victim = 2;
constexpr std::size_t bytes = std::size_t{1} << 20;
constexpr seconds deadline(2);
/// From the kill to the last survivor's error. A sanitizer takes its own time on a loaded machine.
constexpr milliseconds soon(support::sanitized ? 20'000 : 3'000);

std::int64_t now() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// What the ranks, the killer and the test tell each other.
struct tale {
  std::atomic<pid_t> process{0};        ///< the victim's
  std::atomic<int> started{0};          ///< ranks that have summed once
  std::atomic<std::int64_t> killed{0};  ///< milliseconds
  struct {
    std::atomic<int> named{0};  ///< has got peer_lost that names the victim
    std::atomic<std::int64_t> at{0};
    char other[400] = {};  ///< what else it has got
  } of[ranks];
};

/// A process of its own that kills the victim after a while; in the caller it returns.
pid_t start_killer(tale& story, useconds_t moment) {
  std::fflush(nullptr);
  const pid_t killer = ::fork();
  if (killer != 0) return killer;
  ::alarm(support::patience);
  while (story.started < ranks) ::usleep(100);
  ::usleep(moment);
  story.killed = now();
  ::kill(story.process, SIGKILL);
  ::_exit(0);
}

void sum_until_lost(tale& story, group_end& end, choice how, bool shared) {
  const std::size_t count = bytes / sizeof(element);
  std::vector<element> ordinary(count, 1);
  std::span<element> values(ordinary);
  if (shared) values = {reinterpret_cast<element*>(end.allocate(bytes).data()), count};
  auto& mine = story.of[end.rank()];
  if (end.rank() == victim) story.process = ::getpid();
  try {
    for (std::uint64_t call = 0;; ++call) {
      std::fill(values.begin(), values.end(), element{1});
      end.all_reduce(values, values, how);
      for (const std::size_t i : {std::size_t{0}, count / 2, count - 1})
        demand(values[i] == ranks, "element ", i, " of sum ", call, " is ", values[i]);
      if (call == 0) ++story.started;
    }
  } catch (const toroid::peer_lost& error) {
    mine.at = now();
    const std::string text = error.what();
    if (text.find("rank 2") != std::string::npos)
      mine.named = 1;
    else
      std::snprintf(mine.other, sizeof mine.other, "%s", text.c_str());
  } catch (const std::exception& error) {
    std::snprintf(mine.other, sizeof mine.other, "not peer_lost: %s", error.what());
  }
}

/// Kills a rank once. The watched way is that of run_processes, whose parent tells the others; else they have to find
/// out for themselves.
void kill_once(choice how, bool shared, bool watched, useconds_t moment, const std::string& directory) {
  INFO(how.name() << (shared ? ", shared memory" : ", ordinary memory") << (watched ? ", watched" : ", not watched")
                  << (directory.empty() ? "" : ", in a directory") << ", killed after " << moment << " us");
  const support::shared_by_all<tale> story;
  const toroid::options chosen{.timeout = deadline, .directory = directory};
  const pid_t killer = start_killer(*story, moment);
  REQUIRE(killer > 0);
  const auto f = [&](group_end& end) { sum_until_lost(*story, end, how, shared); };
  std::string text;
  try {
    text = support::text_of<toroid::peer_lost>([&] {
      if (watched)
        on_processes(ranks, chosen, f);
      else
        support::run_processes_in_groups(1, ranks, chosen, [&](auto& ends) {
          end_of end(ends[0]);
          f(end);
        });
    });
  } catch (const std::exception& error) {
    text = error.what();
  }
  ::kill(killer, SIGKILL);
  ::waitpid(killer, nullptr, 0);
  CHECK(text.find("rank 2 was ended by signal 9") != std::string::npos);
  for (int r = 0; r < ranks; ++r) {
    if (r == victim) continue;
    INFO("rank " << r << ": " << story->of[r].other << " (" << text << ")");
    CHECK(story->of[r].named == 1);
    CHECK(story->of[r].at - story->killed <= soon.count());
  }
}

void kill_often(choice::kind algorithm, int times, std::uint64_t seed) {
  support::random_numbers random(seed);
  const auto before = support::process_state::now();
  const std::set<std::string> files = support::names_in("/dev/shm");
  for (const bool shared : {false, true}) {
    for (int run = 0; run < times; ++run) {
      const useconds_t moment = static_cast<useconds_t>(random.below(run % 4 < 2 ? 2000 : 30'000));
      kill_once({algorithm, 0}, shared, run % 2 == 0, moment, run % 8 == 5 ? "/dev/shm" : "");
    }
  }
  const auto after = support::process_state::now();
  CHECK_FALSE(after.has_children);
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.threads == before.threads);
  CHECK(after.mappings <= before.mappings + 16);
  CHECK(support::new_names_in("/dev/shm", files).empty());
}

/// A rank stops itself for a while; a process of its own wakes it.
void stop_once(group_end& end, milliseconds length) {
  const std::size_t count = bytes / sizeof(element);
  std::vector<element> values(count);
  for (int call = 0; call < 20; ++call) {
    std::fill(values.begin(), values.end(), element{1});
    if (call == 10 && end.rank() == victim) {
      const pid_t self = ::getpid();
      const pid_t waker = ::fork();
      if (waker == 0) {
        ::usleep(static_cast<useconds_t>(1000 * length.count()));
        ::kill(self, SIGCONT);
        ::_exit(0);
      }
      const std::int64_t stopped = now();
      ::kill(self, SIGSTOP);
      demand(now() - stopped >= length.count() / 2, "the rank has not stopped for long");
      ::waitpid(waker, nullptr, 0);
    }
    end.all_reduce(values, values, {});
    demand(values[count - 1] == ranks, "sum ", call, " is ", values[count - 1]);
  }
}

void stop_and_go_on(milliseconds length, const toroid::options& chosen) {
  on_processes(ranks, chosen, [&](group_end& end) { stop_once(end, length); });
  support::run_processes_in_groups(1, ranks, chosen, [&](auto& ends) {
    end_of end(ends[0]);
    stop_once(end, length);
  });
}

constexpr int few_kills = support::sanitized ? 2 : 6, many_kills = 50;

}  // namespace

TEST_CASE("A rank killed in sums by the chosen algorithm is named to all others", "[killed]") {
  kill_often(choice::kind::automatic, few_kills, 1);
}

TEST_CASE("A rank killed in direct sums is named to all others", "[killed]") {
  kill_often(choice::kind::direct, few_kills, 2);
}

TEST_CASE("A rank killed in sums round the ring is named to all others", "[killed]") {
  kill_often(choice::kind::ring, few_kills, 3);
}

TEST_CASE("A stopped process is waited for", "[killed]") {
  stop_and_go_on(milliseconds(400), {.timeout = seconds(10)});
}

TEST_CASE("Fifty kills in sums by the chosen algorithm", "[killed][slow]") {
  kill_often(choice::kind::automatic, many_kills, 4);
}

TEST_CASE("Fifty kills in direct sums", "[killed][slow]") { kill_often(choice::kind::direct, many_kills, 5); }

TEST_CASE("Fifty kills in sums round the ring", "[killed][slow]") { kill_often(choice::kind::ring, many_kills, 6); }

TEST_CASE("A process that is stopped for two of ten seconds is not taken for dead", "[killed][slow]") {
  stop_and_go_on(seconds(2), {.timeout = seconds(10)});
}
