// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

/// A small exhaustive checker of lock-free protocols; this header holds its memory.
///
/// The memory follows the C++20 memory orders by views: each atomic is a list of messages in modification order; a
/// thread's view tells the oldest message of each atomic that it may still read, and what has happened before it. A
/// load may read any message that is not older; an acquire load takes over what the message's release store knew.
/// A store may be put before messages that the thread has not seen. Plain variables have one value, and an access that
/// is not ordered after another thread's conflicting one is a data race.
///
/// Where it differs from the standard: it shows no execution in which a load reads a store that depends on it ("load
/// buffering", which the standard allows to relaxed accesses), and sequentially consistent operations take effect in
/// the order in which they are executed, where the standard would let some of them change places with unordered ones.
///
/// Source: after J. Kang, C.-K. Hur, O. Lahav, V. Vafeiadis, D. Dreyer, "A promising semantics for relaxed-memory
/// concurrency", POPL 2017, without the promises; O. Lahav et al., "Repairing sequential consistency in C/C++11", PLDI
/// 2017, for what sequentially consistent accesses and fences must order.
namespace model {

inline constexpr std::size_t max_threads = 4;
inline constexpr std::size_t max_atomics = 28;

/// What a thread knows, or hands on with a message.
struct view {
  std::array<std::uint8_t, max_atomics> seen{};   ///< by atomic: index of the oldest message that may still be read
  std::array<std::uint8_t, max_threads> clock{};  ///< by thread: how much of it has happened before

