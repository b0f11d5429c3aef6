// SPDX-License-Identifier: Apache-2.0
// Signalling, sleeping and waking: no wake-up is lost, and what was written before a signal is there after the wait.
//
// Sleeps have no time limit here, so that nothing but a ring ends them.
#include "model/tally.hpp"
#include "support/catch.hpp"

#include <deque>
#include <functional>
#include <string>

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;
constexpr auto seq_cst = std::memory_order_seq_cst;

enum class planted {
  nothing,
  no_barrier,         ///< the sleeper does not call membarrier
  no_second_look,     ///< nor look at the flag once more before it sleeps
  no_second_broken,   ///< nor at the broken mark
  late_sleeping,      ///< says that it sleeps only after the second look
  late_attention,     ///< raises attention only after the second look
  late_doorbell,      ///< notes the doorbell only after the second look
  no_bump,            ///< ringing wakes without changing the doorbell
  wake_before_bump,   ///< ... or changes it too late
  attention_first,    ///< the sender looks for sleepers before it stores
  relaxed_flag,       ///< the sender does not release
  relaxed_wait,       ///< the waiting rank does not acquire
  silent_break,       ///< breaking the group wakes nobody
  store_only,         ///< without membarrier: a release store instead of an exchange
  relaxed_attention,  ///< without membarrier: attention is loaded relaxed
  acquire_ring,       ///< no fault where there is membarrier: ringing does not rely on the order of seq_cst loads
};

/// toroid::transport::mailbox and group_state, as far as signals go.
struct mailbox {
  mailbox(model::machine& m, const std::string& rank)
      : flag(m, rank + ".flag"),
        doorbell(m, rank + ".doorbell"),
        sleeping(m, rank + ".sleeping"),
        data(m, rank + ".data") {}
  model::atomic flag, doorbell, sleeping;
  model::plain data;  ///< what the flag announces
};

struct group {
  static constexpr std::uint64_t broken_bit = std::uint64_t{1} << 32;
  group(int ranks, bool has_membarrier, planted f) : expedited(has_membarrier), fault(f) {
    for (int r = 0; r < ranks; ++r) boxes.emplace_back(m, "box " + std::to_string(r));
  }
  model::machine m;
  model::atomic attention{m, "attention"};
  std::deque<mailbox> boxes;
  bool expedited;
  planted fault;
};

struct broken_group {};

/// toroid::transport::mapped_endpoint.
class endpoint {
 public:
  endpoint(group& g, int rank) : m_group(g), m_rank(rank) {}
  mailbox& box(int rank) { return m_group.boxes[static_cast<std::size_t>(rank)]; }

  void signal(model::atomic& flag, std::uint64_t value) {
    const model::machine::inside in(m_group.m, "signal");
    bool attention = false;
    if (is(planted::attention_first)) attention = m_group.attention.load(relaxed) >= 1;
    if (m_group.expedited) {
      flag.store(value, is(planted::relaxed_flag) ? relaxed : release);
      if (!is(planted::attention_first)) attention = m_group.attention.load(relaxed) >= 1;
    } else if (is(planted::store_only)) {
      flag.store(value, release);
      attention = m_group.attention.load(seq_cst) >= 1;
    } else {
      flag.exchange(value, seq_cst, model::unused);
      attention = m_group.attention.load(is(planted::relaxed_attention) ? relaxed : seq_cst) >= 1;
    }
    if (attention) wake_sleepers();
  }

  void wait(const model::atomic& flag, std::uint64_t value) {
    const auto order = is(planted::relaxed_wait) ? relaxed : acquire;
    ++m_waits;
    if (flag.load(order) >= value) return;  // spin(), and the yields
    const model::machine::inside in(m_group.m, "wait_long");
    mailbox& mine = box(m_rank);
    while (true) {
      m_group.m.forget(m_waits);
      if (broken()) {
        if (flag.load(order) >= value) return;
        throw broken_group{};
      }
      std::uint64_t seen = mine.doorbell.load(acquire);
      if (!is(planted::late_sleeping)) mine.sleeping.store(1, seq_cst);
      if (!is(planted::late_attention)) m_group.attention.fetch_add(1, seq_cst, model::unused);
      if (!is(planted::no_barrier)) order_against_signals();
      const bool come =
          !is(planted::no_second_look) && flag.load(is(planted::relaxed_wait) ? relaxed : seq_cst) >= value;
      if (is(planted::late_sleeping)) mine.sleeping.store(1, seq_cst);
      if (is(planted::late_attention)) m_group.attention.fetch_add(1, seq_cst, model::unused);
      if (is(planted::late_doorbell)) seen = mine.doorbell.load(acquire);
      if (!come && (is(planted::no_second_broken) || !broken())) mine.doorbell.futex_wait(seen);
      m_group.attention.fetch_sub(1, seq_cst, model::unused);
      mine.sleeping.store(0, relaxed);
      if (flag.load(order) >= value) return;
    }
  }

