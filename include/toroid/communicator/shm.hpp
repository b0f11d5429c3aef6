// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/communicator.hpp>
#include <toroid/communicator/options.hpp>
#include <toroid/communicator/rendezvous.hpp>
#include <toroid/core/error.hpp>
#include <toroid/transport/shm.hpp>

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace toroid {

namespace detail {

/// Set-up of a named group: rank 0 listens, the others connect; rank 0 makes all segments and passes them round, one at
/// a time so that few descriptors are open at once; all go on together, or none.
class shm_set_up {
 public:
  shm_set_up(std::string_view name, int rank, int ranks, const options& chosen)
      : m_name(name),
        m_rank(rank),
        m_ranks(ranks),
        m_options(chosen),
        m_deadline(chosen.timeout.count()),
        m_segments(
            std::make_shared<transport::shm::segments>(region_bytes_of(ranks, chosen), shared_bytes_of(chosen))) {}

  communicator<transport::shm> run() {
    if (m_rank == 0)
      serve();
    else
      join();
    return {transport::shm(m_rank, m_segments, waiting_of(m_ranks, m_options), m_holder.take()), m_options};
  }

 private:
  using message = set_up_message;
  using kind = set_up_message::kind;

  std::string abstract_name(const char* purpose) const {
    return "toroid." + std::to_string(::geteuid()) + "." + m_name + "." + purpose;
  }
  std::string who() const {
    return "toroid: shm::make_communicator(\"" + m_name + "\", rank " + std::to_string(m_rank) + " of " +
           std::to_string(m_ranks) + "): ";
  }
  message about(kind what) const {
    message m;
    m.what = what;
    m.rank = m_rank;
    m.ranks = m_ranks;
    m.checking = static_cast<std::uint32_t>(m_options.checking);
    m.region_bytes = m_segments->region_bytes();
    m.shared_bytes = m_segments->shared_bytes();
    return m;
  }

  // Rank 0.

  void serve() {
    m_holder = local_socket::make();
    if (const int number = m_holder.listen_at(abstract_name("live")); number != 0) refuse_taken_name(number);
    local_socket door = local_socket::make();
    if (const int number = door.listen_at(abstract_name("set-up")); number != 0) refuse_taken_name(number);
    m_others.resize(static_cast<std::size_t>(m_ranks));
    gather_ranks(door);
    try {
      for (int r = 0; r < m_ranks; ++r) {
        transport::memory_segment& segment = m_segments->make(m_options.directory);
        for (int to = 1; to < m_ranks; ++to) {
          message m = about(kind::segment);
          m.rank = r;
          if (!other(to).send(m, segment.file())) lost(to);
        }
        if (r != 0) segment.close_file();
      }
      for (int r = 1; r < m_ranks; ++r) await_ready(r);
    } catch (const error& e) {
      refuse_all(e.what());
      throw;
    }
    for (int r = 1; r < m_ranks; ++r)
      other(r).send(about(kind::go));  // one that has died since is noticed in its first call
  }

  [[noreturn]] void refuse_taken_name(int number) {
    if (number != EADDRINUSE) throw system_error(who() + "its local socket was refused: " + std::strerror(number));
    local_socket probe = local_socket::make();
    std::string owner;
    if (probe.connect_to(abstract_name("live")) == 0)
      owner = " (process " + std::to_string(probe.other_end().process) + ")";
    throw system_error(who() + "a live job" + owner + " has this name; end it, or choose another");
  }

  /// Takes in the other ranks; connections that never speak, or say something else, hold nobody up.
  void gather_ranks(local_socket& door) {
    std::vector<local_socket> silent;
    int missing = m_ranks - 1;
    while (missing > 0) {
      std::vector<pollfd> events{{door.get(), POLLIN, 0}};
      for (const local_socket& s : silent) events.push_back({s.get(), POLLIN, 0});
      const int ready = ::poll(events.data(), events.size(), m_deadline.milliseconds_left());
      if (ready < 0 && errno == EINTR) continue;
      if (m_deadline.passed()) {
        std::string text = who() + "not all ranks came within " +
                           std::to_string(m_options.timeout.count() / 1'000'000) + " ms; missing:";
        for (int r = 1; r < m_ranks; ++r)
          if (!other(r)) text += " " + std::to_string(r);
        if (!m_last_refusal.empty()) text += "; turned away: " + m_last_refusal;
        refuse_all(text);
        throw timeout_error(text);
      }
      for (std::size_t i = silent.size(); i-- > 0;) {
        if (events[i + 1].revents == 0) continue;
        missing -= introduce(silent[i]);
        silent.erase(silent.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (events[0].revents != 0) {
        constexpr std::size_t most_silent = 1024;
        local_socket caller = door.accept();
        if (caller && silent.size() < most_silent) silent.push_back(std::move(caller));
      }
    }
  }

  /// @return 1 if a rank that was missing has come
  int introduce(local_socket& caller) {
    message hello;
    transport::file_descriptor unexpected;
    const local_socket::outcome got = caller.receive(hello, unexpected);
    std::string why;
    if (got != local_socket::outcome::message || hello.what != kind::hello)
      why = "a connection that is no rank of this library";
    else if (!caller.other_end().same_user)
      why = "a process of another user";
    else if (hello.version != message::right_version)
      why = "a rank with another version of the set-up protocol";
    else if (hello.ranks != m_ranks)
      why = "a rank " + std::to_string(hello.rank) + " of " + std::to_string(hello.ranks) + " ranks, where there are " +
            std::to_string(m_ranks);
    else if (hello.rank < 1 || hello.rank >= m_ranks)
      why = "a rank " + std::to_string(hello.rank);
    else if (other(hello.rank))
      why = "a second rank " + std::to_string(hello.rank) + "; are there two jobs of this name?";
    else if (hello.checking != static_cast<std::uint32_t>(m_options.checking) ||
             hello.region_bytes != m_segments->region_bytes() || hello.shared_bytes != m_segments->shared_bytes())
      why = "a rank " + std::to_string(hello.rank) + " with other options";
    if (why.empty()) {
      m_others[static_cast<std::size_t>(hello.rank)] = std::move(caller);
      return 1;
    }
    m_last_refusal = why;
    message refusal = about(kind::refused);
    refusal.say("rank 0 of \"" + m_name + "\" has turned this process away as " + why);
    caller.send(refusal);
    return 0;
  }

  void await_ready(int rank) {
    const message m = await(other(rank), "rank " + std::to_string(rank));
    if (m.what == kind::refused) throw system_error(m.text);
    if (m.what != kind::ready) lost(rank);
  }

  void refuse_all(const std::string& text) noexcept {
    message refusal = about(kind::refused);
    refusal.say(text);
    for (local_socket& s : m_others)
      if (s) s.send(refusal);
  }

  [[noreturn]] void lost(int rank) const {
    throw peer_lost(who() + "rank " + std::to_string(rank) + " went away during set-up");
  }
  local_socket& other(int rank) noexcept { return m_others[static_cast<std::size_t>(rank)]; }

  // The others.

  void join() {
    local_socket rank0 = find_rank0();
    if (!rank0.other_end().same_user) throw system_error(who() + "rank 0's name is held by another user's process");
    if (!rank0.send(about(kind::hello))) lost(0);
    try {
      for (int r = 0; r < m_ranks; ++r) {
        transport::file_descriptor file;
        const message m = await(rank0, "rank 0", &file);
        if (m.what == kind::refused) throw_refusal(m);
        if (m.what != kind::segment || m.rank != r || !file) lost(0);
        transport::memory_segment& segment = m_segments->receive(std::move(file), m_options.directory);
        if (r != m_rank) segment.close_file();
      }
    } catch (const system_error& e) {
      message refusal = about(kind::refused);
      refusal.say("rank " + std::to_string(m_rank) + ": " + e.what());
      rank0.send(refusal);
      throw;
    }
    rank0.send(about(kind::ready));
    const message m = await(rank0, "rank 0");
    if (m.what == kind::refused) throw_refusal(m);
    if (m.what != kind::go) lost(0);
  }

  /// Connects to rank 0, which may not have started yet.
  local_socket find_rank0() {
    constexpr std::int64_t patience = 1'000'000'000;  // rank 0 takes the name a moment before it listens
    std::int64_t taken_since = 0;
    while (true) {
      local_socket socket = local_socket::make();
      const int number = socket.connect_to(abstract_name("set-up"));
      if (number == 0) return socket;
      if (number != ECONNREFUSED && number != EAGAIN)
        throw system_error(who() + "connecting to rank 0 was refused: " + std::strerror(number));
      local_socket probe = local_socket::make();
      if (number == ECONNREFUSED && probe.connect_to(abstract_name("live")) == 0) {
        const std::int64_t now = transport::detail::monotonic_nanoseconds();
        if (taken_since == 0) taken_since = now;
        if (now - taken_since > patience)
          throw system_error(who() + "a live job (process " + std::to_string(probe.other_end().process) +
                             ") has this name and is complete; end it, or choose another");
      } else {
        taken_since = 0;
      }
      if (m_deadline.passed())
        throw timeout_error(who() + "rank 0 did not come within " +
                            std::to_string(m_options.timeout.count() / 1'000'000) + " ms");
      ::usleep(2000);
    }
  }

  [[noreturn]] static void throw_refusal(const message& m) {
    const std::string text = m.text;
    if (text.find("not all ranks came") != std::string::npos) throw timeout_error(text);
    if (text.find("went away") != std::string::npos) throw peer_lost(text);
    throw system_error(text);
  }

  // Both.

  message await(local_socket& from, const std::string& whom, transport::file_descriptor* file = nullptr) {
    while (true) {
      message m;
      transport::file_descriptor passed;
      switch (from.receive(m, passed)) {
        case local_socket::outcome::message:
          if (file != nullptr) *file = std::move(passed);
          return m;
        case local_socket::outcome::nothing_yet:
          break;
        default:
          throw peer_lost(who() + whom + " went away during set-up");
      }
      pollfd event{from.get(), POLLIN, 0};
      ::poll(&event, 1, m_deadline.milliseconds_left());
      if (m_deadline.passed())
        throw timeout_error(who() + "no answer from " + whom + " within " +
                            std::to_string(m_options.timeout.count() / 1'000'000) + " ms");
    }
  }

  std::string m_name;
  int m_rank, m_ranks;
  options m_options;
  set_up_deadline m_deadline;
  std::shared_ptr<transport::shm::segments> m_segments;
  std::vector<local_socket> m_others;  ///< rank 0's
  std::string m_last_refusal;
  local_socket m_holder;  ///< rank 0's: keeps the name taken
};

}  // namespace detail

namespace shm {

/// Joins processes of one host, however they were started, into a group over shared memory.
///
/// Rank 0 takes the name, the others find it; segments of memory are passed between them and have no names. When a
/// process dies, all that is its own goes with it. The name is per user and per network namespace; it stays taken as
/// long as rank 0's communicator lives, and a second job of that name is refused on all its ranks. Let names differ
/// between jobs that start at the same time (put the scheduler's job number into them).
///
/// @param name    1 to 64 characters, without null characters
/// @param rank    this process's rank, in [0, ranks); each rank once
/// @param ranks   number of ranks, the same in all processes
/// @param chosen  the same in all processes; `timeout` bounds the set-up too
/// @return the communicator, once all ranks have theirs
/// @throws usage_error  for a wrong argument; system_error if the name is taken or memory or descriptors are refused,
/// on
///         all ranks; timeout_error if not all ranks come in time, naming those missing; peer_lost if one dies
///         meanwhile. Nothing is left behind.
///
/// Cost: two local sockets a rank during set-up, one on rank 0 afterwards; options.region_bytes times 4 of memory a
/// rank. Collective.
///
///     auto comm = toroid::shm::make_communicator("my-job", rank, ranks, {.timeout = 10s});
inline communicator<transport::shm> make_communicator(std::string_view name, int rank, int ranks,
                                                      const options& chosen = {}) {
  detail::check_options(ranks, chosen);
  if (rank < 0 || rank >= ranks)
    throw usage_error("toroid: shm::make_communicator: rank " + std::to_string(rank) + " is not one of " +
                      std::to_string(ranks));
  if (name.empty() || name.size() > 64 || name.find('\0') != std::string_view::npos)
    throw usage_error("toroid: shm::make_communicator: a name has 1 to 64 characters, none of them null");
  return detail::shm_set_up(name, rank, ranks, chosen).run();
}

}  // namespace shm
}  // namespace toroid
