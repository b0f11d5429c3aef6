// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/memory.hpp"
#include "model/programs.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace model {

/// Result of machine::explore.
struct report {
  std::string fault;               ///< empty if there is none
  std::vector<std::string> trace;  ///< the shortest way to the fault, a line for each operation
  std::size_t states = 0;
  std::size_t steps = 0;
  /// What the programs returned, in the order of the threads, then the last value of each atomic: for all executions.
  std::set<std::vector<std::uint64_t>> outcomes;

  std::string text() const {
    std::string all = fault + "\n";
    for (const std::string& line : trace) all += "  " + line + "\n";
    return all;
  }
};

/// Explores all interleavings of a few threads.
///
/// A thread's program is an ordinary function that uses the machine's atomics and plain variables (see programs). It is
/// run again and again, so it must depend on nothing but the results of its operations, and not catch what it does not
/// know.
class machine {
 public:
  machine() = default;
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;

  std::size_t add_atomic(std::string name, std::uint64_t value) {
    if (m_atomic_names.size() == max_atomics) throw std::length_error("model: too many atomics");
    m_atomic_names.push_back(std::move(name));
    m_start.atomics.push_back({message{value, {}, false}});
    return m_atomic_names.size() - 1;
  }
  std::size_t add_plain(std::string name, std::uint64_t value) {
    m_plain_names.push_back(std::move(name));
    m_start.plains.push_back({});
    m_start.plains.back().value = value;
    return m_plain_names.size() - 1;
  }
  void add_thread(std::string name, std::function<std::uint64_t()> body) {
    if (m_programs.size() == max_threads) throw std::length_error("model: too many threads");
    m_programs.add(std::move(name), std::move(body));
    m_start.add_thread();
  }

  /// Called by programs: what the operation results in.
  std::uint64_t perform(operation op) { return m_programs.perform(std::move(op)); }
  /// Ends the exploration if `holds` is false.
  void require(bool holds, const std::string& text) {
    if (!holds) perform({.what = action::fault, .text = text});
  }
  /// Says that what the program does from here on depends on `place` alone, not on how it came here: a loop says so at
  /// its start, and is then not followed once for each number of times round.
  void forget(std::uint64_t place) { perform({.what = action::forget, .operand = place}); }
  void fence(std::memory_order order) { perform({.what = action::fence, .order = order}); }
  /// Every other thread passes a full barrier before this returns, each at a moment of its own.
  void membarrier() { perform({.what = action::membarrier}); }
  /// Any number below `count`.
  std::uint64_t choose(std::uint64_t count) { return perform({.what = action::choose, .operand = count}); }
  /// Loads until one of the conditions holds.
  /// @return its index
  std::uint64_t await_any(std::initializer_list<condition> conditions) {
    return perform({.what = action::await, .conditions = conditions});
  }
  void await_any(std::initializer_list<condition> conditions, unused_t) {
    perform({.what = action::await, .conditions = conditions, .unused = true});
  }
  /// The same, but may end at any time without a condition; the result is then their number.
  std::uint64_t await_any_or_give_up(std::initializer_list<condition> conditions) {
    return perform({.what = action::await, .conditions = conditions, .may_give_up = true});
  }

  /// Names the function that a program is in, for traces.
  class inside {
   public:
    inside(machine& m, const char* name) noexcept : m_machine(m), m_outer(m.m_programs.enter(name)) {}
    inside(const inside&) = delete;
    inside& operator=(const inside&) = delete;
    ~inside() { m_machine.m_programs.enter(m_outer); }

   private:
    machine& m_machine;
    const char* m_outer;
  };

