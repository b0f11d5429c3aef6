// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/schedule/detail/dataflow.hpp>
#include <toroid/schedule/detail/text.hpp>
#include <toroid/schedule/detail/unrolled.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/schedule/verification.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace toroid::schedule::detail {

/// Where ranks find each other's values.
enum class value_path {
  staged,  ///< every value goes through a slot of its sender (or a message)
  direct,  ///< inputs are read where they stand, delivered values are written where they belong; the rest uses slots
};

struct execution_options {
  value_path path = value_path::staged;
  bool in_place = false;  ///< input and result are the same memory
  int depth = 2;          ///< slots a rank has
  int pieces = 1;         ///< walked as schedule/walk.hpp walks them
};

/// Runs all ranks beside each other under the rules by which executors wait, and no others:
///
/// * a rank enters when all have entered;
/// * before an operation that has an operand of rank q in a slot (on the staged path: any operand of q; on the direct
///   one: a delivered one too), it waits until q has finished the time before;
/// * before it writes a slot at time t, it waits until whoever read what stood there, possibly itself, has finished
///   reading: what was put there at time u is read at time u + 1;
/// * on the direct path it leaves when all have finished the last touching time; of later ones nobody hears.
///
/// Vector clocks tell which accesses these waits order. That they are waits for what happened at a given time, never
/// for "whatever comes next", makes one run stand for all: any other interleaving has the same order between accesses.
/// Operations of one rank at one time count as unordered, so that an executor may run them side by side.
class execution {
 public:
  execution(const unrolled& u, const dataflow& flow, collective_kind kind, execution_options o)
      : m_u(u),
        m_flow(flow),
        m_kind(kind),
        m_o(o),
        m_times(u.pipelined ? o.pieces + u.steps - 1 : o.pieces * u.steps),
        m_touching(m_times - (u.steps - u.touching_steps)),
        m_done(as_index(u.ranks), 0),
        m_clocks(as_index(u.ranks) * as_index(m_times) * as_index(u.ranks), 0),
        m_memory(as_index(u.ranks) * as_index(o.pieces) * as_index(u.blocks) * 2),
        m_slots(as_index(u.ranks) * as_index(o.depth)) {
    for (int r = 0; r < u.ranks; ++r)
      for (int k = 0; k < o.pieces; ++k)
        for (int b = 0; b < u.blocks; ++b)
          if (input_has(kind, u.ranks, u.root, r, b)) input(r, k, b).value = r;
  }

