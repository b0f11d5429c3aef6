// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collective/conformance.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/communicator/shm.hpp>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <vector>

/// Processes that belong to no group, and the groups that they form by name.
namespace named {

using conformance::group_end;
using failure = toroid::detail::child_report::kind;

/// How a process has ended.
struct ending {
  bool right = false;  ///< its function has returned
  failure how = failure::none;
  std::string text;    ///< of the error
  int status = 0;      ///< as waitpid tells it
  double seconds = 0;  ///< that the function took
  std::string words() const { return right ? "right" : text.empty() ? support::joined("status ", status) : text; }
};

/// Forked processes that know nothing of each other; none outlives this object.
class processes {
 public:
  explicit processes(int count)
      : m_reports(static_cast<std::size_t>(count)), m_children(static_cast<std::size_t>(count), -1) {}
  processes(const processes&) = delete;
  processes& operator=(const processes&) = delete;
  ~processes() { kill_all(), join(); }

  template <class F>
  void start(int which, F f) {
    const pid_t parent = ::getpid();
    std::fflush(nullptr);
    const pid_t child = ::fork();
    support::demand(child >= 0, "fork failed: ", std::strerror(errno));
    if (child > 0) {
      m_children[static_cast<std::size_t>(which)] = child;
      return;
    }
    for (pid_t& sibling : m_children) sibling = -1;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    report& mine = m_reports[static_cast<std::size_t>(which)];
    const auto began = std::chrono::steady_clock::now();
    const auto note_time = [&] {
      mine.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    };
    try {
      f();
      note_time();
      mine.finished.store(1);
      ::_exit(0);
    } catch (const std::exception& error) {
      note_time();
      mine.error = toroid::detail::kind_of(std::current_exception());
      std::strncpy(mine.what, error.what(), sizeof mine.what - 1);
    }
    ::_exit(1);
  }

  pid_t id(int which) const { return m_children[static_cast<std::size_t>(which)]; }
  void kill(int which) const { ::kill(id(which), SIGKILL); }
  void kill_all() const {
    for (const pid_t child : m_children)
      if (child > 0) ::kill(child, SIGKILL);
  }

  /// Waits for those that still run.
  std::vector<ending> join() {
    m_endings.resize(m_children.size());
    for (std::size_t i = 0; i < m_children.size(); ++i) {
      if (m_children[i] <= 0) continue;
      ending& how = m_endings[i];
      while (::waitpid(m_children[i], &how.status, 0) < 0 && errno == EINTR) {
      }
      m_children[i] = -1;
      how.right = m_reports[i].finished.load() != 0;
      how.how = m_reports[i].error;
      how.text = m_reports[i].what;
      how.seconds = m_reports[i].seconds;
    }
    return m_endings;
  }

 private:
  struct report : toroid::detail::child_report {
    double seconds = 0;
  };
  support::shared_by_all<report> m_reports;
  std::vector<pid_t> m_children;
  std::vector<ending> m_endings;
};

/// So long that nobody waits for it here.
inline toroid::options patient() {
  return {.timeout = std::chrono::seconds(120), .shared_bytes = std::size_t{1} << 24};
}

/// A name that nobody else uses.
inline std::string fresh_name(const std::string& purpose) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return support::joined("test.", purpose, ".", ::getpid(), ".", now.tv_sec % 100'000, ".", now.tv_nsec);
}

/// Makes the communicator of one rank and runs `f` with it.
void as_rank(const std::string& name, int rank, int ranks, const toroid::options& chosen,
             const std::function<void(group_end&)>& f);

/// Starts a group of processes 0 to ranks - 1 of `where`, each of which runs `f`.
void start_group(processes& where, const std::string& name, int ranks, const toroid::options& chosen,
                 const std::function<void(group_end&)>& f);

/// Runs a group of its own to the end; throws the first error.
void run_group(const std::string& name, int ranks, const toroid::options& chosen,
               const std::function<void(group_end&)>& f);

/// Throws unless every process came to its right end.
void demand_right(const std::vector<ending>& endings);

/// Every collective by every algorithm, in ordinary and in allocated memory, with right results; for any number of
/// ranks. To be called by all.
void use(group_end& end);

/// As use(), but one short sum and one longer one.
void use_briefly(group_end& end);

/// Waits until `come()`; throws after a time that nothing takes.
template <class Condition>
void await(Condition come, const char* what) {
  for (int i = 0; i < 60'000; ++i) {
    if (come()) return;
    ::usleep(1000);
  }
  throw support::check_failed(support::joined("waited in vain until ", what));
}

}  // namespace named