  /// Visits every state, nearest first.
  /// @param limit  more states than these are a fault
  report explore(std::size_t limit = 5'000'000) {
    m_has_fences = false;
    while (true) {
      try {
        return explored(limit);
      } catch (const needs_fences&) {
        m_has_fences = true;
      }
    }
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// One of the ways in which an operation can turn out.
  struct way {
    std::size_t index = 0;      ///< message, position or thread
    std::uint64_t result = 0;   ///< what the program gets
    bool writes = true;         ///< false: a compare_exchange that fails
    std::size_t condition = 0;  ///< that ends an await
  };
  /// How a state was first reached: from which, by whose step, which way.
  struct visit_record {
    std::uint32_t from, thread, way;
  };
  struct fault_found {
    std::string text;
    visit_record where;
  };
  struct local_fault {
    std::string text;
  };
  struct hash_value {
    std::uint64_t low, high;
    bool operator==(const hash_value& other) const noexcept { return low == other.low && high == other.high; }
  };
  struct low_half {
    std::size_t operator()(const hash_value& h) const noexcept { return h.low; }
  };

  /// Ends an exploration that has left out what fences ask for.
  struct needs_fences {};

  report explored(std::size_t limit) {
    report found;
    m_visits.clear();
    m_queue.clear();
    m_queue_begin = 0;
    m_known.clear();
    m_programs.restart();
    state now = m_start;
    state next = m_start;
    try {
      begin(now, nullptr);
      visit(now, {0, 0, 0});
      for (std::uint32_t at = 0; m_queue_begin < m_queue.size(); ++at) {
        now.restore(m_queue[m_queue_begin]);
        m_queue[m_queue_begin++] = {};
        if (m_queue_begin == 4096) {
          m_queue.erase(m_queue.begin(), m_queue.begin() + 4096);
          m_queue_begin = 0;
        }
        if (m_visits.size() > limit)
          throw fault_found{"more states than the limit of " + std::to_string(limit), {at, 0, none}};
        expand(now, next, at, found);
      }
    } catch (const fault_found& fault) {
      found.fault = fault.text;
      found.trace = trace_to(fault.where);
    }
    found.states = m_visits.size();
    return found;
  }

  // ---- steps

  const operation& pending(const state& s, std::size_t thread) const {
    return m_programs.pending(s.threads[thread].node);
  }

  void advance(state& s, std::size_t thread, std::uint64_t result) {
    s.threads[thread].node = m_programs.after(thread, s.threads[thread].node, result);
  }

  /// Does what needs no interleaving, until the thread comes to what does.
  void run_local(state& s, std::size_t thread, std::vector<std::string>* lines) {
    while (true) {
      const operation& op = pending(s, thread);
      std::uint64_t result = 0;
      int other = -1;
      if (op.what == action::read) {
        other = s.read(thread, op.place, result);
      } else if (op.what == action::write) {
        other = s.write(thread, op.place, op.operand);
      } else if (op.what == action::forget) {
        s.threads[thread].node = m_programs.same_place(thread, op.operand, s.threads[thread].node);
        advance(s, thread, 0);
        continue;
      } else if (op.what == action::fault) {
        throw local_fault{m_programs.name(thread) + ": " + op.text};
      } else {
        s.threads[thread].finished = op.what == action::finish;
        return;
      }
      const char* const verb = op.what == action::read ? "reads " : "writes ";
      if (lines != nullptr)
        lines->push_back(who(thread, op) + verb + m_plain_names[op.place] +
                         (other >= 0 ? ""
                                     : (op.what == action::read ? ": " : " = ") +
                                           std::to_string(op.what == action::read ? result : op.operand)));
      if (other >= 0)
        throw local_fault{"data race: " + m_programs.name(thread) + " " + verb + m_plain_names[op.place] +
                          ", not ordered after an access by " + m_programs.name(static_cast<std::size_t>(other))};
      advance(s, thread, result);
    }
  }

  void begin(state& s, std::vector<std::string>* lines) {
    for (std::size_t t = 0; t < m_programs.size(); ++t) s.threads[t].node = m_programs.root(t);
    try {
      for (std::size_t t = 0; t < m_programs.size(); ++t) run_local(s, t, lines);
    } catch (const local_fault& fault) {
      if (lines != nullptr) throw;
      throw fault_found{fault.text, {none, 0, none}};
    }
    tidy(s);
  }

  void tidy(state& s) const {
    if (!m_has_fences) s.forget_gathered();
    s.tidy();
  }

  std::uint8_t others(std::size_t thread) const noexcept {
    return static_cast<std::uint8_t>(((1u << m_programs.size()) - 1) & ~(1u << thread));
  }

  /// All ways in which the thread's next operation can turn out now; none if it cannot go on.
  void find_ways(const state& s, std::size_t thread, std::vector<way>& ways) const {
    ways.clear();
    const operation& op = pending(s, thread);
    const thread_state& self = s.threads[thread];
    switch (op.what) {
      case action::load:
        add_loads(s, thread, op.conditions.front(), ways);
        break;
      case action::await:
        for (std::size_t i = 0; i < op.conditions.size(); ++i) {
          std::vector<way> loads;
          add_loads(s, thread, op.conditions[i], loads);
          for (const way& w : loads)
            if (w.result != 0) ways.push_back({w.index, op.unused ? 0 : i, true, i});
        }
        if (op.may_give_up) ways.push_back({0, op.conditions.size(), true, op.conditions.size()});
        break;
      case action::store:
        for (std::size_t i = s.oldest(thread, op.place, op.order) + 1; i <= s.atomics[op.place].size(); ++i)
          if (s.room_before(op.place, i)) ways.push_back({i, 0});
        break;
      case action::exchange:
      case action::add:
      case action::bit_or:
        for (std::size_t i = s.oldest(thread, op.place, op.order); i < s.atomics[op.place].size(); ++i)
          if (s.room_before(op.place, i + 1)) ways.push_back({i, op.unused ? 0 : s.atomics[op.place][i].value});
        break;
      case action::compare_exchange:
        for (std::size_t i = s.oldest(thread, op.place, op.order); i < s.atomics[op.place].size(); ++i) {
          const std::uint64_t value = s.atomics[op.place][i].value;
          if (value != op.expected)
            ways.push_back({i, value, false});
          else if (s.room_before(op.place, i + 1))
            ways.push_back({i, value, true});
        }
        break;
      case action::membarrier: {
        const unsigned left = self.barrier_left != 0 ? self.barrier_left : others(thread);
        for (std::size_t t = 0; t < m_programs.size(); ++t)
          if ((left >> t & 1) != 0) ways.push_back({t, 0});
        if (left == 0) ways.push_back({thread, 0});
        break;
      }
      case action::futex_wait:
        if (self.asleep_on < 0) ways.push_back({0, s.atomics[op.place].back().value == op.expected ? 0u : 1u});
        break;
      case action::choose:
        for (std::uint64_t i = 0; i < op.operand; ++i) ways.push_back({0, i});
        break;
      case action::finish:
        break;
      default:
        ways.push_back({0, 0});
        break;
    }
  }

  /// Leaves out messages that tell the program the same as an older one and more of the rest: whatever can happen
  /// after reading such a one can happen after reading the older one too.
  static void add_loads(const state& s, std::size_t thread, const condition& c, std::vector<way>& ways) {
    const auto& messages = s.atomics[c.atomic];
    for (std::size_t i = s.oldest(thread, c.atomic, c.order); i < messages.size(); ++i) {
      const std::uint64_t answer = c.answer(messages[i].value);
      const bool weaker_known = std::any_of(ways.begin(), ways.end(), [&](const way& w) {
        return w.result == answer && messages[i].released.covers(messages[w.index].released);
      });
      if (!weaker_known) ways.push_back({i, answer});
    }
  }

  /// Takes one step.
  void take(state& s, std::size_t thread, const way& w, std::vector<std::string>* lines) {
    const operation& op = pending(s, thread);
    thread_state& self = s.threads[thread];
    if (lines != nullptr) lines->push_back(line_for(s, thread, op, w));
    std::uint64_t result = w.result;
    switch (op.what) {
      case action::load:
        s.load(thread, op.conditions.front().atomic, w.index, op.conditions.front().order);
        break;
      case action::await:
        if (w.condition < op.conditions.size()) {
          const condition& c = op.conditions[w.condition];
          s.load(thread, c.atomic, w.index, c.order);
        }
        break;
      case action::store:
        s.store(thread, op.place, w.index, op.operand, op.order);
        break;
      case action::exchange:
      case action::add:
      case action::bit_or: {
        const std::uint64_t before = s.atomics[op.place][w.index].value;
        const std::uint64_t value = op.what == action::exchange ? op.operand
                                    : op.what == action::add    ? before + op.operand
                                                                : before | op.operand;
        s.load(thread, op.place, w.index, op.order);
        s.modify(thread, op.place, w.index, value, op.order);
        break;
      }
      case action::compare_exchange:
        s.load(thread, op.place, w.index, op.order);
        if (w.writes) s.modify(thread, op.place, w.index, op.operand, op.order);
        break;
      case action::fence:
        if (!m_has_fences) throw needs_fences{};
        s.fence(thread, op.order);
        break;
      case action::membarrier:
        if (self.barrier_left == 0) {
          s.agree(thread);
          self.barrier_left = others(thread);
        }
        s.agree(w.index);
        self.barrier_left = static_cast<std::uint8_t>(self.barrier_left & ~(1u << w.index));
        if (self.barrier_left != 0) return;
        s.agree(thread);
        break;
      case action::futex_wait:
        // The kernel looks at the word as it stands; to have seen it there is all that the sleeper learns.
        s.load(thread, op.place, s.atomics[op.place].size() - 1, std::memory_order_relaxed);
        if (w.result == 0) {
          self.asleep_on = static_cast<std::int8_t>(op.place);
          return;
        }
        break;
      case action::futex_wake:
        for (std::size_t t = 0; t < m_programs.size(); ++t) {
          if (s.threads[t].asleep_on != static_cast<std::int8_t>(op.place)) continue;
          s.threads[t].asleep_on = -1;
          advance(s, t, 0);
          run_local(s, t, lines);
        }
        result = 0;
        break;
      default:
        break;
    }
    advance(s, thread, result);
    run_local(s, thread, lines);
  }

  void expand(const state& now, state& next, std::uint32_t at, report& found) {
    bool stuck = true;
    for (std::size_t t = 0; t < m_programs.size(); ++t) {
      find_ways(now, t, m_ways);
      for (std::size_t i = 0; i < m_ways.size(); ++i) {
        stuck = false;
        const visit_record step{at, static_cast<std::uint32_t>(t), static_cast<std::uint32_t>(i)};
        next = now;
        try {
          take(next, t, m_ways[i], nullptr);
        } catch (const local_fault& fault) {
          throw fault_found{fault.text, step};
        }
        ++found.steps;
        tidy(next);
        visit(next, step);
      }
    }
    if (!stuck) return;
    std::vector<std::uint64_t> outcome;
    std::string blocked;
    for (std::size_t t = 0; t < m_programs.size(); ++t) {
      const operation& op = pending(now, t);
      outcome.push_back(op.operand);
      if (op.what != action::finish)
        blocked += " " + m_programs.name(t) + (op.what == action::futex_wait ? " sleeps" : " waits") +
                   (*op.inside != 0 ? std::string(" in ") + op.inside : std::string()) + ";";
    }
    if (!blocked.empty()) throw fault_found{"deadlock:" + blocked, {at, 0, none}};
    for (const auto& messages : now.atomics) outcome.push_back(messages.back().value);
    found.outcomes.insert(std::move(outcome));
  }

  void visit(const state& s, visit_record how) {
    s.save(m_bytes);
    if (!m_known.insert(hash_of(m_bytes)).second) return;
    m_visits.push_back(how);
    m_queue.push_back(m_bytes);
  }

  static std::uint64_t mixed(std::uint64_t x) noexcept {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 29;
    return x;
  }

  /// 128 bits: that two states of a million share them is less likely than a fault of the machine.
  static hash_value hash_of(const std::string& bytes) noexcept {
    std::uint64_t low = bytes.size(), high = ~low;
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      std::uint64_t word = 0;
      bytes.copy(reinterpret_cast<char*>(&word), 8, i);
      low = mixed(low ^ word) * 0x9e3779b97f4a7c15u;
      high = mixed(high + word * 0xff51afd7ed558ccdu) + (high << 21 | high >> 43);
    }
    return {mixed(low), mixed(high)};
  }

