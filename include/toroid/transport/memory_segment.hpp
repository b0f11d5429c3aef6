// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/error.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

namespace toroid::transport {

/// A file descriptor that is closed once.
class file_descriptor {
 public:
  file_descriptor() = default;
  explicit file_descriptor(int fd) noexcept : m_fd(fd) {}
  file_descriptor(file_descriptor&& other) noexcept : m_fd(std::exchange(other.m_fd, -1)) {}
  file_descriptor& operator=(file_descriptor&& other) noexcept {
    std::swap(m_fd, other.m_fd);
    return *this;
  }
  ~file_descriptor() { reset(); }
  void reset() noexcept {
    if (m_fd >= 0) ::close(m_fd);
    m_fd = -1;
  }
  int get() const noexcept { return m_fd; }
  explicit operator bool() const noexcept { return m_fd >= 0; }

 private:
  int m_fd = -1;
};

/// Anonymous memory with a descriptor, mapped into this process and, by inheritance or by passing the descriptor, into
/// others. Its address range may be far larger than the memory behind it: reserve() is what takes memory.
class memory_segment {
 public:
  memory_segment() = default;

  /// @param bytes  size of the address range; rounded up to whole pages
  /// @param directory  where the file shall lie, without a name; empty: nowhere, in anonymous memory
  /// @throws system_error  with the path, the bytes asked for and the bytes free
  explicit memory_segment(std::size_t bytes, std::string directory = {})
      : m_directory(std::move(directory)), m_bytes(whole_pages(bytes)) {
    if (m_directory.empty()) {
      m_file = file_descriptor(::memfd_create("toroid", MFD_CLOEXEC | MFD_ALLOW_SEALING));
      if (!m_file) refuse("memfd_create", bytes, "raise the limit on open files (ulimit -n)");
    } else {
      m_file = file_descriptor(::open(m_directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
      if (!m_file) refuse("creating a nameless file", bytes, "give a directory of a tmpfs that this user may write to");
      // Disks cannot promise that a mapped page can be had when it is touched. What has seals is memory.
      if (::fcntl(m_file.get(), F_GET_SEALS) < 0) {
        errno = EOPNOTSUPP;
        refuse("a memory file", bytes, "give a directory of a tmpfs that this user may write to");
      }
    }
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < m_bytes) {
      errno = EFBIG;  // asking all the same would end the process by a signal
      refuse("making a memory file", bytes, "ask for less shared_bytes, or raise ulimit -f");
    }
    if (::ftruncate(m_file.get(), static_cast<off_t>(m_bytes)) != 0)
      refuse("ftruncate", bytes, "ask for less shared_bytes");
    // Nobody can shrink it under a peer's feet: no SIGBUS for touching what was there.
    if (m_directory.empty() && ::fcntl(m_file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
      refuse("sealing a memory file", bytes, "use a kernel with memfd sealing");
    map();
  }

  /// Maps a segment that another process has made and sent.
  /// @throws system_error  if the file is shorter than `bytes`, or can still be shrunk though it is anonymous
  memory_segment(file_descriptor file, std::size_t bytes, std::string directory)
      : m_file(std::move(file)), m_directory(std::move(directory)), m_bytes(whole_pages(bytes)) {
    struct stat status {};
    if (::fstat(m_file.get(), &status) != 0) refuse("fstat", bytes, "check that both processes run the same program");
    const int seals = m_directory.empty() ? ::fcntl(m_file.get(), F_GET_SEALS) : F_SEAL_SHRINK;
    errno = EPROTO;
    if (static_cast<std::size_t>(status.st_size) < m_bytes || seals < 0 || (seals & F_SEAL_SHRINK) == 0)
      refuse("checking a peer's segment", bytes, "check that both processes run the same program");
    map();
  }
  memory_segment(memory_segment&& other) noexcept
      : m_file(std::move(other.m_file)),
        m_directory(std::move(other.m_directory)),
        m_data(std::exchange(other.m_data, nullptr)),
        m_bytes(std::exchange(other.m_bytes, 0)) {}
  memory_segment& operator=(memory_segment&& other) noexcept {
    std::swap(m_file, other.m_file);
    std::swap(m_directory, other.m_directory);
    std::swap(m_data, other.m_data);
    std::swap(m_bytes, other.m_bytes);
    return *this;
  }
  ~memory_segment() {
    if (m_data != nullptr) ::munmap(m_data, m_bytes);
  }

  std::byte* data() const noexcept { return m_data; }
  std::size_t size() const noexcept { return m_bytes; }

  /// Takes the pages of [offset, offset + bytes) now, so that touching them later cannot fail.
  /// @throws system_error
  void reserve(std::size_t offset, std::size_t bytes) {
    const std::size_t first = offset / page() * page();
    const std::size_t length = whole_pages(offset + bytes) - first;
    if (length == 0) return;
    int status = 0;
    do status = ::fallocate(m_file.get(), 0, static_cast<off_t>(first), static_cast<off_t>(length));
    while (status != 0 && errno == EINTR);
    if (status != 0)
      refuse("reserving shared memory", bytes, "free memory, ask for less, or enlarge the tmpfs or the memory limit");
  }

  /// Gives back whole pages inside [offset, offset + bytes); they read as zero afterwards.
  void release(std::size_t offset, std::size_t bytes) noexcept {
    const std::size_t first = whole_pages(offset);
    const std::size_t last = (offset + bytes) / page() * page();
    if (first >= last || !m_file) return;
    ::fallocate(m_file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
                static_cast<off_t>(last - first));
  }

  int file() const noexcept { return m_file.get(); }

  /// Keeps the mapping but not the descriptor: this process will never reserve here.
  void close_file() noexcept { m_file.reset(); }

  static std::size_t page() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }
  static std::size_t whole_pages(std::size_t bytes) noexcept { return (bytes + page() - 1) / page() * page(); }

  /// Bytes of memory that the system can still give.
  static std::size_t available_bytes() noexcept {
    return static_cast<std::size_t>(::sysconf(_SC_AVPHYS_PAGES)) * page();
  }

 private:
  void map() {
    void* const where = ::mmap(nullptr, m_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, m_file.get(), 0);
    if (where == MAP_FAILED) refuse("mmap", m_bytes, "ask for less shared_bytes, or raise ulimit -v");
    m_data = static_cast<std::byte*>(where);
    ::madvise(where, m_bytes, MADV_DONTDUMP);
  }

  [[noreturn]] void refuse(const char* what, std::size_t bytes, const char* remedy) const {
    const int number = errno;
    std::size_t left = available_bytes();
    struct statvfs room {};
    if (!m_directory.empty() && ::statvfs(m_directory.c_str(), &room) == 0) left = room.f_bavail * room.f_frsize;
    throw system_error(std::string("toroid: ") + what + " in " +
                       (m_directory.empty() ? "anonymous memory" : m_directory) + " failed: " + std::strerror(number) +
                       " (" + std::to_string(bytes) + " bytes asked for, " + std::to_string(left) + " bytes free); " +
                       remedy);
  }

  file_descriptor m_file;
  std::string m_directory;
  std::byte* m_data = nullptr;
  std::size_t m_bytes = 0;
};

}  // namespace toroid::transport
