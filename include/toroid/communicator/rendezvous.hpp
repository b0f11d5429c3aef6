// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/error.hpp>
#include <toroid/transport/futex.hpp>
#include <toroid/transport/memory_segment.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

/// How unrelated processes of one host find each other: local sockets with names that vanish with their owners.
namespace toroid::detail {

/// When set-up gives up.
class set_up_deadline {
 public:
  explicit set_up_deadline(std::int64_t nanoseconds) noexcept
      : m_end(transport::detail::monotonic_nanoseconds() + nanoseconds) {}
  int milliseconds_left() const noexcept {
    const std::int64_t left = nanoseconds_left();
    return left <= 0 ? 0 : static_cast<int>(left / 1'000'000 < 1'000'000 ? left / 1'000'000 + 1 : 1'000'000);
  }
  std::int64_t nanoseconds_left() const noexcept { return m_end - transport::detail::monotonic_nanoseconds(); }
  bool passed() const noexcept { return nanoseconds_left() <= 0; }
  /// Gives up as early as somebody who has so much time left.
  void no_later_than(std::int64_t nanoseconds) noexcept {
    const std::int64_t end = transport::detail::monotonic_nanoseconds() + nanoseconds;
    if (end < m_end) m_end = end;
  }
  void extend(std::int64_t nanoseconds) noexcept { m_end += nanoseconds; }

 private:
  std::int64_t m_end;
};

/// What ranks tell each other during set-up. Of fixed size, so that nothing has to be parsed.
struct set_up_message {
  enum class kind : std::uint32_t { hello, segment, ready, go, refused };
  enum class reason : std::uint32_t { system, usage, timeout, lost };  ///< which error a refusal becomes
  static constexpr std::uint32_t right_magic = 0x746f726f;             // "toro"
  static constexpr std::uint32_t right_version = 1;

  std::uint32_t magic = right_magic;
  std::uint32_t version = right_version;
  kind what = kind::hello;
  std::int32_t rank = 0, ranks = 0;
  reason why = reason::system;
  std::uint32_t checking = 0, in_directory = 0, progress = 0;
  std::uint64_t region_bytes = 0, shared_bytes = 0;
  std::int64_t nanoseconds_left = 0;  ///< until the sender gives up
  char text[1000] = {};               ///< of a refusal

  void say(const std::string& words) noexcept { std::strncpy(text, words.c_str(), sizeof text - 1); }
};

/// A local socket that keeps message boundaries and can pass a file descriptor with each message.
class local_socket {
 public:
  local_socket() = default;
  explicit local_socket(transport::file_descriptor socket) noexcept : m_socket(std::move(socket)) {}

  static local_socket make() {
    local_socket made(transport::file_descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    if (!made.m_socket)
      throw system_error(std::string("toroid: a local socket was refused: ") + std::strerror(errno) +
                         "; raise the limit on open files (ulimit -n)");
    return made;
  }

  /// @return 0 or the error number
  int listen_at(const std::string& name) noexcept {
    const address where(name);
    if (::bind(get(), where.pointer(), where.length) != 0) return errno;
    return ::listen(get(), 4096) == 0 ? 0 : errno;
  }
  int connect_to(const std::string& name) noexcept {
    const address where(name);
    int status = 0;
    do status = ::connect(get(), where.pointer(), where.length);
    while (status != 0 && errno == EINTR);
    return status == 0 ? 0 : errno;
  }
  /// @return nothing, and the reason in errno, if nobody waits or the system refuses
  local_socket accept() noexcept {
    return local_socket(transport::file_descriptor(::accept4(get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
  }
  /// Whether the other end is closed.
  bool hung_up() const noexcept {
    pollfd event{get(), 0, 0};
    return ::poll(&event, 1, 0) > 0 && (event.revents & (POLLHUP | POLLERR)) != 0;
  }

  /// Who is at the other end, or has listened there.
  struct peer {
    pid_t process = 0;
    bool same_user = false;
  };
  peer other_end() const noexcept {
    ucred credentials{};
    socklen_t length = sizeof credentials;
    if (::getsockopt(get(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return {};
    return {credentials.pid, credentials.uid == ::geteuid()};
  }

  /// @param file  a descriptor to pass along, or -1
  bool send(const set_up_message& message, int file = -1) noexcept {
    iovec part{const_cast<set_up_message*>(&message), sizeof message};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (file >= 0) {
      header.msg_control = control;
      header.msg_controllen = sizeof control;
      cmsghdr* const rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(rights), &file, sizeof file);
    }
    for (int crowded = 0; true;) {
      if (::sendmsg(get(), &header, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof message)) return true;
      if (errno == EINTR) continue;
      // A user may have only so many descriptors under way: those sent before have to be received first.
      if (errno == ETOOMANYREFS && ++crowded < 10'000) {
        ::usleep(1000);
        continue;
      }
      if (errno != EAGAIN) return false;
      pollfd writable{get(), POLLOUT, 0};
      if (::poll(&writable, 1, 1000) == 0) return false;
    }
  }

  enum class outcome { message, nothing_yet, closed, no_descriptor, garbage };
  /// Takes one message if there is one; a descriptor that came along goes to `file`.
  outcome receive(set_up_message& message, transport::file_descriptor& file) noexcept {
    iovec part{&message, sizeof message};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    ssize_t got = 0;
    // A peer that has closed without reading all resets the connection; what it had to say comes after that news.
    int resets = 0;
    do got = ::recvmsg(get(), &header, MSG_CMSG_CLOEXEC);
    while (got < 0 && (errno == EINTR || (errno == ECONNRESET && ++resets == 1)));
    if (got < 0) return errno == EAGAIN ? outcome::nothing_yet : outcome::closed;
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      int passed = -1;
      std::memcpy(&passed, CMSG_DATA(c), sizeof passed);
      file = transport::file_descriptor(passed);
    }
    if (got == 0) return outcome::closed;
    message.text[sizeof message.text - 1] = '\0';
    if (got != static_cast<ssize_t>(sizeof message) || message.magic != set_up_message::right_magic ||
        (header.msg_flags & MSG_TRUNC) != 0)
      return outcome::garbage;
    return (header.msg_flags & MSG_CTRUNC) != 0 ? outcome::no_descriptor : outcome::message;
  }

  int get() const noexcept { return m_socket.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(m_socket); }
  transport::file_descriptor take() noexcept { return std::move(m_socket); }

 private:
  /// In the abstract space: no file, gone when its owner is.
  struct address {
    explicit address(const std::string& name) noexcept {
      where.sun_family = AF_UNIX;
      std::memcpy(where.sun_path + 1, name.data(), name.size());
      length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    }
    const sockaddr* pointer() const noexcept { return reinterpret_cast<const sockaddr*>(&where); }
    sockaddr_un where{};
    socklen_t length = 0;
  };

  transport::file_descriptor m_socket;
};

}  // namespace toroid::detail
