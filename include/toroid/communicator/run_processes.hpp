// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/communicator.hpp>
#include <toroid/communicator/options.hpp>
#include <toroid/communicator/run_threads.hpp>
#include <toroid/communicator/split_shm.hpp>
#include <toroid/core/error.hpp>
#include <toroid/transport/shm.hpp>

#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace toroid {

namespace detail {

/// What comes back from a forked rank.
struct child_report {
  enum class kind : std::int32_t { none, usage, mismatch, timeout, lost, system, other };
  std::atomic<std::uint32_t> order{0};     ///< when it failed, counted from 1; release, pairs with the parent's acquire
  std::atomic<std::uint32_t> finished{0};  ///< the rank's function has returned, rather than ended the process
  kind error = kind::none;
  char what[1000] = {};
};

inline child_report::kind kind_of(const std::exception_ptr& error) noexcept {
  using kind = child_report::kind;
  try {
    std::rethrow_exception(error);
  } catch (const usage_error&) {
    return kind::usage;
  } catch (const mismatch_error&) {
    return kind::mismatch;
  } catch (const timeout_error&) {
    return kind::timeout;
  } catch (const peer_lost&) {
    return kind::lost;
  } catch (const system_error&) {
    return kind::system;
  } catch (...) {
    return kind::other;
  }
}

[[noreturn]] inline void rethrow(const child_report& report) {
  using kind = child_report::kind;
  switch (report.error) {
    case kind::usage:
      throw usage_error(report.what);
    case kind::mismatch:
      throw mismatch_error(report.what);
    case kind::timeout:
      throw timeout_error(report.what);
    case kind::lost:
      throw peer_lost(report.what);
    case kind::system:
      throw system_error(report.what);
    default:
      throw error(report.what);
  }
}

/// Zeroed memory that this process and those it forks share.
class forked_memory {
 public:
  explicit forked_memory(std::size_t bytes) : m_bytes(bytes == 0 ? 1 : bytes) {
    m_data = ::mmap(nullptr, m_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (m_data == MAP_FAILED)
      throw system_error("toroid: mmap of " + std::to_string(bytes) + " bytes failed: " + std::strerror(errno));
  }
  forked_memory(const forked_memory&) = delete;
  forked_memory& operator=(const forked_memory&) = delete;
  ~forked_memory() { ::munmap(m_data, m_bytes); }
  void* data() const noexcept { return m_data; }

 private:
  void* m_data;
  std::size_t m_bytes;
};

/// Threads of a program that the program has not started: thread sanitizer's own.
#if defined(__SANITIZE_THREAD__)
inline constexpr int threads_of_the_runtime = 1;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr int threads_of_the_runtime = 1;
#else
inline constexpr int threads_of_the_runtime = 0;
#endif
#else
inline constexpr int threads_of_the_runtime = 0;
#endif

inline int threads_of_this_process() {
  DIR* const tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return 1;
  int count = 0;
  while (const dirent* task = ::readdir(tasks)) count += task->d_name[0] != '.';
  ::closedir(tasks);
  return count;
}

/// Threads of this program, without those that have been joined and are about to vanish.
inline int lasting_threads() {
  int threads = 0;
  for (int patience = 100; patience > 0; --patience) {
    threads = threads_of_this_process() - threads_of_the_runtime;
    if (threads <= 1) break;
    ::usleep(1000);
  }
  return threads;
}

/// The processes of a group, and the parent that watches them.
class forked_group {
 public:
  forked_group(int ranks, const options& chosen)
      : m_segments(std::make_shared<transport::shm::segments>(ranks, region_bytes_of(ranks, chosen),
                                                              shared_bytes_of(chosen), chosen.directory)),
        m_report_memory(sizeof(std::atomic<std::uint32_t>) + static_cast<std::size_t>(ranks) * sizeof(child_report) +
                        64),
        m_failures(new (m_report_memory.data()) std::atomic<std::uint32_t>{0}),
        m_reports(reinterpret_cast<child_report*>(static_cast<std::byte*>(m_report_memory.data()) + 64)),
        m_children(static_cast<std::size_t>(ranks), -1) {
    for (int r = 0; r < ranks; ++r) new (m_reports + r) child_report;
  }
  forked_group(const forked_group&) = delete;
  forked_group& operator=(const forked_group&) = delete;
  /// Leaves no child behind, whatever happened.
  ~forked_group() {
    for (const pid_t child : m_children)
      if (child > 0) ::kill(child, SIGKILL);
    for (const pid_t child : m_children)
      if (child > 0) await(child);
  }