  void join_seen(const view& other) noexcept {
    for (std::size_t i = 0; i < max_atomics; ++i) seen[i] = std::max(seen[i], other.seen[i]);
  }
  void join(const view& other) noexcept {
    join_seen(other);
    for (std::size_t i = 0; i < max_threads; ++i) clock[i] = std::max(clock[i], other.clock[i]);
  }
  bool covers(const view& other) const noexcept {
    for (std::size_t i = 0; i < max_atomics; ++i)
      if (seen[i] < other.seen[i]) return false;
    for (std::size_t i = 0; i < max_threads; ++i)
      if (clock[i] < other.clock[i]) return false;
    return true;
  }
};

/// One value that an atomic has had.
struct message {
  std::uint64_t value = 0;
  view released;      ///< what an acquire load of it learns
  bool tied = false;  ///< written by a read-modify-write of the message before: nothing may come between
};

/// A variable that is not atomic.
struct plain_cell {
  std::uint64_t value = 0;
  std::int8_t writer = -1;                             ///< thread of the last write, or -1 if all know of it
  std::uint8_t write_clock = 0;                        ///< that thread's clock then
  std::array<std::uint8_t, max_threads> read_clock{};  ///< by thread: its clock at its last read since; 0 if all know
};

struct thread_state {
  view now;
  view gathered;                  ///< what relaxed loads have read: an acquire fence learns it
  view fenced;                    ///< what was known at the last release fence: relaxed stores hand it on
  std::uint32_t node = 0;         ///< where the thread's program stands
  std::uint8_t barrier_left = 0;  ///< inside a membarrier: bit set of threads that have yet to pass
  std::int8_t asleep_on = -1;     ///< the futex word, or -1
  bool finished = false;
};

inline bool acquires(std::memory_order order) noexcept {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}
inline bool releases(std::memory_order order) noexcept {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

/// All that can change: what interleavings are told apart by.
class state {
 public:
  std::vector<thread_state> threads;
  std::vector<std::vector<message>> atomics;
  std::vector<plain_cell> plains;

  void add_thread() {
    threads.emplace_back();
    threads.back().now.clock[threads.size() - 1] = 1;
  }

  /// Index of the oldest message of `atomic` that `thread` may read with `order`.
  std::size_t oldest(std::size_t thread, std::size_t atomic, std::memory_order order) const noexcept {
    std::size_t index = threads[thread].now.seen[atomic];
    if (order == std::memory_order_seq_cst) index = std::max<std::size_t>(index, m_agreed.seen[atomic]);
    return index;
  }

  /// Whether a store may come right before message `position`; at the end it always may.
  bool room_before(std::size_t atomic, std::size_t position) const noexcept {
    return position == atomics[atomic].size() || !atomics[atomic][position].tied;
  }

  void load(std::size_t thread, std::size_t atomic, std::size_t index, std::memory_order order) noexcept {
    thread_state& self = threads[thread];
    const view& released = atomics[atomic][index].released;
    raise(self.now, atomic, index);
    self.gathered.join(released);
    if (acquires(order)) self.now.join(released);
    if (order == std::memory_order_seq_cst) raise(m_agreed, atomic, index);
  }

  /// Puts a message before the one at `position`, or last.
  void store(std::size_t thread, std::size_t atomic, std::size_t position, std::uint64_t value,
             std::memory_order order) {
    insert(thread, atomic, position, value, order, false);
  }

  /// The store half of a read-modify-write that has read message `index`.
  void modify(std::size_t thread, std::size_t atomic, std::size_t index, std::uint64_t value, std::memory_order order) {
    insert(thread, atomic, index + 1, value, order, true);
  }

  void fence(std::size_t thread, std::memory_order order) {
    thread_state& self = threads[thread];
    if (acquires(order)) self.now.join(self.gathered);
    if (order == std::memory_order_seq_cst) {
      self.now.join_seen(m_agreed);
      m_agreed.join_seen(self.now);
    }
    if (releases(order)) {
      self.fenced = self.now;
      tick(self, thread);
    }
  }

  /// What a membarrier does to each thread. It orders what the thread does before and after against the other threads,
  /// and is not taken to synchronise with anything.
  void agree(std::size_t thread) noexcept {
    threads[thread].now.join_seen(m_agreed);
    m_agreed.join_seen(threads[thread].now);
  }

  /// What relaxed loads gather need not be told apart where no fence can ask for it.
  void forget_gathered() noexcept {
    for (thread_state& thread : threads) thread.gathered = {};
  }

  /// @return the thread whose write is not ordered before this read, or -1
  int read(std::size_t thread, std::size_t plain, std::uint64_t& value) noexcept {
    plain_cell& cell = plains[plain];
    const view& now = threads[thread].now;
    value = cell.value;
    if (unordered_write(cell, thread)) return cell.writer;
    cell.read_clock[thread] = now.clock[thread];
    return -1;
  }

  /// @return the thread whose access is not ordered before this write, or -1
  int write(std::size_t thread, std::size_t plain, std::uint64_t value) noexcept {
    plain_cell& cell = plains[plain];
    const view& now = threads[thread].now;
    if (unordered_write(cell, thread)) return cell.writer;
    for (std::size_t other = 0; other < threads.size(); ++other)
      if (other != thread && cell.read_clock[other] > now.clock[other]) return static_cast<int>(other);
    cell = {};
    cell.value = value;
    cell.writer = static_cast<std::int8_t>(thread);
    cell.write_clock = now.clock[thread];
    return -1;
  }

  /// Forgets what nobody can read or ask about any more, so that states that behave alike are equal.
  void tidy() noexcept {
    for (std::size_t a = 0; a < atomics.size(); ++a) {
      std::size_t first = atomics[a].size() - 1;
      for (const thread_state& thread : threads)
        if (!thread.finished) first = std::min<std::size_t>(first, thread.now.seen[a]);
      if (first != 0) {
        atomics[a].erase(atomics[a].begin(), atomics[a].begin() + static_cast<std::ptrdiff_t>(first));
        for_each_view(
            [&](view& v) { v.seen[a] = static_cast<std::uint8_t>(v.seen[a] > first ? v.seen[a] - first : 0); });
      }
      atomics[a].front().tied = false;
    }
    for (plain_cell& cell : plains) {
      if (cell.writer >= 0 && known_to_all(static_cast<std::size_t>(cell.writer), cell.write_clock)) {
        cell.writer = -1;
        cell.write_clock = 0;
      }
      for (std::size_t t = 0; t < threads.size(); ++t)
        if (known_to_all(t, cell.read_clock[t])) cell.read_clock[t] = 0;
    }
  }

  void save(std::string& bytes) const {
    bytes.clear();
    for (const thread_state& thread : threads) {
      put(bytes, thread.node);
      bytes.push_back(static_cast<char>(thread.barrier_left));
      bytes.push_back(static_cast<char>(thread.asleep_on));
      bytes.push_back(thread.finished ? 1 : 0);
      put(bytes, thread.now);
      put(bytes, thread.gathered);
      put(bytes, thread.fenced);
    }
    put(bytes, m_agreed);
    for (const auto& messages : atomics) {
      bytes.push_back(static_cast<char>(messages.size()));
      for (const message& m : messages) {
        put(bytes, m.value);
        bytes.push_back(m.tied ? 1 : 0);
        put(bytes, m.released);
      }
    }
    for (const plain_cell& cell : plains) {
      put(bytes, cell.value);
      bytes.push_back(static_cast<char>(cell.writer));
      bytes.push_back(static_cast<char>(cell.write_clock));
      for (std::size_t t = 0; t < threads.size(); ++t) bytes.push_back(static_cast<char>(cell.read_clock[t]));
    }
  }

  /// Takes over what save() has written for a state with as many threads, atomics and plain variables.
  void restore(const std::string& bytes) {
    std::size_t at = 0;
    for (thread_state& thread : threads) {
      thread.node = static_cast<std::uint32_t>(number(bytes, at));
      thread.barrier_left = static_cast<std::uint8_t>(bytes[at++]);
      thread.asleep_on = static_cast<std::int8_t>(bytes[at++]);
      thread.finished = bytes[at++] != 0;
      get(bytes, at, thread.now);
      get(bytes, at, thread.gathered);
      get(bytes, at, thread.fenced);
    }
    get(bytes, at, m_agreed);
    for (auto& messages : atomics) {
      messages.resize(static_cast<std::uint8_t>(bytes[at++]));
      for (message& m : messages) {
        m.value = number(bytes, at);
        m.tied = bytes[at++] != 0;
        get(bytes, at, m.released);
      }
    }
    for (plain_cell& cell : plains) {
      cell.value = number(bytes, at);
      cell.writer = static_cast<std::int8_t>(bytes[at++]);
      cell.write_clock = static_cast<std::uint8_t>(bytes[at++]);
      for (std::size_t t = 0; t < threads.size(); ++t) cell.read_clock[t] = static_cast<std::uint8_t>(bytes[at++]);
    }
  }

 private:
  static void raise(view& v, std::size_t atomic, std::size_t index) noexcept {
    v.seen[atomic] = std::max(v.seen[atomic], static_cast<std::uint8_t>(index));
  }

  static void tick(thread_state& self, std::size_t thread) {
    if (self.now.clock[thread] == 255) throw std::length_error("model: a thread releases more often than 254 times");
    ++self.now.clock[thread];
  }

  void insert(std::size_t thread, std::size_t atomic, std::size_t position, std::uint64_t value,
              std::memory_order order, bool tied) {
    thread_state& self = threads[thread];
    auto& messages = atomics[atomic];
    if (messages.size() == 255) throw std::length_error("model: an atomic has more than 255 values");
    if (position != messages.size())
      for_each_view([&](view& v) {
        if (v.seen[atomic] >= position) ++v.seen[atomic];
      });
    message fresh;
    fresh.value = value;
    fresh.tied = tied;
    raise(self.now, atomic, position);
    fresh.released = releases(order) ? self.now : self.fenced;
    if (tied) fresh.released.join(messages[position - 1].released);  // the release sequence goes on
    messages.insert(messages.begin() + static_cast<std::ptrdiff_t>(position), fresh);
    if (releases(order)) tick(self, thread);
    if (order == std::memory_order_seq_cst) raise(m_agreed, atomic, position);
  }

  bool unordered_write(const plain_cell& cell, std::size_t thread) const noexcept {
    const auto writer = static_cast<std::size_t>(cell.writer);
    return cell.writer >= 0 && writer != thread && cell.write_clock > threads[thread].now.clock[writer];
  }

  bool known_to_all(std::size_t thread, std::uint8_t clock) const noexcept {
    for (const thread_state& other : threads)
      if (!other.finished && other.now.clock[thread] < clock) return false;
    return true;
  }

  template <class F>
  void for_each_view(F f) {
    for (thread_state& thread : threads) {
      f(thread.now);
      f(thread.gathered);
      f(thread.fenced);
    }
    f(m_agreed);
    for (auto& messages : atomics)
      for (message& m : messages) f(m.released);
  }

  static void put(std::string& bytes, std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes.push_back(static_cast<char>(value | 128));
    bytes.push_back(static_cast<char>(value));
  }
  void put(std::string& bytes, const view& v) const {
    bytes.append(reinterpret_cast<const char*>(v.seen.data()), atomics.size());
    bytes.append(reinterpret_cast<const char*>(v.clock.data()), threads.size());
  }
  static std::uint64_t number(const std::string& bytes, std::size_t& at) noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(bytes[at++]);
      value |= std::uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
  }
  void get(const std::string& bytes, std::size_t& at, view& v) const {
    for (std::size_t i = 0; i < atomics.size(); ++i) v.seen[i] = static_cast<std::uint8_t>(bytes[at++]);
    for (std::size_t i = 0; i < threads.size(); ++i) v.clock[i] = static_cast<std::uint8_t>(bytes[at++]);
  }

  view m_agreed;  ///< what sequentially consistent operations have agreed on so far
};

}  // namespace model
