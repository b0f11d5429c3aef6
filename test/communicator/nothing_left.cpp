// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/process_state.hpp"
#include "support/sanitizers.hpp"

#include <toroid/toroid.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

// Groups come and go; set-ups fail. No thread, descriptor, mapping or child stays behind.

namespace {

using namespace conformance;
using support::process_state;

/// Runs `f` often and compares what the process holds before and after.
template <class F>
void leaves_nothing(int times, F f) {
  f();  // what the first run leaves for good: the allocator's arenas, a sanitizer's own thread
  const process_state before = process_state::now();
  const std::set<std::string> files = support::names_in("/dev/shm");
  for (int i = 0; i < times; ++i) f();
  const process_state after = process_state::now();
  CHECK(support::new_names_in("/dev/shm", files).empty());
  CHECK(after.threads == before.threads);
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.mappings <= before.mappings + (support::sanitized ? 4 * times : 16));
  CHECK_FALSE(after.has_children);
}

void sum_once(group_end& end) {
  std::vector<element> values(5000, 1);
  end.all_reduce(values, values, {});
  const std::span<std::byte> memory = end.allocate(100'000);
  if (end.rank() == 0) end.deallocate(memory);
}

/// Two ranks make communicators and destroy them again, each in one process, `times` times.
/// Throws check_failed where something has grown in a rank.
void come_and_go(int times, const toroid::options& chosen) {
  const std::string name = "left." + std::to_string(::getpid()) + ".";
  support::run_processes(2, [&](auto& outer) {
    const auto one = [&](int i) {
      auto comm = toroid::shm::make_communicator(name + std::to_string(i), outer.rank(), 2, chosen);
      std::vector<element> values(i % 2 == 0 ? 3u : 5000u, 1);
      toroid::all_reduce(comm, values);
      support::demand(values[2] == 2, "the sum is ", values[2]);
      (void)toroid::allocate<element>(comm, 100);
    };
    one(-1);
    const process_state before = process_state::now();
    for (int i = 0; i < times; ++i) one(i);
    const process_state after = process_state::now();
    support::demand(after.threads == before.threads, after.threads - before.threads, " threads more");
    support::demand(after.descriptors == before.descriptors, after.descriptors - before.descriptors,
                    " descriptors more");
    const int room = support::sanitized ? 4 * times : 16;
    support::demand(after.mappings <= before.mappings + room, after.mappings - before.mappings, " mappings more");
    support::demand(!after.has_children, "a child more");
  });
}

void fail_once(group_end& end) {
  std::vector<element> values(5000, 1);
  if (end.rank() == 1) throw std::runtime_error("on purpose");
  end.all_reduce(values, values, {});
}

constexpr int times = support::sanitized ? 40 : 200;

void set_limit(int what, rlim_t value) {
  rlimit limit{};
  ::getrlimit(static_cast<__rlimit_resource_t>(what), &limit);
  limit.rlim_cur = value;
  ::setrlimit(static_cast<__rlimit_resource_t>(what), &limit);
}

/// Tries to set up a group in a copy of this process whose limits `spoil` has spoilt, then again once they are mended.
///
/// @return the text of the system_error
template <class Spoil, class Mend, class Launch>
std::string refused(Spoil spoil, Mend mend, Launch launch) {
  const support::ending how = support::in_a_copy([&]() -> std::string {
    const process_state before = process_state::now();
    spoil();
    const std::string text = support::text_of<toroid::system_error>(launch);
    mend();
    const process_state after = process_state::now();
    if (after.threads != before.threads) return "threads stay behind: " + text;
    if (after.descriptors != before.descriptors) return "descriptors stay behind: " + text;
    if (after.has_children) return "children stay behind: " + text;
    launch();
    return text;
  });
  CHECK(how.status == 0);
  return how.text;
}

}  // namespace

TEST_CASE("Groups of threads leave nothing behind", "[left]") {
  leaves_nothing(times, [] { on_threads(3, {}, sum_once); });
  leaves_nothing(times, [] { support::text_of<std::runtime_error>([] { on_threads(3, {}, fail_once); }); });
}

