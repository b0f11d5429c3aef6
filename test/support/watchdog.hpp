// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

namespace support {

namespace detail {
inline void bark(int) noexcept {
  static constexpr char text[] = "watchdog: no progress, the process is ended\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, sizeof text - 1);
  std::abort();
}
}  // namespace detail

/// Ends the process, through abort(), when it has lived too long. Needs no thread, so that tests can fork beside it.
class watchdog {
 public:
  explicit watchdog(unsigned seconds) {
    ::signal(SIGALRM, detail::bark);
    ::alarm(seconds);
  }
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  ~watchdog() {
    ::alarm(0);
    ::signal(SIGALRM, SIG_DFL);
  }
};

}  // namespace support
