// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/communicator.hpp>
#include <toroid/communicator/options.hpp>
#include <toroid/communicator/rendezvous.hpp>
#include <toroid/core/error.hpp>
#include <toroid/transport/shm.hpp>
#include <toroid/transport/waiting.hpp>

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

/// Tells rank 0 of a group that is split off whether it waits in vain for a rank that has not come yet.
struct set_up_watch {
  bool (*has_given_up)(const void* context, int rank) noexcept = nullptr;  ///< null: nobody looks
  const void* context = nullptr;
};

/// How a group that is split off sets itself up, in contrast to one with a name of its user's.
struct set_up_of_split {
  std::string title;                  ///< what errors begin with
  transport::waiting how;             ///< how the new communicator waits
  std::int64_t nanoseconds_left = 0;  ///< for the set-up
  set_up_watch watch{};
};

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
        m_waiting(waiting_of(ranks, chosen)),
        m_segments(
            std::make_shared<transport::shm::segments>(region_bytes_of(ranks, chosen), shared_bytes_of(chosen))) {}

  /// The same under a name that nobody can know but the ranks: rank 0 opens its door before the others try it.
  shm_set_up(set_up_of_split split, std::string_view name, int rank, int ranks, const options& chosen)
      : shm_set_up(name, rank, ranks, chosen) {
    m_deadline = set_up_deadline(split.nanoseconds_left);
    m_waiting = split.how;
    m_watch = split.watch;
    m_title = std::move(split.title);
  }

  /// On rank 0, if it is split off: from now on the others find it.
  void open_door() {
    m_door = local_socket::make();
    take_name(m_door, "set-up");
  }

  communicator<transport::shm> run() { return {set_up(), m_options}; }
  transport::shm set_up() {
    if (m_rank == 0)
      serve();
    else
      join();
    return {m_rank, m_segments, m_waiting, m_holder.take()};
  }

 private:
  using message = set_up_message;
  using kind = set_up_message::kind;
  using reason = set_up_message::reason;

  std::string abstract_name(const char* purpose) const {
    return "toroid." + std::to_string(::geteuid()) + "." + m_name + "." + purpose;
  }
  bool is_split() const noexcept { return !m_title.empty(); }
  std::string who() const {
    const std::string rank = "rank " + std::to_string(m_rank) + " of " + std::to_string(m_ranks);
    if (is_split()) return m_title + ", " + rank + " of the new group: ";
    return call() + ", " + rank + "): ";
  }
  std::string call() const { return is_split() ? m_title : "toroid: shm::make_communicator(\"" + m_name + "\""; }
  message about(kind what) const {
    message m;
    m.what = what;
    m.rank = m_rank;
    m.ranks = m_ranks;
    m.checking = static_cast<std::uint32_t>(m_options.checking);
    m.progress = static_cast<std::uint32_t>(m_options.progress);
    m.in_directory = m_options.directory.empty() ? 0 : 1;
    m.region_bytes = m_segments->region_bytes();
    m.shared_bytes = m_segments->shared_bytes();
    m.nanoseconds_left = m_deadline.nanoseconds_left();
    return m;
  }

  // Rank 0.

  void serve() {
    if (!is_split()) {
      m_holder = local_socket::make();
      take_name(m_holder, "live");
    }
    if (!m_door) open_door();
    local_socket door = std::move(m_door);
    m_others.resize(static_cast<std::size_t>(m_ranks));
    try {
      gather_ranks(door);
      // Closed before anyone goes on: whoever comes from now on belongs to another group, or to a later one.
      message taken = about(kind::refused);
      taken.say(who() + "a live job (process " + std::to_string(::getpid()) +
                ") has this name and is complete; end it, or choose another");
      turn_away_waiting(door, taken);
      door = local_socket();
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
      refuse_all(door, e);
      throw;
    }
    for (int r = 1; r < m_ranks; ++r)
      other(r).send(about(kind::go));  // one that has died since is noticed in its first call
  }

  void take_name(local_socket& socket, const char* purpose) {
    const int number = socket.listen_at(abstract_name(purpose));
    if (number == 0) return;
    if (number != EADDRINUSE) throw system_error(who() + "its local socket was refused: " + std::strerror(number));
    local_socket probe = local_socket::make();
    std::string owner;
    if (probe.connect_to(abstract_name(purpose)) == 0) owner = " (" + description(probe.other_end()) + ")";
    throw system_error(who() + "a live job" + owner + " has this name; end it, or choose another");
  }
  static std::string description(const local_socket::peer& owner) {
    return "process " + std::to_string(owner.process) + (owner.same_user ? "" : " of another user");
  }

  /// Takes in the other ranks; connections that never speak, or say something else, hold nobody up.
  void gather_ranks(local_socket& door) {
    int missing = m_ranks - 1;
    while (missing > 0) {
      std::vector<pollfd> events{{door.get(), POLLIN, 0}};
      for (const local_socket& s : m_silent) events.push_back({s.get(), POLLIN, 0});
      const int ready = ::poll(events.data(), events.size(),
                               m_watch.has_given_up != nullptr && m_deadline.milliseconds_left() > look_every
                                   ? look_every
                                   : m_deadline.milliseconds_left());
      if (ready == 0 && m_watch.has_given_up != nullptr) look_after_missing();
      if (ready < 0 && errno == EINTR) continue;
      if (m_deadline.passed()) {
        std::string text = who() + "not all ranks came within " +
                           std::to_string(m_options.timeout.count() / 1'000'000) + " ms; missing:";
        for (int r = 1; r < m_ranks; ++r)
          if (!other(r)) text += " " + std::to_string(r);
        if (!m_last_refusal.empty()) text += "; turned away: " + m_last_refusal;
        throw timeout_error(text);
      }
      for (std::size_t i = m_silent.size(); i-- > 0;) {
        if (events[i + 1].revents == 0) continue;
        missing -= introduce(m_silent[i]);
        m_silent.erase(m_silent.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (events[0].revents != 0) {
        constexpr std::size_t most_silent = 1024;
        local_socket caller = door.accept();
        const int number = caller ? 0 : errno;
        if (number == EMFILE || number == ENFILE)
          throw system_error(who() + "a connection from another rank was refused: " + std::strerror(number) +
                             "; raise the limit on open files (ulimit -n), rank 0 needs one a rank");
        if (caller && m_silent.size() < most_silent) m_silent.push_back(std::move(caller));
      }
    }
  }

  void look_after_missing() {
    for (int r = 1; r < m_ranks; ++r)
      if (!other(r) && m_watch.has_given_up(m_watch.context, r))
        throw peer_lost(who() + "rank " + std::to_string(r) + " of the new group has given up");
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
    else if (const std::string difference = other_options(hello); !difference.empty())
      why = "a rank " + std::to_string(hello.rank) + " with other options: " + difference;
    if (why.empty()) {
      // Whoever gives up first does so with a word from here about who is missing.
      m_deadline.no_later_than(hello.nanoseconds_left);
      m_others[static_cast<std::size_t>(hello.rank)] = std::move(caller);
      return 1;
    }
    m_last_refusal = why;
    message refusal = about(kind::refused);
    refusal.why = reason::usage;
    refusal.say(call() + (is_split() ? "" : ")") + ": rank 0 has turned this process away as " + why);
    caller.send(refusal);
    return 0;
  }

  std::string other_options(const message& hello) const {
    const message mine = about(kind::hello);
    const auto differ = [](const char* option, std::uint64_t theirs, std::uint64_t ours) {
      return std::string(option) + " of " + std::to_string(theirs) + " where rank 0 has " + std::to_string(ours);
    };
    if (hello.checking != mine.checking) return differ("checking", hello.checking, mine.checking);
    if (hello.progress != mine.progress) return differ("progress", hello.progress, mine.progress);
    if (hello.region_bytes != mine.region_bytes) return differ("region_bytes", hello.region_bytes, mine.region_bytes);
    if (hello.shared_bytes != mine.shared_bytes) return differ("shared_bytes", hello.shared_bytes, mine.shared_bytes);
    if (hello.in_directory != mine.in_directory)
      return std::string(hello.in_directory != 0 ? "a" : "no") + " directory where rank 0 has " +
             (mine.in_directory != 0 ? "one" : "none");
    return {};
  }

  void await_ready(int rank) {
    const message m = await(other(rank), "rank " + std::to_string(rank));
    if (m.what == kind::refused) throw_refusal(m);
    if (m.what != kind::ready) lost(rank);
  }

  void refuse_all(local_socket& door, const error& e) noexcept {
    message refusal = about(kind::refused);
    refusal.why = dynamic_cast<const timeout_error*>(&e) != nullptr ? reason::timeout
                  : dynamic_cast<const peer_lost*>(&e) != nullptr   ? reason::lost
                                                                    : reason::system;
    refusal.say(e.what());
    for (local_socket& s : m_others)
      if (s) s.send(refusal);
    m_others.clear();  // so that there are descriptors for those at the door
    turn_away_waiting(door, refusal);
  }

  /// Tells those that have not spoken yet, or wait to be let in.
  void turn_away_waiting(local_socket& door, const message& refusal) noexcept {
    for (local_socket& s : m_silent) s.send(refusal);
    m_silent.clear();
    if (!door) return;
    for (int turned_away = 0; turned_away < 4096; ++turned_away) {
      local_socket caller = door.accept();
      if (!caller) break;
      caller.send(refusal);
    }
  }

  [[noreturn]] void lost(int rank) {
    message last_word;
    transport::file_descriptor unexpected;
    local_socket& theirs = other(rank);
    if (theirs.receive(last_word, unexpected) == local_socket::outcome::message && last_word.what == kind::refused)
      throw_refusal(last_word);
    throw peer_lost(who() + "rank " + std::to_string(rank) + " went away during set-up");
  }
  local_socket& other(int rank) noexcept { return m_others[static_cast<std::size_t>(rank)]; }

  // The others.

  void join() {
    local_socket rank0 = find_rank0();
    if (!rank0.other_end().same_user) throw system_error(who() + "rank 0's name is held by another user's process");
    rank0.send(about(kind::hello));  // if it has gone, it may have left a word
    m_deadline.extend(grace);
    try {
      for (int r = 0; r < m_ranks; ++r) {
        transport::file_descriptor file;
        const message m = await(rank0, "rank 0", &file);
        if (m.what == kind::refused) throw_refusal(m);
        if (m.what != kind::segment || m.rank != r || !file) lost_rank0();
        transport::memory_segment& segment = m_segments->receive(std::move(file), m_options.directory);
        if (r != m_rank) segment.close_file();
      }
    } catch (const system_error& e) {
      message refusal = about(kind::refused);
      refusal.say(call() + (is_split() ? "" : ")") + ": rank " + std::to_string(m_rank) + " has failed: " + e.what());
      rank0.send(refusal);
      throw;
    }
    rank0.send(about(kind::ready));
    const message m = await(rank0, "rank 0");
    if (m.what == kind::refused) throw_refusal(m);
    if (m.what != kind::go) lost_rank0();
  }

  [[noreturn]] void lost_rank0() const { throw peer_lost(who() + "rank 0 went away during set-up"); }

  /// Connects to rank 0, which may not have started yet.
  local_socket find_rank0() {
    constexpr std::int64_t patience = 1'000'000'000;  // rank 0 takes the name a moment before it listens
    std::int64_t taken_since = 0;
    local_socket owner;  // connected to whoever holds the name; once, since each attempt stays with it
    while (true) {
      local_socket socket = local_socket::make();
      const int number = socket.connect_to(abstract_name("set-up"));
      if (number == 0) return socket;
      if (is_split() && number == ECONNREFUSED) lost_rank0();  // its door was open: it has gone, or has given up
      if (number != ECONNREFUSED && number != EAGAIN)
        throw system_error(who() + "connecting to rank 0 was refused: " + std::strerror(number));
      if (owner && owner.hung_up()) {
        owner = local_socket();
        taken_since = 0;
      }
      bool taken = static_cast<bool>(owner);
      if (!taken) {
        local_socket probe = local_socket::make();
        const int status = probe.connect_to(abstract_name("live"));
        taken = status == 0 || status == EAGAIN;
        if (status == 0) owner = std::move(probe);
      }
      if (!taken || number == EAGAIN)
        taken_since = 0;
      else if (taken_since == 0)
        taken_since = transport::detail::monotonic_nanoseconds();
      if (taken_since != 0 && transport::detail::monotonic_nanoseconds() - taken_since > patience)
        throw system_error(who() + "a live job" +
                           (owner ? " (" + description(owner.other_end()) + ")" : std::string()) +
                           " has this name and is complete; end it, or choose another");
      if (m_deadline.passed())
        throw timeout_error(who() + "rank 0 did not come within " +
                            std::to_string(m_options.timeout.count() / 1'000'000) + " ms");
      ::usleep(2000);
    }
  }

  [[noreturn]] static void throw_refusal(const message& m) {
    switch (m.why) {
      case reason::usage:
        throw usage_error(m.text);
      case reason::timeout:
        throw timeout_error(m.text);
      case reason::lost:
        throw peer_lost(m.text);
      default:
        throw system_error(m.text);
    }
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
        case local_socket::outcome::no_descriptor:
          throw system_error(who() +
                             "a segment's descriptor could not be taken; raise the limit on open files (ulimit -n)");
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
  transport::waiting m_waiting;
  std::shared_ptr<transport::shm::segments> m_segments;
  set_up_watch m_watch{};
  static constexpr int look_every = 50;                 ///< milliseconds
  std::string m_title;                                  ///< of a group that is split off
  local_socket m_door;                                  ///< rank 0's, until it serves
  static constexpr std::int64_t grace = 1'000'000'000;  ///< for rank 0 to say why it gives up
  std::vector<local_socket> m_others;                   ///< rank 0's
  std::vector<local_socket> m_silent;                   ///< rank 0's: connected, but have said nothing yet
  std::string m_last_refusal;
  local_socket m_holder;  ///< rank 0's: keeps the name taken
};

}  // namespace detail

}  // namespace toroid