TEST_CASE("Groups of processes leave nothing behind", "[left]") {
  leaves_nothing(times, [] { on_processes(3, {}, sum_once); });
  leaves_nothing(times / 2, [] { support::text_of<toroid::error>([] { on_processes(3, {}, fail_once); }); });
  leaves_nothing(times / 4, [] {
    support::text_of<toroid::peer_lost>([] {
      on_processes(3, {}, [](group_end& end) {
        if (end.rank() == 0) ::_exit(1);
        sum_once(end);
      });
    });
  });
}

TEST_CASE("Communicators that come and go within a process leave nothing behind", "[left]") {
  const std::set<std::string> files = support::names_in("/dev/shm");
  come_and_go(times / 2, {});
  come_and_go(times / 4, {.directory = "/dev/shm"});
  CHECK(support::new_names_in("/dev/shm", files).empty());
}

TEST_CASE("Ten thousand groups of threads leave nothing behind", "[left][slow]") {
  leaves_nothing(10'000, [] { on_threads(2, {}, sum_once); });
}

TEST_CASE("Ten thousand groups of processes leave nothing behind", "[left][slow]") {
  leaves_nothing(10'000, [] { on_processes(2, {}, sum_once); });
}

TEST_CASE("Ten thousand communicators that come and go within a process leave nothing behind", "[left][slow]") {
  const std::set<std::string> files = support::names_in("/dev/shm");
  come_and_go(10'000, {});
  CHECK(support::new_names_in("/dev/shm", files).empty());
}

TEST_CASE("Refused calls and options leave nothing behind", "[left]") {
  leaves_nothing(20, [] {
    support::text_of<toroid::usage_error>([] { on_processes(3, {.region_bytes = 5}, sum_once); });
    support::text_of<toroid::usage_error>([] { on_threads(0, {}, sum_once); });
  });
}

TEST_CASE("Too few descriptors give an error with the remedy", "[left]") {
  const rlim_t enough = 256;
  for (rlim_t few : {4u, 6u, 10u}) {
    const std::string text = refused([&] { set_limit(RLIMIT_NOFILE, static_cast<rlim_t>(::dup(0)) + few); },
                                     [&] {
                                       set_limit(RLIMIT_NOFILE, enough);
                                       ::close(::dup(0) - 1);
                                     },
                                     [] { on_processes(16, {}, sum_once); });
    support::demand_words(text, "ulimit -n", "bytes asked for");
  }
}

TEST_CASE("Too little address space gives an error with the remedy", "[left]") {
  if (support::sanitized) {
    WARN("skipped: sanitizers take address space of their own");
    return;
  }
  rlimit before{};
  ::getrlimit(RLIMIT_AS, &before);
  const std::string text =
      refused([] { set_limit(RLIMIT_AS, rlim_t{2} << 30); }, [&] { set_limit(RLIMIT_AS, before.rlim_cur); },
              [] { on_processes(4, {.shared_bytes = std::size_t{1} << 30}, sum_once); });
  support::demand_words(text, "shared_bytes", "ulimit -v", std::to_string(std::size_t{1} << 30).substr(0, 3));
}

TEST_CASE("A limit on the size of files gives an error with the remedy", "[left]") {
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const std::string text =
      refused([] { set_limit(RLIMIT_FSIZE, rlim_t{1} << 20); }, [&] { set_limit(RLIMIT_FSIZE, before.rlim_cur); },
              [] { on_processes(2, {}, sum_once); });
  support::demand_words(text, "shared_bytes", "ulimit -f");
}

TEST_CASE("Too few processes give an error with the remedy", "[left]") {
  // The limit does not hold for root, so the copy becomes a user who runs nothing else.
  if (::geteuid() != 0 || support::thread_sanitizer) {
    WARN("skipped: " << (support::thread_sanitizer ? "thread sanitizer starts a thread of its own"
                                                   : "only root can become a user who runs nothing else"));
    return;
  }
  constexpr uid_t nobody_else = 54'321;
  rlimit before{};
  ::getrlimit(RLIMIT_NPROC, &before);
  const auto become_few = [] {
    if (::setuid(nobody_else) != 0) throw std::runtime_error("cannot become another user");
    set_limit(RLIMIT_NPROC, 4);
  };
  const auto mend = [&] { set_limit(RLIMIT_NPROC, before.rlim_cur); };
  support::demand_words(refused(become_few, mend, [] { on_processes(8, {}, sum_once); }), "fork of rank", "ulimit -u");
  support::demand_words(refused(become_few, mend, [] { on_threads(8, {}, sum_once); }), "could not be started",
                        "ulimit -u");
}
