// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/error.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

namespace toroid::detail {

/// Tells a process from the copies that fork() makes of it, at the price of one load: a page that the kernel wipes in
/// every child. A child that inherits a communicator must not speak for the rank that it was copied from.
class fork_guard {
 public:
  /// @throws system_error
  fork_guard() : m_bytes(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    void* const page = ::mmap(nullptr, m_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
      throw system_error("toroid: mmap of " + std::to_string(m_bytes) + " bytes failed: " + std::strerror(errno) +
                         "; raise ulimit -v");
    ::madvise(page, m_bytes, MADV_WIPEONFORK);
    m_page = static_cast<unsigned char*>(page);
    *m_page = 1;
  }
  fork_guard(fork_guard&& other) noexcept : m_page(std::exchange(other.m_page, nullptr)), m_bytes(other.m_bytes) {}
  fork_guard& operator=(fork_guard&&) = delete;
  ~fork_guard() {
    if (m_page != nullptr) ::munmap(m_page, m_bytes);
  }

  /// Whether this is the process that made the guard.
  bool original() const noexcept { return *m_page != 0; }

 private:
  unsigned char* m_page = nullptr;
  std::size_t m_bytes;
};

}  // namespace toroid::detail
