// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/process_state.hpp"
#include "support/sanitizers.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
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
auto wait_for_a_sleeper(useconds_t length) {
  return [length](group_end& end) {
    const double began = seconds_of(CLOCK_MONOTONIC), used = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    if (end.rank() == 0) ::usleep(length);
    std::vector<element> values(10'000, 1);
    end.all_reduce(values, values, {});
    const double share = (seconds_of(CLOCK_THREAD_CPUTIME_ID) - used) / (seconds_of(CLOCK_MONOTONIC) - began);
    // Waiters that never slept would have to share the cores, and so might each use less than half of one.
    demand(share < 0.2, "rank ", end.rank(), " used ", 100 * share, " % of a core to wait");
  };
}

/// A control group of processes, for a while, that get half a core together.
class half_a_core {
 public:
  half_a_core() {
    const std::string name = "/toroid-test-" + std::to_string(::getpid());
    struct place {
      const char *root, *file, *limit, *members;
    };
    for (const place& where : {place{"/sys/fs/cgroup/cpu", "/cpu.cfs_quota_us", "50000", "/tasks"},
                               place{"/sys/fs/cgroup", "/cpu.max", "50000 100000", "/cgroup.procs"},
                               place{"/sys/fs/cgroup/unified", "/cpu.max", "50000 100000", "/cgroup.procs"}}) {
      const std::string folder = where.root + name;
      if (::mkdir(folder.c_str(), 0755) != 0) {
        note(where.root, "no new group can be made there");
        continue;
      }
      if (write_to(folder + where.file, where.limit)) {
        m_folder = folder;
        m_members = folder + where.members;
        return;
      }
      note(where.root, "groups have no share of processor time to set there");
      ::rmdir(folder.c_str());
    }
  }
  half_a_core(const half_a_core&) = delete;
  half_a_core& operator=(const half_a_core&) = delete;
  ~half_a_core() {
    for (int looks = 100; !m_folder.empty() && ::rmdir(m_folder.c_str()) != 0 && looks > 0; --looks) ::usleep(10'000);
  }

  /// Whether there is one; if not, why_not() tells the reason.
  explicit operator bool() const { return !m_folder.empty(); }
  const std::string& why_not() const { return m_why_not; }
  /// Puts the calling process into it, and what it starts.
  void enter() const {
    demand(write_to(m_members, std::to_string(::getpid())), "the group does not take this process");
  }

 private:
  void note(const std::string& root, const char* what) {
    m_why_not += (m_why_not.empty() ? "" : "; ") + root + ": " + what + " (" + std::strerror(errno) + ")";
  }
  static bool write_to(const std::string& file, const std::string& text) {
    const int descriptor = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return false;
    const bool written = ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::close(descriptor);
    return written;
  }

  std::string m_folder, m_members, m_why_not;
};

}  // namespace

TEST_CASE("A thousand short sums of eight ranks on one or two cores take little processor time", "[crowded]") {
  constexpr double limit = support::sanitized ? 20 : 4;
  for (const int cores : {1, 2}) {
    CHECK(processor_seconds(cores, [] { on_processes(8, {}, thousand_sums); }) < limit);
    CHECK(processor_seconds(cores, [] { on_threads(8, {}, thousand_sums); }) < limit);
  }
}

TEST_CASE("Ranks that wait long sleep", "[crowded]") { on_both(4, {}, wait_for_a_sleeper(1'000'000)); }

TEST_CASE("Seven ranks that wait for five seconds sleep, on one core and on two", "[crowded][slow]") {
  for (const int cores : {1, 2}) {
    // A core for a second would be plenty.
    CHECK(processor_seconds(cores, [] { on_threads(8, {}, wait_for_a_sleeper(5'000'000)); }) < 1);
    CHECK(processor_seconds(cores, [] { on_processes(8, {}, wait_for_a_sleeper(5'000'000)); }) < 1);
  }
}

TEST_CASE("Eight ranks get on with half a core", "[crowded]") {
  const half_a_core group;
  if (!group) {
    WARN("skipped: no control group with a quota: " << group.why_not());
    return;
  }
  for (const launcher& launch : {launcher(on_threads), launcher(on_processes)}) {
    const support::ending how = support::in_a_copy([&]() -> std::string {
      group.enter();
      for (int i = 0; i < 5; ++i) launch(8, {}, thousand_sums);  // more than one period of the quota
      return "done";
    });
    INFO(how.text);
    CHECK(how.status == 0);
    CHECK(how.text == "done");
  }
}
