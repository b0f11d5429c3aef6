// SPDX-License-Identifier: Apache-2.0
// Calls that fail: a rank that has returned with an error may use its buffers again at once, since no peer is inside
// them any more and none that comes later goes there; and it does not wait for ever to know that.
//
// Every wait may run into its deadline at any moment. Ranks are threads, which work in each other's buffers.
#include "model/tally.hpp"
#include "support/catch.hpp"

#include <deque>
#include <string>

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;
constexpr auto acq_rel = std::memory_order_acq_rel;
constexpr auto seq_cst = std::memory_order_seq_cst;

enum class planted {
  nothing,
  no_drain,           ///< a failing rank returns at once
  no_barrier,         ///< or does not order its look against late entries
  ignored_attention,  ///< a rank that enters does not look whether the group is broken
  attention_first,    ///< or does so before it has published its entry
  relaxed_attention,  ///< without membarrier: ... with a relaxed load
  acquire_drain,      ///< the drain looks at entries with acquire only: a fault without membarrier
  relaxed_abandoned,  ///< the mark of having given up is stored without release
  early_abandoned,    ///< or before the rank has left the buffers
  no_abandoned,       ///< or not at all
  publish_first,      ///< progress is published before the buffers are touched
  early_end,          ///< a peer is taken to be done a step too early
  no_leave,           ///< a call that does not fail does not wait for its peers at its end
  racing_reason,      ///< everybody writes why the group is broken
};

/// toroid::transport::mailbox as far as it is used here, and a rank's buffers.
struct mailbox {
  mailbox(model::machine& m, const std::string& rank, int ranks)
      : sequence{model::atomic(m, rank + ".entries[0].sequence"), model::atomic(m, rank + ".entries[1].sequence")},
        buffers{model::plain(m, rank + ".entries[0].buffers"), model::plain(m, rank + ".entries[1].buffers")},
        progress(m, rank + ".progress"),
        abandoned(m, rank + ".abandoned"),
        input(m, rank + ".input") {
    for (int r = 0; r < ranks; ++r) result.emplace_back(m, rank + ".result[" + std::to_string(r) + "]");
  }
  model::atomic sequence[2];
  model::plain buffers[2];
  model::atomic progress, abandoned;
  model::plain input;
  std::deque<model::plain> result;  ///< by the rank that writes it
};

struct group {
  static constexpr std::uint64_t broken_bit = std::uint64_t{1} << 32;
  /// @param late  ranks from 0 on that may run into their deadlines
  group(int n, int late, bool has_membarrier, planted f)
      : ranks(n), late_ranks(late), tells_reason(n == 2), expedited(has_membarrier), fault(f) {
    for (int r = 0; r < n; ++r) boxes.emplace_back(m, "rank " + std::to_string(r), n);
  }
  model::machine m;
  model::atomic attention{m, "attention"}, reason_state{m, "reason_state"};
  model::plain reason{m, "reason"};
  int ranks, late_ranks;
  bool tells_reason;  ///< left out at three ranks, since nothing else depends on it
  bool expedited;
  planted fault;
  std::deque<mailbox> boxes;
};

struct failed_call {};

/// toroid::detail::mapped_session over toroid::transport::mapped_endpoint, and a call along the direct path.
class session {
 public:
  session(group& g, int rank) : m_group(g), m_rank(rank) {}

  /// A call of so many steps that touch the peers' buffers. They read all inputs in the first and write all results in
  /// the last.
  /// @return whether it did what it should; if not, this communicator is of no use any more
  bool call(int steps) {
    ++m_call;
    m_touching_end = 0;
    mailbox& mine = box(m_rank);
    mine.input.write(100 * m_call + static_cast<std::uint64_t>(m_rank));
    try {
      enter();
      const std::uint64_t base = 10 * m_call;
      m_touching_end = base + 1 + static_cast<std::uint64_t>(steps);
      for (int step = 0; step < steps; ++step) {
        const std::uint64_t done = base + 1 + static_cast<std::uint64_t>(step);
        if (step > 0) wait_for_progress(done);
        if (is(planted::publish_first)) publish(done + 1);
        if (step == 0) read_inputs();
        if (step == steps - 1) write_results();
        if (!is(planted::publish_first)) publish(done + 1);
      }
      if (!is(planted::no_leave)) wait_for_progress(m_touching_end);
    } catch (const failed_call&) {
      give_up();
      return false;
    }
    for (int r = 0; r < m_group.ranks; ++r)
      if (r != m_rank)
        m_group.m.require(
            mine.result[static_cast<std::size_t>(r)].read() == 100 * m_call + static_cast<std::uint64_t>(r),
            "wrong value");
    return true;
  }

  /// What the owner of buffers does with them after a call.
  void use_buffers() {
    const model::machine::inside in(m_group.m, "the caller, after the call");
    mailbox& mine = box(m_rank);
    mine.input.write(0);
    for (model::plain& value : mine.result) value.write(0);
  }