  void break_group() {
    const model::machine::inside in(m_group.m, "break_group");
    m_group.attention.fetch_or(group::broken_bit, seq_cst, model::unused);
    order_against_signals();
    if (!is(planted::silent_break)) wake_sleepers();
  }

  bool broken() { return (m_group.attention.load(acquire) & group::broken_bit) != 0; }

 private:
  bool is(planted f) const noexcept { return m_group.fault == f; }

  void order_against_signals() {
    if (m_group.expedited) m_group.m.membarrier();
  }

  void wake_sleepers() {
    for (int r = 0; r < static_cast<int>(m_group.boxes.size()); ++r)
      if (r != m_rank) ring(box(r));
  }

  void ring(mailbox& box) {
    if (box.sleeping.load(is(planted::acquire_ring) ? acquire : seq_cst) == 0) return;
    if (is(planted::wake_before_bump)) box.doorbell.futex_wake();
    if (!is(planted::no_bump)) box.doorbell.fetch_add(1, release, model::unused);
    if (!is(planted::wake_before_bump)) box.doorbell.futex_wake();
  }

  group& m_group;
  int m_rank;
  std::uint64_t m_waits = 0;
};

/// What a rank does, on its endpoint.
using behaviour = std::function<void(endpoint&)>;

/// Tells the others that the data of `self` have come to `value`.
void tell(endpoint& self, int rank, std::uint64_t value) {
  self.box(rank).data.write(100 * value + static_cast<std::uint64_t>(rank));
  self.signal(self.box(rank).flag, value);
}

/// Waits for rank `peer`, and reads what it has announced.
void hear(group& g, endpoint& self, int peer, std::uint64_t value) {
  self.wait(self.box(peer).flag, value);
  g.m.require(self.box(peer).data.read() == 100 * value + static_cast<std::uint64_t>(peer), "wrong value");
}

struct scenario {
  const char* name;
  int ranks;
  std::function<void(group&, endpoint&, int)> rank;
};

/// @return what is found; an execution in which a rank finds the group broken is not a fault
model::report explored(model::tally& count, const scenario& s, bool expedited, planted fault = planted::nothing) {
  group g(s.ranks, expedited, fault);
  for (int r = 0; r < s.ranks; ++r)
    g.m.add_thread("rank " + std::to_string(r), [&g, &s, r] {
      endpoint self(g, r);
      try {
        s.rank(g, self, r);
      } catch (const broken_group&) {
        return std::uint64_t{1};
      }
      return std::uint64_t{0};
    });
  return count.explore(g.m);
}

const scenario one_hears_one{"one hears one", 2, [](group& g, endpoint& self, int r) {
                               if (r == 0)
                                 tell(self, 0, 1);
                               else
                                 hear(g, self, 0, 1);
                             }};
const scenario one_hears_two_words{"one hears two words of one", 2, [](group& g, endpoint& self, int r) {
                                     if (r == 0) {
                                       tell(self, 0, 1);
                                       hear(g, self, 1, 1);
                                       tell(self, 0, 2);
                                     } else {
                                       hear(g, self, 0, 1);
                                       tell(self, 1, 1);
                                       hear(g, self, 0, 2);
                                     }
                                   }};
const scenario two_exchange{"two exchange", 2, [](group& g, endpoint& self, int r) {
                              tell(self, r, 1);
                              hear(g, self, 1 - r, 1);
                            }};
const scenario two_hear_one{"two hear one", 3, [](group& g, endpoint& self, int r) {
                              if (r == 0)
                                tell(self, 0, 1);
                              else
                                hear(g, self, 0, 1);
                            }};
const scenario one_hears_two{"one hears two", 3, [](group& g, endpoint& self, int r) {
                               if (r != 0) return tell(self, r, 1);
                               hear(g, self, 1, 1);
                               hear(g, self, 2, 1);
                             }};
const scenario chain{"a chain", 3, [](group& g, endpoint& self, int r) {
                       if (r > 0) hear(g, self, r - 1, 1);
                       if (r < 2) tell(self, r, 1);
                     }};