  std::optional<violation> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < m_u.ranks; ++rank) {
        while (done(rank) < m_times && !obstacle(rank)) {
          if (auto found = advance(rank)) return found;
          moved = true;
        }
      }
    }
    for (int rank = 0; rank < m_u.ranks; ++rank)
      if (done(rank) < m_times) return deadlock(rank);
    return check_result();
  }

 private:
  using clock = std::vector<int>;  // per rank: that many of its times lie before

  struct access {
    int rank;
    int time;
    int step;
    std::size_t op;
    bool writes;
  };
  struct location {
    int value = expressions::none;
    std::vector<access> accesses;
  };
  struct slot {
    int time = 0;              // at which its owner last wrote it
    std::vector<int> readers;  // ranks that read it one time later
    std::vector<access> accesses;
    std::vector<std::pair<int, int>> places;  // per place: when it was last taken, and by which step
  };
  struct awaited {
    int rank;
    int time;
  };

  static constexpr std::size_t as_index(int i) { return static_cast<std::size_t>(i); }

  int& done(int rank) { return m_done[as_index(rank)]; }
  int* finished(int rank, int time) {
    return m_clocks.data() + (as_index(rank) * as_index(m_times) + as_index(time)) * as_index(m_u.ranks);
  }
  location& input(int rank, int piece, int block) {
    return m_memory[((as_index(rank) * as_index(m_o.pieces) + as_index(piece)) * as_index(m_u.blocks) +
                     as_index(block)) *
                    2];
  }
  location& result(int rank, int piece, int block) {
    return m_o.in_place ? input(rank, piece, block) : *(&input(rank, piece, block) + 1);
  }
  slot& slot_of(int rank, int time) {
    return m_slots[as_index(rank) * as_index(m_o.depth) + as_index(time % m_o.depth)];
  }

  /// Calls visit(step, piece, op) for all that a rank does at a time, until it returns true.
  template <class Visit>
  bool any_at(int rank, int time, Visit visit) const {
    const auto any_in = [&](int step, int piece) {
      for (std::size_t o = m_u.begin_of(step, rank); o < m_u.end_of(step, rank); ++o)
        if (visit(step, piece, o)) return true;
      return false;
    };
    if (!m_u.pipelined) return any_in(time % m_u.steps, time / m_u.steps);
    for (int step = std::max(0, time - m_o.pieces + 1); step <= std::min(m_u.steps - 1, time); ++step)
      if (any_in(step, time - step)) return true;
    return false;
  }

  /// Calls visit(rank) for each rank whose last time has to be over before an operation, until it returns true.
  template <class Visit>
  bool any_source(int rank, const operation& op, Visit visit) const {
    if (m_o.path == value_path::direct && op.theirs == place::input) return false;
    for (int i = 0; i < op.from.count; ++i)
      if (const int q = op.from.at(i, m_u.ranks); q != rank && visit(q)) return true;
    return false;
  }

  /// Whether an operation puts its value into a slot.
  bool fills_slot(int rank, const operation& op) const {
    if (op.at == place::slot) return true;
    return m_o.path == value_path::staged && op.to.count > (op.to.contains(rank, m_u.ranks) ? 1 : 0);
  }

  bool has_finished(const awaited& a) { return done(a.rank) > a.time; }

  /// Something that a rank has to wait for before it can do its next time.
  std::optional<awaited> obstacle(int rank) {
    const int time = done(rank);
    std::optional<awaited> found;
    const auto missing = [&](int q, int until) {
      if (has_finished({q, until})) return false;
      found = {q, until};
      return true;
    };
    const slot& next = slot_of(rank, time);
    any_at(rank, time, [&](int, int, std::size_t o) {
      const operation& op = m_u.operations[o];
      if (any_source(rank, op, [&](int q) { return missing(q, time - 1); })) return true;
      if (next.readers.empty() || !fills_slot(rank, op)) return false;
      return std::any_of(next.readers.begin(), next.readers.end(), [&](int q) { return missing(q, next.time + 1); });
    });
    return found;
  }

  /// The next time of a rank, which has nothing to wait for any more.
  std::optional<violation> advance(int rank) {
    const int time = done(rank);
    clock before(as_index(m_u.ranks), 0);
    if (time > 0) join(before, finished(rank, time - 1));
    slot& own = slot_of(rank, time);
    clock emptied(as_index(m_u.ranks), 0);
    for (const int q : own.readers) join(emptied, finished(q, own.time + 1));
    std::vector<int> readers;
    clock after = before;
    clock now;
    std::optional<violation> found;
    any_at(rank, time, [&](int step, int piece, std::size_t o) {
      const operation& op = m_u.operations[o];
      now = before;
      any_source(rank, op, [&](int q) {
        join(now, finished(q, time - 1));
        return false;
      });
      if (fills_slot(rank, op)) {
        join(now, emptied.data());
        for (int i = 0; i < op.to.count; ++i)
          if (const int q = op.to.at(i, m_u.ranks); q != rank || op.at == place::slot) readers.push_back(q);
      }
      found = perform(rank, time, step, piece, o, now);
      join(after, now.data());
      return found.has_value();
    });
    if (!readers.empty()) {
      std::sort(readers.begin(), readers.end());
      readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
      own.readers = std::move(readers);
      own.time = time;
    }
    after[as_index(rank)] = time + 1;
    std::copy(after.begin(), after.end(), finished(rank, time));
    done(rank) = time + 1;
    return found;
  }

  static void join(clock& into, const int* from) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
  }

  std::optional<violation> perform(int rank, int time, int step, int piece, std::size_t o, const clock& now) {
    const operation& op = m_u.operations[o];
    const bool staged = m_o.path == value_path::staged;
    const bool keeps = op.to.contains(rank, m_u.ranks);
    const bool receives = op.from.count > (op.from.contains(rank, m_u.ranks) ? 1 : 0);
    // Peers read an announced input for themselves, and a delivered value has been put into the own result already.
    const bool announces_only = !staged && op.at == place::input && !keeps;
    const bool already_kept = !staged && receives && op.theirs == place::delivered;
    if (!staged && time > m_touching && any_source(rank, op, [](int) { return true; }))
      return violation{rank, step, op.blocks.first,
                       joined("touching_steps is too small: this step waits for step ", step - 1,
                              " of its peers, which do not tell of steps after touching_steps")};
    const access reads{rank, time, step, o, false}, writes{rank, time, step, o, true};
    for (int b = 0; b < op.blocks.count; ++b) {
      const int block = op.blocks.at(b, m_u.blocks);
      const int value = m_flow.value_of(o, b);
      for (int i = 0; i < op.from.count && !announces_only; ++i) {
        const int q = op.from.at(i, m_u.ranks);
        std::optional<violation> found;
        if (q == rank ? op.own == place::input : !staged && op.theirs == place::input)
          found = touch(input(q, piece, block), q, block, "input", reads, now, q);
        else if (q == rank && op.own == place::delivered)
          found = touch(result(q, piece, block), q, block, "result", reads, now, m_flow.own_value_of(o, b));
        else if (q == rank)
          found = touch(slot_of(q, time - 1), q, block, reads, now);
        else if (!staged && op.theirs == place::delivered)
          found = touch(result(rank, piece, block), rank, block, "result", reads, now, value);
        else
          found = touch(slot_of(q, time - 1), q, block, reads, now);
        if (found) return found;
      }
      for (int i = 0; i < op.to.count; ++i) {
        const int q = op.to.at(i, m_u.ranks);
        std::optional<violation> found;
        if (op.at != place::slot && (q == rank ? !already_kept : !staged && op.at == place::delivered))
          found = touch(result(q, piece, block), q, block, "result", writes, now, value);
        if (found) return found;
      }
      if (fills_slot(rank, op)) {
        if (auto found = touch(slot_of(rank, time), rank, block, writes, now)) return found;
        if (auto found = take_place(slot_of(rank, time), m_u.slot_place(step, block), block, writes)) return found;
      }
    }
    return {};
  }

  /// An access to a user's buffer. A read has to find `value`, a write leaves it.
  std::optional<violation> touch(location& at, int owner, int block, const char* buffer, const access& a,
                                 const clock& now, int value) {
    if (a.rank != owner && a.step >= m_u.touching_steps)
      return violation{a.rank, a.step, block,
                       joined("touching_steps is too small: this step works in the ", buffer, " of rank ", owner)};
    for (const access& other : at.accesses) {
      if ((!a.writes && !other.writes) || other.op == a.op || happened_before(other, now)) continue;
      return conflict(a, other, block, joined(buffer, " of rank ", owner));
    }
    at.accesses.push_back(a);
    if (a.writes) {
      at.value = value;
    } else if (at.value != value) {
      return violation{a.rank, a.step, block,
                       joined("reads the ", buffer, " of rank ", owner, " after it has been overwritten", how())};
    }
    return {};
  }

  /// An access to a slot. Its owner puts the values of one time side by side.
  std::optional<violation> touch(slot& at, int owner, int block, const access& a, const clock& now) {
    for (const access& other : at.accesses) {
      if (a.writes == other.writes || happened_before(other, now)) continue;
      return conflict(a, other, block, joined("slot of rank ", owner));
    }
    // Older accesses lie before this write, and so before whatever is ordered after it.
    if (a.writes && !at.accesses.empty() && at.accesses.back().time != a.time) at.accesses.clear();
    const auto same = [&](const access& b) { return b.rank == a.rank && b.time == a.time && b.writes == a.writes; };
    if (at.accesses.empty() || !same(at.accesses.back())) at.accesses.push_back(a);
    return {};
  }

  /// Values that stand in a slot at one time stand apart.
  std::optional<violation> take_place(slot& at, int place, int block, const access& a) {
    if (place < 0) return violation{a.rank, a.step, block, joined("puts a value into place ", place, " of its slot")};
    if (at.places.size() <= as_index(place)) at.places.resize(as_index(place) + 1, {-1, -1});
    auto& [time, step] = at.places[as_index(place)];
    if (time == a.time)
      return violation{a.rank, a.step, block,
                       joined("puts a value into place ", place, " of its slot, where step ", step,
                              " puts another at the same time", how())};
    time = a.time;
    step = a.step;
    return {};
  }

  static bool happened_before(const access& other, const clock& now) { return now[as_index(other.rank)] > other.time; }

  std::optional<violation> conflict(const access& a, const access& other, int block, const std::string& where) const {
    return violation{a.rank, a.step, block,
                     joined(a.writes ? "writes" : "reads", " the ", where, " while step ", other.step, " of rank ",
                            other.rank, " may ", other.writes ? "write" : "read", " it", how())};
  }

  /// Each stuck rank waits for another stuck one, so following them leads round a circle.
  violation deadlock(int rank) {
    std::vector<char> seen(as_index(m_u.ranks), 0);
    while (!seen[as_index(rank)]) {
      seen[as_index(rank)] = 1;
      rank = obstacle(rank)->rank;
    }
    const int first = rank;
    std::string text = joined("deadlock: at time ", done(first), " it");
    do {
      const awaited next = *obstacle(rank);
      text += joined(rank == first ? "" : ", which", " waits for rank ", next.rank, " to finish time ", next.time);
      rank = next.rank;
    } while (rank != first);
    return {first, -1, -1, text + how()};
  }

  std::optional<violation> check_result() {
    for (int rank = 0; rank < m_u.ranks; ++rank)
      for (int k = 0; k < m_o.pieces; ++k)
        for (int b = 0; b < m_u.blocks; ++b)
          if (result_has(m_kind, m_u.ranks, m_u.root, rank, b) && result(rank, k, b).value != m_flow.result_of(rank, b))
            return violation{rank, -1, b,
                             joined("the result ends with ", m_flow.values().text(result(rank, k, b).value), how())};
    return {};
  }

  std::string how() const {
    return joined(" (", m_o.path == value_path::staged ? "staged" : "direct path",
                  m_o.in_place ? ", in place, " : ", out of place, ", m_o.depth, " slots, ", m_o.pieces,
                  m_o.pieces == 1 ? " piece)" : " pieces)");
  }

  const unrolled& m_u;
  const dataflow& m_flow;
  collective_kind m_kind;
  execution_options m_o;
  int m_times;
  int m_touching;  ///< from this time on nobody touches another's buffers
  std::vector<int> m_done;
  std::vector<int> m_clocks;  ///< per rank and time: the vector clock after it
  std::vector<location> m_memory;
  std::vector<slot> m_slots;
};

}  // namespace toroid::schedule::detail
