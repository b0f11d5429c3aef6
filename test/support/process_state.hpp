// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <set>
#include <string>

namespace support {

/// Entries of a folder but for "." and "..".
inline int entries_of(const char* folder) {
  DIR* const stream = ::opendir(folder);
  if (stream == nullptr) return -1;
  int count = 0;
  while (const dirent* entry = ::readdir(stream)) count += entry->d_name[0] != '.';
  ::closedir(stream);
  return count;
}

/// Names in a folder but for "." and "..".
inline std::set<std::string> names_in(const char* folder) {
  std::set<std::string> names;
  DIR* const stream = ::opendir(folder);
  if (stream == nullptr) return names;
  while (const dirent* entry = ::readdir(stream))
    if (const std::string name = entry->d_name; name != "." && name != "..") names.insert(name);
  ::closedir(stream);
  return names;
}

/// Names in `folder` that are not in `before` and stay there. Other programs' files come and go, so it looks for a
/// while.
inline std::set<std::string> new_names_in(const char* folder, const std::set<std::string>& before) {
  std::set<std::string> fresh = names_in(folder);
  for (int looks = 100; looks > 0; --looks) {
    const std::set<std::string> now = names_in(folder);
    std::erase_if(fresh, [&](const std::string& name) { return before.count(name) != 0 || now.count(name) == 0; });
    if (fresh.empty()) break;
    ::usleep(50'000);
  }
  return fresh;
}

/// What of this process must not grow when a group comes and goes.
struct process_state {
  int threads = 0, descriptors = 0, mappings = 0;
  bool has_children = false;

  static process_state now() {
    process_state state;
    state.threads = entries_of("/proc/self/task");
    state.descriptors = entries_of("/proc/self/fd");
    if (std::FILE* const maps = std::fopen("/proc/self/maps", "r")) {
      for (int c = std::fgetc(maps); c != EOF; c = std::fgetc(maps)) state.mappings += c == '\n';
      std::fclose(maps);
    }
    siginfo_t info{};
    state.has_children = ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
    return state;
  }
};

/// How a forked copy of this process ended.
struct ending {
  int status = 0;    ///< as waitpid tells it
  std::string text;  ///< what it had to say
};

/// Runs `f` in a forked copy of this process, which may then spoil its limits, signals or identity.
///
/// @param f  returns a text, short enough for a pipe
template <class F>
ending in_a_copy(F f) {
  int ends[2];
  if (::pipe(ends) != 0) return {-1, "no pipe"};
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text;
    try {
      text = f();
    } catch (const std::exception& error) {
      text = std::string("escaped: ") + error.what();
    }
    const bool all = ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(all ? 0 : 1);
  }
  ::close(ends[1]);
  ending how;
  char buffer[512];
  for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    how.text.append(buffer, static_cast<std::size_t>(n));
  ::close(ends[0]);
  if (child < 0) return {-1, "no fork"};
  while (::waitpid(child, &how.status, 0) < 0 && errno == EINTR) {
  }
  return how;
}

}  // namespace support