const scenario one_breaks{"one breaks", 2, [](group& g, endpoint& self, int r) {
                            if (r == 0)
                              self.break_group();
                            else
                              hear(g, self, 0, 1);
                          }};
const scenario one_tells_and_breaks{"one tells and breaks", 2, [](group& g, endpoint& self, int r) {
                                      if (r == 0) {
                                        tell(self, 0, 1);
                                        self.break_group();
                                      } else {
                                        hear(g, self, 0, 1);
                                        hear(g, self, 0, 2);
                                      }
                                    }};
const scenario one_breaks_for_two{"one breaks for two", 3, [](group& g, endpoint& self, int r) {
                                    if (r == 0)
                                      self.break_group();
                                    else
                                      hear(g, self, 0, 1);
                                  }};

void holds(model::tally& count, const scenario& s, bool expedited, planted variant = planted::nothing) {
  const model::report found = explored(count, s, expedited, variant);
  INFO(s.name << (expedited ? "" : ", without membarrier") << ": " << found.text());
  CHECK(found.fault.empty());
}

void caught(model::tally& count, const scenario& s, bool expedited, planted fault, const std::string& as) {
  const model::report found = explored(count, s, expedited, fault);
  INFO(s.name << ", fault " << static_cast<int>(fault) << ": " << found.text());
  CHECK(found.fault.find(as) != std::string::npos);
  CHECK_FALSE(found.trace.empty());
}

}  // namespace

TEST_CASE("no wake-up is lost between two ranks") {
  model::tally count("doorbell, two ranks");
  for (const bool expedited : {true, false})
    for (const scenario& s : {one_hears_one, one_hears_two_words, two_exchange, one_breaks, one_tells_and_breaks})
      holds(count, s, expedited);
}

TEST_CASE("no wake-up is lost among three ranks", "[slow]") {
  for (const bool expedited : {true, false})
    for (const scenario& s : {two_hear_one, one_hears_two, chain, one_breaks_for_two}) {
      model::tally count(std::string("doorbell, ") + s.name + (expedited ? "" : ", without membarrier"));
      holds(count, s, expedited);
    }
}

// The checker lets seq_cst operations take effect in the order they are executed in, which is more than C++ promises
// behind a relaxed load. So the sender's look at who sleeps must not depend on it.
TEST_CASE("the barrier alone orders what the sender loads") {
  model::tally count("doorbell, weaker loads");
  for (const scenario& s : {one_hears_one, one_hears_two_words, two_exchange, one_hears_two, one_breaks})
    holds(count, s, true, planted::acquire_ring);
}

TEST_CASE("who hears that the group is broken stops") {
  model::tally count("doorbell, broken");
  const model::report found = explored(count, one_breaks, true);
  REQUIRE_FALSE(found.outcomes.empty());
  for (const auto& outcome : found.outcomes) CHECK(outcome[1] == 1);
}

TEST_CASE("planted faults of the doorbell are caught") {
  model::tally count("doorbell, planted faults");
  const std::string asleep = "deadlock", race = "data race";
  caught(count, one_hears_one, true, planted::no_barrier, asleep);
  caught(count, one_hears_one, true, planted::no_second_look, asleep);
  caught(count, one_breaks, true, planted::no_second_broken, asleep);
  caught(count, one_hears_one, true, planted::late_sleeping, asleep);
  caught(count, one_hears_one, true, planted::late_attention, asleep);
  caught(count, one_hears_one, true, planted::late_doorbell, asleep);
  caught(count, one_hears_one, true, planted::no_bump, asleep);
  caught(count, one_hears_one, true, planted::wake_before_bump, asleep);
  caught(count, one_hears_one, true, planted::attention_first, asleep);
  caught(count, one_hears_one, true, planted::relaxed_flag, race);
  caught(count, one_hears_one, true, planted::relaxed_wait, race);
  caught(count, one_breaks, true, planted::silent_break, asleep);
}

TEST_CASE("planted faults of the doorbell without membarrier are caught") {
  model::tally count("doorbell without membarrier, planted faults");
  const std::string asleep = "deadlock";
  caught(count, one_hears_one, false, planted::store_only, asleep);
  caught(count, one_hears_one, false, planted::relaxed_attention, asleep);
  caught(count, one_hears_one, false, planted::no_second_look, asleep);
  caught(count, one_hears_one, false, planted::late_sleeping, asleep);
  caught(count, one_hears_one, false, planted::late_attention, asleep);
}