  // ---- telling

  std::vector<std::string> trace_to(visit_record where) {
    std::vector<visit_record> steps;
    for (visit_record step = where; step.from != none; step = m_visits[step.from]) {
      if (step.way != none) steps.push_back(step);
      if (step.from == 0) break;
    }
    std::vector<std::string> lines;
    state s = m_start;
    std::vector<way> ways;
    try {
      begin(s, &lines);
      for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
        find_ways(s, step->thread, ways);
        take(s, step->thread, ways[step->way], &lines);
        tidy(s);
      }
    } catch (const local_fault&) {  // told already
    }
    return lines;
  }

  static const char* name_of(std::memory_order order) noexcept {
    switch (order) {
      case std::memory_order_relaxed:
        return "relaxed";
      case std::memory_order_acquire:
        return "acquire";
      case std::memory_order_release:
        return "release";
      case std::memory_order_acq_rel:
        return "acq_rel";
      default:
        return "seq_cst";
    }
  }

  std::string who(std::size_t thread, const operation& op) const {
    return m_programs.name(thread) + (*op.inside != 0 ? std::string(" in ") + op.inside : std::string()) + ": ";
  }

  std::string loaded(const state& s, const condition& c, std::size_t index) const {
    const auto& messages = s.atomics[c.atomic];
    return m_atomic_names[c.atomic] + ".load(" + name_of(c.order) + ") is " + std::to_string(messages[index].value) +
           (index + 1 == messages.size() ? ""
                                         : ", though " + std::to_string(messages.back().value) + " has been stored");
  }

  std::string line_for(const state& s, std::size_t thread, const operation& op, const way& w) const {
    const std::string order = name_of(op.order);
    const auto object = [&] { return m_atomic_names[op.place]; };
    const std::string begin = who(thread, op);
    switch (op.what) {
      case action::load:
        return begin + loaded(s, op.conditions.front(), w.index);
      case action::await:
        if (w.condition == op.conditions.size()) return begin + "gives up waiting";
        return begin + "waits until " + loaded(s, op.conditions[w.condition], w.index);
      case action::store:
        return begin + object() + ".store(" + std::to_string(op.operand) + ", " + order + ")" +
               (w.index == s.atomics[op.place].size() ? "" : ", before a value stored already");
      case action::exchange:
        return begin + object() + ".exchange(" + std::to_string(op.operand) + ", " + order + ")";
      case action::add:
        return begin + object() + ".fetch_add(" + std::to_string(static_cast<std::int64_t>(op.operand)) + ", " + order +
               ") was " + std::to_string(s.atomics[op.place][w.index].value);
      case action::bit_or:
        return begin + object() + ".fetch_or(" + std::to_string(op.operand) + ", " + order + ") was " +
               std::to_string(s.atomics[op.place][w.index].value);
      case action::compare_exchange:
        return begin + object() + ".compare_exchange(" + std::to_string(op.expected) + ", " +
               std::to_string(op.operand) + ", " + order + ") found " + std::to_string(w.result);
      case action::fence:
        return begin + "fence(" + order + ")";
      case action::membarrier:
        return begin + "membarrier passes on " + m_programs.name(w.index);
      case action::futex_wait:
        return begin + "futex_wait(" + object() + ", " + std::to_string(op.expected) + ")" +
               (w.result == 0 ? " sleeps" : " finds " + std::to_string(s.atomics[op.place].back().value));
      case action::futex_wake:
        return begin + "futex_wake(" + object() + ")";
      case action::choose:
        return begin + "chooses " + std::to_string(w.result);
      default:
        return begin;
    }
  }

  programs m_programs;
  std::vector<std::string> m_atomic_names, m_plain_names;
  state m_start;

  bool m_has_fences = false;
  std::vector<visit_record> m_visits;
  std::vector<std::string> m_queue;
  std::size_t m_queue_begin = 0;
  std::unordered_set<hash_value, low_half> m_known;
  std::vector<way> m_ways;
  std::string m_bytes;
};

}  // namespace model
