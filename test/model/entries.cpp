// SPDX-License-Identifier: Apache-2.0
// Entries of calls with the message beside the flag: every rank gets what was sent in this call, and nobody overwrites
// an entry that is still read, whichever collectives follow each other.
#include "model/tally.hpp"
#include "support/catch.hpp"

#include <array>
#include <deque>
#include <string>
#include <vector>

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;

enum class planted {
  nothing,
  relaxed_publish,      ///< the entry is published without release
  relaxed_wait,         ///< and waited for without acquire
  flag_before_payload,  ///< published before the message is there
  flag_before_signature,
  one_entry,             ///< no parity: one entry for all calls
  no_wait_for_previous,  ///< a call may begin before all have entered the one before
  one_call_early,        ///< ... or before all have entered the one before that
  any_peer_counts,       ///< one peer heard is taken for all
  older_call_counts,     ///< an entry of two calls ago is taken for this one's
};

/// toroid::transport::entry, with a message of one word.
struct entry {
  entry(model::machine& m, const std::string& name)
      : sequence(m, name + ".sequence"), signature(m, name + ".signature"), payload(m, name + ".payload") {}
  model::atomic sequence;
  model::plain signature, payload;
};

struct group {
  group(int n, planted f) : ranks(n), fault(f) {
    for (int r = 0; r < n; ++r)
      for (int parity = 0; parity < 2; ++parity)
        entries.emplace_back(m, "rank " + std::to_string(r) + ".entries[" + std::to_string(parity) + "]");
  }
  model::machine m;
  int ranks;
  planted fault;
  std::deque<entry> entries;  ///< two a rank
};

/// A collective whose message travels beside the flag: root -1 for those in which all wait for all.
struct collective {
  int root = -1;
  std::uint64_t signature() const noexcept { return static_cast<std::uint64_t>(root + 2); }
};

/// toroid::detail::mapped_session, and inline_executor over it.
class session {
 public:
  session(group& g, int rank) : m_group(g), m_rank(rank) {}

  void begin(const collective& c) {
    ++m_call;
    const std::uint64_t early = is(planted::one_call_early) ? 1 : 0;
    if (m_all_entered + 1 + early < m_call && !is(planted::no_wait_for_previous)) wait_for_previous_entries();
    m_now = c.signature();
    m_heard = 0;
  }

  /// inline_executor::perform and finish, as walk() calls them for a direct schedule of two steps.
  std::uint64_t perform(const collective& c, std::uint64_t own) {
    const bool sends = c.root < 0 || c.root == m_rank;
    if (is(planted::flag_before_payload)) publish_entry();
    if (sends) entry_of(m_rank).payload.write(own);
    if (!is(planted::flag_before_payload)) publish_entry();
    std::uint64_t sum = sends ? own : 0;
    for (int r = 0; r < m_group.ranks; ++r)
      if (r != m_rank && (c.root < 0 || c.root == r)) {
        sum += wait_for_entry(r).payload.read();
        ++m_heard;
      }
    if (m_heard == m_group.ranks - 1 || (is(planted::any_peer_counts) && m_heard > 0)) m_all_entered = m_call;
    return sum;
  }

  std::uint64_t call() const noexcept { return m_call; }

 private:
  bool is(planted f) const noexcept { return m_group.fault == f; }

  entry& entry_of(int rank, std::uint64_t call) {
    const std::uint64_t parity = is(planted::one_entry) ? 0 : call & 1;
    return m_group.entries[2 * static_cast<std::size_t>(rank) + parity];
  }
  entry& entry_of(int rank) { return entry_of(rank, m_call); }

  void publish_entry() {
    const model::machine::inside in(m_group.m, "publish_entry");
    entry& mine = entry_of(m_rank);
    if (!is(planted::flag_before_signature)) mine.signature.write(m_now);
    mine.sequence.store(m_call, is(planted::relaxed_publish) ? relaxed : release);
    if (is(planted::flag_before_signature)) mine.signature.write(m_now);
  }

  entry& wait_for_entry(int rank) {
    const model::machine::inside in(m_group.m, "wait_for_entry");
    entry& theirs = entry_of(rank);
    const std::uint64_t older = is(planted::older_call_counts) && m_call > 2 ? 2 : 0;
    theirs.sequence.await(m_call - older, is(planted::relaxed_wait) ? relaxed : acquire);
    m_group.m.require(theirs.signature.read() == m_now, "mismatch where there is none");
    return theirs;
  }

