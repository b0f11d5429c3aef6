// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/error.hpp>
#include <toroid/transport/background.hpp>
#include <toroid/transport/futex.hpp>
#include <toroid/transport/mailbox.hpp>
#include <toroid/transport/waiting.hpp>

#include <sched.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace toroid::transport {

/// Everything about one rank of a mapped group that does not depend on where the memory comes from: signalling,
/// waiting, waking, breaking.
class mapped_endpoint {
 public:
  struct peer_memory {
    mailbox* box = nullptr;
    std::byte* regions = nullptr;  ///< region_count hand-over regions, one after the other
  };

  mapped_endpoint(int rank, std::vector<peer_memory> peers, std::size_t region_bytes, group_state& group, waiting how,
                  detail::expedited scope)
      : m_rank(rank),
        m_peers(std::move(peers)),
        m_region_bytes(region_bytes),
        m_group(&group),
        m_waiting(how),
        m_scope(scope),
        m_expedited(detail::register_expedited(scope)) {}

  int rank() const noexcept { return m_rank; }
  int size() const noexcept { return static_cast<int>(m_peers.size()); }
  mailbox& box(int rank) const noexcept { return *m_peers[static_cast<std::size_t>(rank)].box; }
  std::byte* region(int rank, int index) const noexcept {
    return m_peers[static_cast<std::size_t>(rank)].regions + static_cast<std::size_t>(index) * m_region_bytes;
  }
  std::size_t region_bytes() const noexcept { return m_region_bytes; }
  group_state& group() const noexcept { return *m_group; }
  const waiting& how() const noexcept { return m_waiting; }

  /// Publishes `value` and wakes whoever sleeps.
  /// @return the group's attention word as it stood after the store: not zero if somebody sleeps or the group is broken
  std::uint64_t signal(std::atomic<std::uint64_t>& flag, std::uint64_t value) noexcept {
    std::uint64_t attention = 0;
    if (m_expedited) [[likely]] {
      flag.store(value, std::memory_order_release);         // pairs with the acquire load in wait()
      std::atomic_signal_fence(std::memory_order_seq_cst);  // the sleeper's expedited barrier does the rest
      attention = m_group->attention.load(std::memory_order_relaxed);
    } else {
      flag.exchange(value, std::memory_order_seq_cst);  // a store that no later load in that order can overtake
      attention = m_group->attention.load(std::memory_order_seq_cst);
    }
    if (attention != 0) [[unlikely]]
      wake_sleepers();
    return attention;
  }

  /// Returns once `flag`, which `peer` writes, is at least `value`.
  /// @throws timeout_error, peer_lost, mismatch_error
  void wait(int peer, const std::atomic<std::uint64_t>& flag, std::uint64_t value, const wait_context& context) {
    if (spin(flag, value)) [[likely]]
      return;
    wait_long(peer, flag, value, context, detail::futex_wait);
  }

  /// wait() with another way to sleep, so that tests can interrupt it.
  ///
  /// @tparam Sleep  sleeps on a doorbell: takes and returns what futex_wait does
  template <class Sleep>
  void wait_with(Sleep sleep, int peer, const std::atomic<std::uint64_t>& flag, std::uint64_t value,
                 const wait_context& context) {
    if (!spin(flag, value)) wait_long(peer, flag, value, context, sleep);
  }

  /// Throws if it is in vain to wait for `flag`, which has not come: the group is broken, or breaks now.
  ///
  /// @param waited  nanoseconds since it has been waited for
  /// @param quiet   nothing has been heard for a while: see whether the peers' processes live
  /// @throws timeout_error, peer_lost, mismatch_error
  void examine(int peer, const std::atomic<std::uint64_t>& flag, std::uint64_t value, const wait_context& context,
               std::int64_t waited, bool quiet) {
    const auto come = [&] { return flag.load(std::memory_order_acquire) >= value; };
    if (broken()) {
      if (come()) return;
      throw_broken(context);
    }
    if (box(peer).left.load(std::memory_order_acquire) != 0 && !come())
      fail(failure::lost, peer, context, "rank " + std::to_string(peer) + " has left the communicator");
    if (const int dead = quiet ? dead_peer() : -1; dead >= 0 && !come())
      fail(failure::lost, dead, context, "the process of rank " + std::to_string(dead) + " has ended");
    if (waited >= m_waiting.timeout && !come()) fail(failure::timeout, peer, context, timeout_text(peer, context));
  }