  /// Forks rank `rank`, which runs `body(segments)` and ends.
  template <class Body>
  void start(int rank, Body&& body) {
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) {
      const int number = errno;
      throw system_error("toroid: run_processes: fork of rank " + std::to_string(rank) +
                         " failed: " + std::strerror(number) + "; raise the limit on processes (ulimit -u)");
    }
    if (child > 0) {
      m_children[static_cast<std::size_t>(rank)] = child;
      return;
    }
    for (pid_t& sibling : m_children) sibling = -1;  // they are the parent's, not this process's
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);              // no rank outlives the program that started it
    if (::getppid() != parent) ::_exit(1);
    int status = 0;
    try {
      for (int r = 0; r < m_segments->ranks(); ++r)
        if (r != rank) (*m_segments)[r].close_file();
      body(m_segments);
      m_reports[rank].finished.store(1, std::memory_order_release);
    } catch (...) {
      report(rank, std::current_exception());
      status = 1;
    }
    std::fflush(nullptr);
    ::_exit(status);
  }

  /// Notes why a rank has failed; in the child.
  void report(int rank, const std::exception_ptr& error) noexcept {
    child_report& mine = m_reports[rank];
    if (mine.order.load(std::memory_order_relaxed) != 0) return;
    mine.error = kind_of(error);
    std::strncpy(mine.what, what_of(error).c_str(), sizeof mine.what - 1);
    mine.order.store(m_failures->fetch_add(1, std::memory_order_acq_rel) + 1, std::memory_order_release);
  }

  /// Waits for all children; whichever ends without having returned is told to its siblings at once. Rethrows the first
  /// error.
  void join() {
    int first_dead = -1;
    std::string how_it_died;
    for (std::size_t left = m_children.size(); left > 0; --left) {
      int status = 0;
      const int rank = next_to_end(status);
      const bool reported = m_reports[rank].order.load(std::memory_order_acquire) != 0;
      if (m_reports[rank].finished.load(std::memory_order_acquire) != 0) continue;
      std::string how = "rank " + std::to_string(rank);
      if (reported)
        how += std::string(" has failed: ") + m_reports[rank].what;
      else if (WIFSIGNALED(status))
        how += " was ended by signal " + std::to_string(WTERMSIG(status));
      else
        how += " ended its process with status " + std::to_string(WEXITSTATUS(status));
      if (!reported && first_dead < 0) {
        first_dead = rank;
        how_it_died = how;
      }
      transport::mapped_endpoint::mark_broken(m_segments->group(), transport::failure::lost, rank, how.c_str());
      m_segments->ring_all();
    }
    if (first_dead >= 0) throw peer_lost("toroid: run_processes: " + how_it_died);
    const child_report* first = nullptr;
    for (std::size_t r = 0; r < m_children.size(); ++r) {
      const std::uint32_t order = m_reports[r].order.load(std::memory_order_acquire);
      if (order != 0 && (first == nullptr || order < first->order.load(std::memory_order_relaxed)))
        first = m_reports + r;
    }
    if (first != nullptr) rethrow(*first);
  }

