// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

/// Thin wrappers of the system calls that waiting needs.
namespace toroid::transport::detail {

static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

/// Sleeps while `word` holds `expected`, at most `nanoseconds`. Works between processes, unlike std::atomic::wait.
/// @return 0, or the error number: EAGAIN (the word had changed), EINTR (a signal), ETIMEDOUT
inline int futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                      std::int64_t nanoseconds) noexcept {
  timespec limit{};
  limit.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000);
  limit.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000);
  const long status = syscall(SYS_futex, &word, FUTEX_WAIT, expected, &limit, nullptr, 0);
  return status == 0 ? 0 : errno;
}

/// Wakes whoever sleeps on `word`.
inline void futex_wake(const std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
}

/// Lets one side of a store-then-load race pay for the ordering of both sides.
///
/// A sender stores a flag and then loads the sleeper count, without a fence. A sleeper raises the count, calls
/// barrier(), then loads the flag: the kernel makes every running thread of the registered processes pass a full
/// barrier, so one of the two sees the other.
enum class expedited { among_threads, among_processes };

/// @return whether the kernel takes part; if not, senders must order their store themselves
inline bool register_expedited(expedited scope) noexcept {
  const int command = scope == expedited::among_threads ? MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED
                                                        : MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
  return syscall(SYS_membarrier, command, 0, 0) == 0;
}

inline void expedited_barrier(expedited scope) noexcept {
  const int command =
      scope == expedited::among_threads ? MEMBARRIER_CMD_PRIVATE_EXPEDITED : MEMBARRIER_CMD_GLOBAL_EXPEDITED;
  syscall(SYS_membarrier, command, 0, 0);
}

/// Nanoseconds of the clock that deadlines count in.
inline std::int64_t monotonic_nanoseconds() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// Tells the core that this is a spin loop.
inline void spin_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace toroid::transport::detail
