// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace toroid::transport {

/// Which process this is, so that others can tell whether it is still there: a process number is used again, but not
/// with the same start time. Numbers mean something only within one process namespace.
struct process_identity {
  std::int32_t process = 0;         ///< 0: not known
  std::uint64_t started = 0;        ///< in clock ticks since boot
  std::uint64_t process_space = 0;  ///< inode of the process namespace
};

namespace detail {

/// Start time of a process; 0 if it does not exist or has ended.
inline std::uint64_t start_time_of(std::int32_t process) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(process));
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[1024];
  const ssize_t length = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (length <= 0) return 0;
  text[length] = '\0';
  const char* field = std::strrchr(text, ')');  // the name before it may contain anything
  if (field == nullptr || field[1] != ' ') return 0;
  const char state = field[2];
  if (state == 'Z' || state == 'X') return 0;
  field += 2;  // field 3; the start time is field 22
  for (int skipped = 3; skipped < 22; ++skipped) {
    field = std::strchr(field, ' ');
    if (field == nullptr) return 0;
    ++field;
  }
  return std::strtoull(field, nullptr, 10);
}

inline std::uint64_t own_process_space() noexcept {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? static_cast<std::uint64_t>(status.st_ino) : 0;
}

}  // namespace detail

inline process_identity this_process() noexcept {
  const std::int32_t process = static_cast<std::int32_t>(::getpid());
  return {process, detail::start_time_of(process), detail::own_process_space()};
}

/// Whether a process has certainly ended. Unknown is no.
inline bool has_ended(const process_identity& who) noexcept {
  if (who.process == 0 || who.started == 0 || who.process_space == 0) return false;
  if (who.process_space != detail::own_process_space()) return false;
  if (detail::start_time_of(static_cast<std::int32_t>(::getpid())) == 0) return false;  // no usable /proc here
  return detail::start_time_of(who.process) != who.started;
}

}  // namespace toroid::transport