 private:
  bool is(planted f) const noexcept { return m_group.fault == f; }
  mailbox& box(int rank) { return m_group.boxes[static_cast<std::size_t>(rank)]; }

  // ---- run_mapped

  void enter() {
    mailbox& mine = box(m_rank);
    mine.buffers[m_call & 1].write(m_call);
    publish_entry();
    for (int r = 0; r < m_group.ranks; ++r) {
      if (r == m_rank) continue;
      const model::machine::inside in(m_group.m, "wait_for_entry");
      wait(box(r).sequence[m_call & 1], m_call);
      m_group.m.require(box(r).buffers[m_call & 1].read() == m_call, "wrong value in an entry");
    }
  }

  void read_inputs() {
    for (int r = 0; r < m_group.ranks; ++r)
      if (r != m_rank)
        m_group.m.require(box(r).input.read() == 100 * m_call + static_cast<std::uint64_t>(r), "wrong value");
  }

  void write_results() {
    for (int r = 0; r < m_group.ranks; ++r)
      if (r != m_rank)
        box(r).result[static_cast<std::size_t>(m_rank)].write(100 * m_call + static_cast<std::uint64_t>(m_rank));
  }

  void wait_for_progress(std::uint64_t value) {
    for (int r = 0; r < m_group.ranks; ++r)
      if (r != m_rank) wait(box(r).progress, value);
  }

  /// signal(), but whether the group is broken is not looked at here.
  void publish(std::uint64_t value) {
    const model::machine::inside in(m_group.m, "publish");
    if (m_group.expedited)
      box(m_rank).progress.store(value, release);
    else
      box(m_rank).progress.exchange(value, seq_cst, model::unused);
  }

  // ---- mapped_session

  void publish_entry() {
    const model::machine::inside in(m_group.m, "publish_entry");
    model::atomic& sequence = box(m_rank).sequence[m_call & 1];
    bool broken_seen = false;
    if (is(planted::attention_first)) {
      broken_seen = broken();
      signal(sequence, m_call);
    } else {
      broken_seen = signal(sequence, m_call);
    }
    if (broken_seen && !is(planted::ignored_attention)) throw_broken();
  }

  void give_up() {
    const model::machine::inside in(m_group.m, "give_up");
    m_group.m.forget(100 * m_call + m_touching_end);
    if (!is(planted::early_abandoned)) abandon();
    if (!broken()) break_group();
    order_against_signals();
    if (!is(planted::no_drain)) drain();
  }

  void abandon() {
    if (!is(planted::no_abandoned))
      box(m_rank).abandoned.store(m_call, is(planted::relaxed_abandoned) ? relaxed : release);
  }

  void drain() {
    const model::machine::inside in(m_group.m, "drain");
    const auto order = is(planted::acquire_drain) ? acquire : seq_cst;
    for (int r = 0; r < m_group.ranks; ++r) {
      if (r == m_rank) continue;
      const mailbox& other = box(r);
      const model::atomic& sequence = other.sequence[m_call & 1];
      if (!(sequence.load(order) == m_call)) continue;
      // while (inside()) sched_yield(); the sequence can only become greater from here on.
      const auto entered_later = sequence.at_least(m_call + 1, order);
      const auto abandoned = other.abandoned.at_least(m_call, acquire);
      if (m_touching_end == 0)
        m_group.m.await_any({entered_later, abandoned}, model::unused);
      else
        m_group.m.await_any({entered_later, abandoned,
                             other.progress.at_least(m_touching_end - (is(planted::early_end) ? 1 : 0), acquire)},
                            model::unused);
    }
  }

  // ---- mapped_endpoint

  /// @return whether the group is broken
  bool signal(model::atomic& flag, std::uint64_t value) {
    if (m_group.expedited) {
      flag.store(value, release);
      return (m_group.attention.load(relaxed) & group::broken_bit) != 0;
    }
    flag.exchange(value, seq_cst, model::unused);
    return (m_group.attention.load(is(planted::relaxed_attention) ? relaxed : seq_cst) & group::broken_bit) != 0;
  }

  void wait(const model::atomic& flag, std::uint64_t value) {
    const auto come = flag.at_least(value, acquire);
    const auto is_broken = m_group.attention.has(group::broken_bit, acquire);
    const std::uint64_t end = m_rank < m_group.late_ranks ? m_group.m.await_any_or_give_up({come, is_broken})
                                                          : m_group.m.await_any({come, is_broken});
    if (end == 0) return;
    if (end == 1 && flag.load(acquire) >= value) return;
    if (is(planted::early_abandoned)) abandon();
    if (end == 2) break_group();
    throw_broken();
  }

  void break_group() {
    mark_broken();
    order_against_signals();
  }