  /// Wakes this rank's own thread, should it sleep: from another one that has broken the group.
  void wake_self() const noexcept {
    order_against_signals();
    ring(box(m_rank));
  }

  /// Marks the group as broken, with the first reason given, and wakes everyone.
  void break_group(failure kind, int culprit, const std::string& text) noexcept {
    mark_broken(*m_group, kind, culprit, text.c_str());
    order_against_signals();
    wake_sleepers();
  }

  /// break_group for whoever is not a rank: the parent of forked ranks, say. Ring the doorbells afterwards.
  static void mark_broken(group_state& group, failure kind, int culprit, const char* text) noexcept {
    std::uint32_t nobody_yet = 0;
    if (group.reason_state.compare_exchange_strong(nobody_yet, 1, std::memory_order_acq_rel)) {
      group.reason_kind = kind;
      group.reason_rank = culprit;
      std::strncpy(group.reason, text, sizeof group.reason - 1);
      group.reason_state.store(2, std::memory_order_release);  // pairs with throw_broken's acquire
    }
    group.attention.fetch_or(group_state::broken_bit, std::memory_order_seq_cst);
  }

  bool broken() const noexcept {
    return (m_group->attention.load(std::memory_order_acquire) & group_state::broken_bit) != 0;
  }

  /// Throws the error that has broken the group.
  [[noreturn]] void throw_broken(const wait_context& context) const {
    for (int i = 0; i < 1000 && m_group->reason_state.load(std::memory_order_acquire) != 2; ++i) sched_yield();
    std::string text = describe(context) + ": ";
    if (m_group->reason_state.load(std::memory_order_acquire) != 2) throw peer_lost(text + "the group has failed");
    text += m_group->reason;
    switch (m_group->reason_kind) {
      case failure::timeout:
        throw timeout_error(text);
      case failure::mismatch:
        throw mismatch_error(text);
      default:
        throw peer_lost(text);
    }
  }

  /// Makes every store that a peer signalled before now, or its view of the broken mark, visible: the costly half of
  /// the pairing in signal().
  void order_against_signals() const noexcept {
    if (m_expedited) detail::expedited_barrier(m_scope);
  }

  /// Throws what has broken the group; if nothing has yet, then that `peer` is lost, for the reason given.
  [[noreturn]] void throw_lost(int peer, const wait_context& context, const std::string& why) {
    if (broken()) throw_broken(context);
    fail(failure::lost, peer, context, why);
  }

  void wake_sleepers() const noexcept {
    for (int r = 0; r < size(); ++r) {
      if (r == m_rank) continue;
      ring(box(r));
    }
  }

  static void ring(mailbox& box) noexcept {
    if (box.sleeping.load(std::memory_order_seq_cst) == 0) return;
    box.doorbell.fetch_add(1, std::memory_order_release);
    detail::futex_wake(box.doorbell);
  }

  static std::string describe(const wait_context& context) {
    std::string text = std::string("toroid: ") + context.operation + " (call " + std::to_string(context.call);
    if (context.at.line != 0) text += std::string(", ") + context.at.file + ":" + std::to_string(context.at.line);
    return text + ")";
  }

 private:
  bool spin(const std::atomic<std::uint64_t>& flag, std::uint64_t value) const noexcept {
    for (int i = 0; flag.load(std::memory_order_acquire) < value; ++i) {  // pairs with the release in signal()
      if (i >= m_waiting.spins) return false;
      detail::spin_pause();
    }
    return true;
  }