  void wait_for_previous_entries() {
    const model::machine::inside in(m_group.m, "wait_for_previous_entries");
    const std::uint64_t previous = m_call - 1;
    for (int r = 0; r < m_group.ranks; ++r) {
      if (r == m_rank) continue;
      entry& theirs = entry_of(r, previous);
      theirs.sequence.await(previous, is(planted::relaxed_wait) ? relaxed : acquire);
      m_group.m.require(theirs.signature.read() == m_now, "mismatch where there is none");
    }
    m_all_entered = previous;
  }

  group& m_group;
  int m_rank;
  std::uint64_t m_call = 0, m_all_entered = 0, m_now = 0;
  int m_heard = 0;
};

std::uint64_t message_of(int rank, std::uint64_t call) { return 100 * call + (1u << rank); }

/// All ranks make these calls one after the other.
model::report explored(model::tally& count, int ranks, const std::vector<collective>& calls,
                       planted fault = planted::nothing) {
  group g(ranks, fault);
  for (int r = 0; r < ranks; ++r)
    g.m.add_thread("rank " + std::to_string(r), [&g, &calls, r] {
      session s(g, r);
      for (const collective& c : calls) {
        s.begin(c);
        std::uint64_t expected = 0;
        for (int sender = 0; sender < g.ranks; ++sender)
          if (c.root < 0 || c.root == sender) expected += message_of(sender, s.call());
        g.m.require(s.perform(c, message_of(r, s.call())) == expected, "wrong value");
      }
      return std::uint64_t{0};
    });
  return count.explore(g.m);
}

/// Calls visit(calls) for every succession of `length` collectives, until it returns false.
template <class Visit>
void for_each_succession(int ranks, std::size_t length, Visit visit) {
  std::vector<collective> calls(length);
  while (visit(calls)) {
    std::size_t i = 0;
    while (i < length && ++calls[i].root == ranks) calls[i++].root = -1;
    if (i == length) return;
  }
}

void holds(int ranks, std::size_t length) {
  model::tally count("entries, " + std::to_string(ranks) + " ranks, " + std::to_string(length) + " calls");
  for_each_succession(ranks, length, [&](const std::vector<collective>& calls) {
    const model::report found = explored(count, ranks, calls);
    std::string roots;
    for (const collective& c : calls) roots += " " + std::to_string(c.root);
    INFO("roots:" << roots << "\n" << found.text());
    CHECK(found.fault.empty());
    return found.fault.empty();
  });
}

/// Some succession of calls must show the fault.
void caught(model::tally& count, int ranks, planted fault, const std::string& as) {
  std::string seen;
  for_each_succession(ranks, 4, [&](const std::vector<collective>& calls) {
    const model::report found = explored(count, ranks, calls, fault);
    if (found.fault.find(as) == std::string::npos) return true;
    seen = found.fault;
    CHECK_FALSE(found.trace.empty());
    return false;
  });
  INFO("fault " << static_cast<int>(fault) << " at " << ranks << " ranks");
  CHECK(seen.find(as) != std::string::npos);
}

}  // namespace

TEST_CASE("entries of two ranks in every succession of four calls") { holds(2, 4); }
TEST_CASE("entries of three ranks in every succession of three calls") { holds(3, 3); }
TEST_CASE("entries of two ranks in every succession of six calls", "[slow]") { holds(2, 6); }
TEST_CASE("entries of three ranks in every succession of five calls", "[slow]") { holds(3, 5); }

TEST_CASE("planted faults of the entries are caught") {
  model::tally count("entries, planted faults");
  for (const int ranks : {2, 3}) {
    caught(count, ranks, planted::relaxed_publish, "data race");
    caught(count, ranks, planted::relaxed_wait, "data race");
    caught(count, ranks, planted::flag_before_payload, "data race");
    caught(count, ranks, planted::flag_before_signature, "data race");
    caught(count, ranks, planted::one_entry, "data race");
    caught(count, ranks, planted::no_wait_for_previous, "data race");
    caught(count, ranks, planted::one_call_early, "data race");
    caught(count, ranks, planted::older_call_counts, "wrong value");
  }
  caught(count, 3, planted::any_peer_counts, "data race");
}