 private:
  static int await(pid_t child) noexcept {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

  /// A child that the system has reaped by itself, since the program ignores SIGCHLD: how it ended is not known.
  int unreaped(int& status) noexcept {
    for (std::size_t r = 0; r < m_children.size(); ++r) {
      if (m_children[r] <= 0) continue;
      m_children[r] = -1;
      status = 0;
      return static_cast<int>(r);
    }
    return 0;
  }

  /// Reaps one child of this group, and no other child of the program.
  /// @pre  some child has not been reaped
  int next_to_end(int& status) {
    while (true) {
      siginfo_t info{};
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) != 0) {
        if (errno == EINTR) continue;
        return unreaped(status);
      }
      for (std::size_t r = 0; r < m_children.size(); ++r) {
        if (m_children[r] != info.si_pid) continue;
        status = await(m_children[r]);
        m_children[r] = -1;
        return static_cast<int>(r);
      }
      // Some other child of this program has ended first and stays for the program to reap: poll for ours.
      for (std::size_t r = 0; r < m_children.size(); ++r) {
        if (m_children[r] <= 0 || ::waitpid(m_children[r], &status, WNOHANG) <= 0) continue;
        m_children[r] = -1;
        return static_cast<int>(r);
      }
      ::usleep(1000);
    }
  }

  std::shared_ptr<transport::shm::segments> m_segments;
  forked_memory m_report_memory;
  std::atomic<std::uint32_t>* m_failures;
  child_report* m_reports;
  std::vector<pid_t> m_children;
};

}  // namespace detail

/// Runs a function on ranks that are forked processes of this program, over shared memory.
///
/// @tparam F  callable with communicator<transport::shm>&; returns nothing, or something trivially copyable
/// @param ranks   number of ranks, at least 1; more than there are cores is fine
/// @param f       what each rank does, in its own process, with a copy of the caller's memory as it is now; it may
///                throw: its peers are told at once
/// @param chosen  options of the communicator
/// @return what each rank returned, in rank order; nothing if F returns nothing
/// @throws usage_error  for a wrong option or number of ranks, or if this process has other threads (a forked copy of
///         their locks would stay locked); system_error if memory or processes are refused; nothing is left behind.
///         Else the first error that a rank threw (one that is not the library's comes back as toroid::error with its
///         text), or peer_lost if a rank died.
///
/// Cost: a process a rank. The calling process waits. Standard output is flushed before and after.
///
///     std::vector<int> squares = toroid::run_processes(4, [](auto& comm) { return comm.rank() * comm.rank(); });
template <class F>
auto run_processes(int ranks, F&& f, const options& chosen = {}) {
  using comm_type = communicator<transport::shm>;
  static_assert(std::is_invocable_v<F&, comm_type&>, "toroid: run_processes needs a function of a communicator&");
  using result_type = std::invoke_result_t<F&, comm_type&>;
  detail::check_options(ranks, chosen);
  if (const int threads = detail::lasting_threads(); threads > 1)
    throw usage_error("toroid: run_processes: this process has " + std::to_string(threads) +
                      " threads; fork before starting any, or use run_threads");
  std::fflush(nullptr);

  const auto run = [&](auto&& deliver) {
    detail::forked_group group(ranks, chosen);
    for (int r = 0; r < ranks; ++r) {
      group.start(r, [&](std::shared_ptr<transport::shm::segments> segments) {
        comm_type comm(transport::shm(r, std::move(segments), detail::waiting_of(ranks, chosen)), chosen);
        try {
          deliver(r, comm);
        } catch (...) {
          group.report(r, std::current_exception());
          if (detail::access::owns(comm))
            detail::access::session(comm).fail("rank " + std::to_string(r) +
                                               " has failed: " + detail::what_of(std::current_exception()));
          throw;
        }
      });
    }
    group.join();
  };

  if constexpr (std::is_void_v<result_type>) {
    run([&](int, comm_type& comm) { f(comm); });
  } else {
    static_assert(std::is_trivially_copyable_v<result_type>,
                  "toroid: run_processes brings back trivially copyable results only; gather others with a collective");
    const std::size_t size = sizeof(result_type);
    detail::forked_memory memory(static_cast<std::size_t>(ranks) * size);
    std::byte* const slots = static_cast<std::byte*>(memory.data());
    run([&](int rank, comm_type& comm) {
      const result_type result = f(comm);
      std::memcpy(slots + static_cast<std::size_t>(rank) * size, &result, size);
    });
    std::vector<result_type> results;
    for (int r = 0; r < ranks; ++r) {
      alignas(result_type) std::byte copy[sizeof(result_type)];
      std::memcpy(copy, slots + static_cast<std::size_t>(r) * size, size);
      results.push_back(*std::launder(reinterpret_cast<result_type*>(copy)));
    }
    return results;
  }
}

}  // namespace toroid