  template <class Sleep>
  [[gnu::noinline, gnu::cold]] void wait_long(int peer, const std::atomic<std::uint64_t>& flag, std::uint64_t value,
                                              const wait_context& context, Sleep sleep) {
    const std::int64_t began = detail::monotonic_nanoseconds();
    constexpr std::int64_t longest_yielding = 5'000'000;  // on a busy machine a yield may take milliseconds
    background& others = background::of_this_thread();
    using outcome = background_task::outcome;
    for (int i = 0; i < m_waiting.yields; ++i) {
      if (others.empty() || others.advance() != outcome::moved) sched_yield();
      if (flag.load(std::memory_order_acquire) >= value) return;
      if (i % 8 == 7 && detail::monotonic_nanoseconds() - began > longest_yielding) break;
    }
    constexpr std::int64_t slice = 100'000'000;  // a lost peer is noticed at least this often
    constexpr std::int64_t shortest_pause = 20'000, longest_pause = 1'000'000;  // with others to look after
    std::int64_t pause = shortest_pause;
    std::int64_t heard = began;  // when somebody has rung, or the peers have been looked after
    mailbox& mine = box(m_rank);
    while (true) {
      const outcome elsewhere = others.advance();
      const std::int64_t now = detail::monotonic_nanoseconds();
      const bool quiet = now - heard >= slice;  // time to look after the peers
      if (quiet) heard = now;
      const std::int64_t waited = context.waited(began, now);
      examine(peer, flag, value, context, waited, quiet);
      if (flag.load(std::memory_order_acquire) >= value) return;
      if (elsewhere == outcome::moved) {
        pause = shortest_pause;
        continue;
      }
      const std::int64_t remaining = m_waiting.timeout - waited;
      std::int64_t longest = remaining < slice ? remaining : slice;
      if (elsewhere == outcome::stuck) {
        if (pause < longest) longest = pause;
        pause = pause < longest_pause / 2 ? 2 * pause : longest_pause;
      }
      const std::uint32_t seen = mine.doorbell.load(std::memory_order_acquire);
      mine.sleeping.store(1, std::memory_order_seq_cst);
      m_group->attention.fetch_add(1, std::memory_order_seq_cst);
      order_against_signals();
      // Either this load sees the peer's store, or the peer's load of `attention` has seen this sleeper.
      const bool come = flag.load(std::memory_order_seq_cst) >= value;
      if (!come && !broken() && sleep(mine.doorbell, seen, longest) != ETIMEDOUT)
        heard = detail::monotonic_nanoseconds();
      m_group->attention.fetch_sub(1, std::memory_order_seq_cst);
      mine.sleeping.store(0, std::memory_order_relaxed);
      if (flag.load(std::memory_order_acquire) >= value) return;
    }
  }

  /// A rank whose process has ended without leaving, or -1. Ranks that are threads of one process are never asked.
  int dead_peer() const noexcept {
    if (m_scope == detail::expedited::among_threads) return -1;
    for (int r = 0; r < size(); ++r)
      if (r != m_rank && box(r).owner_known.load(std::memory_order_acquire) != 0 &&
          box(r).left.load(std::memory_order_acquire) == 0 && has_ended(box(r).owner))
        return r;
    return -1;
  }

  [[noreturn]] void fail(failure kind, int culprit, const wait_context& context, const std::string& what) {
    break_group(kind, culprit, "rank " + std::to_string(m_rank) + " reports: " + what);
    throw_broken(context);
  }

  std::string timeout_text(int peer, const wait_context& context) const {
    std::string text = "no answer within " + std::to_string(m_waiting.timeout / 1'000'000) + " ms in step " +
                       std::to_string(context.step) + " after " + std::to_string(context.bytes_done) +
                       " bytes; waited for rank " + std::to_string(peer) + "; not yet in this call:";
    bool all_in = true;
    for (int r = 0; r < size(); ++r) {
      if (r == m_rank || box(r).entries[context.call & 1].sequence.load(std::memory_order_acquire) >= context.call)
        continue;
      text += " rank " + std::to_string(r);
      all_in = false;
    }
    return all_in ? text + " none" + who_is_behind() : text;
  }

  /// Ranks wait for each other in chains, and the first to lose patience need not be the one beside the culprit: that
  /// is who has done fewest steps, as all can see them.
  std::string who_is_behind() const {
    const auto steps = [this](int r) { return box(r).progress.load(std::memory_order_acquire); };
    std::uint64_t least = steps(0), most = least;
    for (int r = 1; r < size(); ++r) {
      const std::uint64_t done = steps(r);
      least = done < least ? done : least;
      most = done > most ? done : most;
    }
    if (least == most) return {};
    std::string text = "; furthest behind:";
    for (int r = 0; r < size(); ++r)
      if (steps(r) == least) text += " rank " + std::to_string(r);
    return text;
  }

  int m_rank;
  std::vector<peer_memory> m_peers;
  std::size_t m_region_bytes;
  group_state* m_group;
  waiting m_waiting;
  detail::expedited m_scope;
  bool m_expedited;
};

}  // namespace toroid::transport