  void mark_broken() {
    std::uint64_t nobody_yet = 0;
    if (!m_group.tells_reason) {
    } else if (m_group.reason_state.compare_exchange_strong(nobody_yet, 1, acq_rel) || is(planted::racing_reason)) {
      m_group.reason.write(static_cast<std::uint64_t>(m_rank) + 1);
      m_group.reason_state.store(2, release);
    }
    m_group.attention.fetch_or(group::broken_bit, seq_cst, model::unused);
  }

  [[noreturn]] void throw_broken() {
    // It looks a thousand times, and then does without the reason.
    if (m_group.tells_reason && m_group.m.await_any_or_give_up({m_group.reason_state.at_least(2, acquire)}) == 0)
      m_group.m.require(m_group.reason.read() != 0, "no reason");
    throw failed_call{};
  }

  bool broken() { return (m_group.attention.load(acquire) & group::broken_bit) != 0; }

  void order_against_signals() {
    if (m_group.expedited && !is(planted::no_barrier)) m_group.m.membarrier();
  }

  group& m_group;
  int m_rank;
  std::uint64_t m_call = 0, m_touching_end = 0;
};

/// All ranks make so many calls, or as many as succeed, and use their buffers after each.
model::report explored(model::tally& count, int ranks, int late, int calls, int steps, bool expedited,
                       planted fault = planted::nothing) {
  group g(ranks, late, expedited, fault);
  for (int r = 0; r < ranks; ++r)
    g.m.add_thread("rank " + std::to_string(r), [&g, calls, steps, r] {
      session s(g, r);
      bool good = true;
      for (int i = 0; i < calls && good; ++i) {
        good = s.call(steps);
        s.use_buffers();
      }
      return std::uint64_t{good};
    });
  return count.explore(g.m);
}

void holds(int ranks, int late, int calls, int steps, bool expedited, planted variant = planted::nothing) {
  model::tally count("failing, " + std::to_string(ranks) + " ranks, " + std::to_string(late) + " late, " +
                     std::to_string(calls) + " calls, " + std::to_string(steps) + " steps" +
                     (expedited ? "" : ", without membarrier"));
  const model::report found = explored(count, ranks, late, calls, steps, expedited, variant);
  INFO((expedited ? "" : "without membarrier: ") << found.text());
  CHECK(found.fault.empty());
  // All ranks may succeed, and all may fail.
  bool all_good = false, none_good = false;
  for (const auto& outcome : found.outcomes) {
    std::uint64_t good = 0;
    for (int r = 0; r < ranks; ++r) good += outcome[static_cast<std::size_t>(r)];
    all_good = all_good || good == static_cast<std::uint64_t>(ranks);
    none_good = none_good || good == 0;
  }
  CHECK(all_good);
  CHECK(none_good);
}

void caught(model::tally& count, int ranks, bool expedited, planted fault, const std::string& as) {
  const model::report found = explored(count, ranks, ranks, 1, 2, expedited, fault);
  INFO(ranks << " ranks, fault " << static_cast<int>(fault) << (expedited ? ": " : ", without membarrier: ")
             << found.text());
  CHECK(found.fault.find(as) != std::string::npos);
  CHECK_FALSE(found.trace.empty());
}

}  // namespace

TEST_CASE("nobody is inside the buffers of one of two ranks that has failed") {
  for (const bool expedited : {true, false}) {
    holds(2, 2, 1, 1, expedited);
    holds(2, 2, 1, 2, expedited);
    holds(2, 2, 2, 1, expedited);
  }
}

TEST_CASE("nobody is inside the buffers of one of three ranks that has failed", "[slow]") {
  holds(3, 1, 1, 1, true);
  holds(3, 1, 1, 1, false);
  holds(3, 2, 1, 1, false);
  holds(3, 1, 1, 2, false);
}

TEST_CASE("with membarrier the drain does not rely on the order of seq_cst loads") {
  holds(2, 2, 1, 2, true, planted::acquire_drain);
}

TEST_CASE("planted faults of failing are caught") {
  model::tally count("failing, planted faults");
  for (const bool expedited : {true, false}) {
    caught(count, 2, expedited, planted::no_drain, "data race");
    caught(count, 2, expedited, planted::ignored_attention, "data race");
    caught(count, 2, expedited, planted::attention_first, "data race");
    caught(count, 2, expedited, planted::relaxed_abandoned, "data race");
    caught(count, 2, expedited, planted::no_abandoned, "deadlock");
    caught(count, 2, expedited, planted::publish_first, "data race");
    caught(count, 2, expedited, planted::early_end, "data race");
    caught(count, 2, expedited, planted::no_leave, "wrong value");
    caught(count, 2, expedited, planted::racing_reason, "data race");
  }
  caught(count, 2, true, planted::no_barrier, "data race");
  caught(count, 2, false, planted::relaxed_attention, "data race");
  caught(count, 2, false, planted::acquire_drain, "data race");
}
