// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/schedule/detail/expressions.hpp>
#include <toroid/schedule/detail/text.hpp>
#include <toroid/schedule/detail/unrolled.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/schedule/verification.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace toroid::schedule::detail {

inline const char* name_of(place where) {
  return where == place::input ? "input" : where == place::slot ? "slot" : "delivered";
}

/// Whether rank r's part of a collective's input (result) covers block b.
inline bool input_has(collective_kind kind, int ranks, int root, int rank, int block) {
  if (kind == collective_kind::all_to_all) return block / ranks == rank;
  if (kind == collective_kind::all_gather || kind == collective_kind::gather) return block == rank;
  return (kind != collective_kind::broadcast && kind != collective_kind::scatter) || rank == root;
}
inline bool result_has(collective_kind kind, int ranks, int root, int rank, int block) {
  if (kind == collective_kind::all_to_all) return block % ranks == rank;
  if (kind == collective_kind::reduce || kind == collective_kind::gather) return rank == root;
  if (kind == collective_kind::broadcast) return rank != root;  // what the root brings stays as it is
  return (kind != collective_kind::reduce_scatter && kind != collective_kind::scatter) || block == rank;
}
inline bool combines(collective_kind kind) {
  return kind == collective_kind::all_reduce || kind == collective_kind::reduce_scatter ||
         kind == collective_kind::reduce;
}

/// Which values flow where, if every message arrives: sends and receives are matched, values are computed
/// symbolically, and the result is compared with what the collective promises.
class dataflow {
 public:
  /// Instead of the operation that a value was sent by.
  static constexpr std::size_t own_buffer = std::numeric_limits<std::size_t>::max();

  dataflow(const unrolled& u, collective_kind kind, bool in_rank_order)
      : m_u(u), m_kind(kind), m_in_rank_order(in_rank_order), m_values(u.ranks) {}

  std::optional<violation> run() {
    if (auto found = check_operations()) return found;
    lay_out();
    std::vector<message> sent;
    for (int step = 0; step <= m_u.steps; ++step) {  // one beyond the last: nothing may be under way then
      if (auto found = match(sent, step)) return found;
      if (step == m_u.steps) break;
      if (auto found = compute(step)) return found;
      sent = sends_of(step);
    }
    return check_result();
  }

  /// The value that operation `op` computes for its `index`-th block.
  int value_of(std::size_t op, int index) const {
    return m_computed[m_first_value[op] + static_cast<std::size_t>(index)];
  }
  /// The value that it finds in its own input or result, if it has such an operand.
  int own_value_of(std::size_t op, int index) const {
    return m_own[m_first_value[op] + static_cast<std::size_t>(index)];
  }
  int result_of(int rank, int block) const { return m_result[place_of(rank, block)]; }
  const expressions& values() const { return m_values; }

 private:
  /// The value of a block under way, as its sender or as its receiver sees it.
  struct message {
    int from;
    int to;
    int block;
    place at;
    std::size_t value;    // what the sender has computed: its operation's first value and so on
    std::size_t operand;  // which operand of the receiver's operation

    auto ends() const { return std::tuple(from, to); }
    auto key() const { return std::tuple(from, to, block, at); }
    friend bool operator<(const message& a, const message& b) { return a.key() < b.key(); }
  };

  std::size_t operand_of(std::size_t op, int operand, int index) const {
    return m_first_operand[op] + static_cast<std::size_t>(operand * m_u.operations[op].blocks.count + index);
  }
  std::size_t place_of(int rank, int block) const {
    return static_cast<std::size_t>(rank) * static_cast<std::size_t>(m_u.blocks) + static_cast<std::size_t>(block);
  }

  /// What makes no sense for one operation alone.
  std::optional<violation> check_operations() const {
    for (int step = 0; step < m_u.steps; ++step)
      for (int rank = 0; rank < m_u.ranks; ++rank)
        for (const operation& op : m_u.of(step, rank))
          if (auto wrong = check_operation(rank, op)) return violation{rank, step, op.blocks.first, *wrong};
    return {};
  }

  std::optional<std::string> check_operation(int rank, const operation& op) const {
    const int ranks = m_u.ranks;
    const int first = op.blocks.first;
    if (first < 0 || op.blocks.count < 1 || first >= m_u.blocks || op.blocks.count > m_u.blocks)
      return joined(op.blocks.count, " blocks from ", first, " on, of ", m_u.blocks);
    if (op.from.count < 1) return "an operation without operands";
    if (op.to.count < 1) return "an operation without destinations";
    for (const peers& set : {op.from, op.to}) {
      if (set.extra >= ranks) return "a set of peers names a rank that there is not";
      peers sequence = set;
      if (set.extra >= 0) sequence = {set.first, set.step, set.count - 1};
      if (sequence.count > ranks / std::gcd(set.step, ranks) || (set.extra >= 0 && sequence.contains(set.extra, ranks)))
        return "a set of peers names a rank twice";
    }
    const bool reads_own = op.from.contains(rank, ranks);
    const bool keeps = op.to.contains(rank, ranks);
    const bool receives = op.from.count > (reads_own ? 1 : 0);
    const bool sends = op.to.count > (keeps ? 1 : 0);
    if (sends && op.at == place::input && (receives || op.own != place::input))
      return "peers are told to read this rank's input, but the value is another";
    if (keeps && op.at == place::input) return "an announcement is for peers, and cannot be kept as the own result";
    if (receives && op.theirs == place::delivered) {
      if (op.from.count > 1) return "a delivered value is final, and cannot be an operand";
      if (!keeps || op.at != place::delivered) return "a value was delivered to this rank, which does not keep it";
    }
    for (int n = 0; n < op.blocks.count; ++n) {
      const int b = op.blocks.at(n, m_u.blocks);
      if (reads_own && op.own == place::input && !input_has(m_kind, m_u.ranks, m_u.root, rank, b))
        return "reads an input block that the call does not have";
      for (int i = 0; i < op.to.count; ++i) {
        const int to = op.to.at(i, ranks);
        if (op.at == place::delivered && !result_has(m_kind, m_u.ranks, m_u.root, to, b))
          return joined("writes a block that the result of rank ", to, " does not have");
      }
    }
    return {};
  }

  void lay_out() {
    for (const operation& op : m_u.operations) {
      m_first_value.push_back(m_computed.size());
      m_computed.resize(m_computed.size() + static_cast<std::size_t>(op.blocks.count), expressions::none);
      m_first_operand.push_back(m_operands.size());
      m_operands.resize(m_operands.size() + static_cast<std::size_t>(op.from.count * op.blocks.count), own_buffer);
    }
    m_own = m_computed;
    m_result.assign(static_cast<std::size_t>(m_u.ranks) * static_cast<std::size_t>(m_u.blocks), expressions::none);
  }

  std::vector<message> sends_of(int step) const {
    std::vector<message> found;
    for (int rank = 0; rank < m_u.ranks; ++rank) {
      for (std::size_t o = m_u.begin_of(step, rank); o < m_u.end_of(step, rank); ++o) {
        const operation& op = m_u.operations[o];
        for (int i = 0; i < op.to.count; ++i) {
          const int to = op.to.at(i, m_u.ranks);
          if (to == rank && op.at != place::slot) continue;
          for (int n = 0; n < op.blocks.count; ++n)
            found.push_back(
                {rank, to, op.blocks.at(n, m_u.blocks), op.at, m_first_value[o] + static_cast<std::size_t>(n), 0});
        }
      }
    }
    return found;
  }

  std::vector<message> receives_of(int step) const {
    std::vector<message> found;
    for (int rank = 0; rank < m_u.ranks; ++rank) {
      for (std::size_t o = m_u.begin_of(step, rank); o < m_u.end_of(step, rank); ++o) {
        const operation& op = m_u.operations[o];
        for (int i = 0; i < op.from.count; ++i) {
          const int from = op.from.at(i, m_u.ranks);
          if (from == rank && op.own != place::slot) continue;
          for (int n = 0; n < op.blocks.count; ++n)
            found.push_back(
                {from, rank, op.blocks.at(n, m_u.blocks), from == rank ? op.own : op.theirs, 0, operand_of(o, i, n)});
        }
      }
    }
    return found;
  }

  /// What was sent in the step before is what is received in `step`, one for one.
  std::optional<violation> match(std::vector<message>& sent, int step) {
    std::vector<message> received = step < m_u.steps ? receives_of(step) : std::vector<message>{};
    std::sort(sent.begin(), sent.end());
    std::sort(received.begin(), received.end());
    for (std::size_t i = 0; i < std::max(sent.size(), received.size()); ++i) {
      const bool have_sent = i < sent.size(), have_received = i < received.size();
      if (have_sent && have_received && sent[i].key() == received[i].key()) {
        m_operands[received[i].operand] = sent[i].value;
        continue;
      }
      return mismatch(have_sent ? &sent[i] : nullptr, have_received ? &received[i] : nullptr, step);
    }
    return {};
  }

  /// Both lists are sorted, so the smaller of the first two that differ has no partner.
  static std::optional<violation> mismatch(const message* sent, const message* received, int step) {
    if (sent && received && sent->ends() == received->ends()) {
      if (sent->block != received->block)
        return violation{received->to, step, received->block,
                         joined("wrong block: receives block ", received->block, " from rank ", sent->from,
                                ", which sent block ", sent->block)};
      return violation{received->to, step, received->block,
                       joined("wrong place: expects the value of rank ", sent->from, " at ", name_of(received->at),
                              ", which put it at ", name_of(sent->at))};
    }
    if (sent && (!received || *sent < *received))
      return violation{sent->from, step - 1, sent->block,
                       joined("sent to rank ", sent->to, ", which does not receive it in step ", step)};
    return violation{received->to, step, received->block,
                     joined("receives from rank ", received->from, " what was not sent in step ", step - 1)};
  }

  std::optional<violation> compute(int step) {
    for (int rank = 0; rank < m_u.ranks; ++rank) {
      for (std::size_t o = m_u.begin_of(step, rank); o < m_u.end_of(step, rank); ++o) {
        const operation& op = m_u.operations[o];
        for (int i = 0; i < op.blocks.count; ++i)
          if (auto wrong = compute(o, rank, i)) return violation{rank, step, op.blocks.at(i, m_u.blocks), *wrong};
      }
    }
    return {};
  }

  std::optional<std::string> compute(std::size_t o, int rank, int index) {
    const operation& op = m_u.operations[o];
    const std::size_t own_place = place_of(rank, op.blocks.at(index, m_u.blocks));
    int value = expressions::none;
    for (int i = 0; i < op.from.count; ++i) {
      const std::size_t source = m_operands[operand_of(o, i, index)];
      int operand = source == own_buffer ? rank : m_computed[source];
      if (source == own_buffer && op.own == place::delivered) operand = m_result[own_place];
      if (operand == expressions::none) return "reads an own result that is not there yet";
      if (source == own_buffer) m_own[m_first_value[o] + static_cast<std::size_t>(index)] = operand;
      if (op.reduces() && m_values.finished(operand)) return "a value that was complete is combined with others";
      value = value == expressions::none ? operand : m_values.combine(value, operand);
    }
    if (op.completes) {
      if (!combines(m_kind)) return "completes is set, but nothing is combined";
      if (m_values.finished(value)) return "completes is set a second time";
      if (!m_values.complete(value))
        return joined("completes is set, but the value does not hold every contribution once: ", m_values.text(value));
      value = m_values.finish(value);
    } else if (combines(m_kind) && m_values.complete(value) && !m_values.finished(value)) {
      return "completes is missing: the value holds all contributions";
    }
    m_computed[m_first_value[o] + static_cast<std::size_t>(index)] = value;
    if (op.at != place::slot && op.to.contains(rank, m_u.ranks)) m_result[own_place] = value;
    return {};
  }

  std::optional<violation> check_result() const {
    for (int b = 0; b < m_u.blocks; ++b) {
      for (int rank = 0; rank < m_u.ranks; ++rank) {
        if (!result_has(m_kind, m_u.ranks, m_u.root, rank, b)) continue;
        const int value = result_of(rank, b);
        if (value == expressions::none) return violation{rank, -1, b, "the result never gets this block"};
        if (!combines(m_kind)) {
          const bool from_root = m_kind == collective_kind::broadcast || m_kind == collective_kind::scatter;
          const int owner = from_root ? m_u.root : m_kind == collective_kind::all_to_all ? b / m_u.ranks : b;
          if (value != owner)
            return violation{
                rank, -1, b,
                joined("the result ends with the contribution of ", m_values.text(value), ", not of rank ", owner)};
          continue;
        }
        if (!m_values.finished(value))
          return violation{rank, -1, b,
                           joined("the result ends without every contribution once: ", m_values.text(value))};
        const bool everywhere = m_kind == collective_kind::all_reduce;
        if (everywhere && value != result_of(0, b))
          return violation{rank, -1, b,
                           joined("wrong order: combines ", m_values.text(value), ", and rank 0 combines ",
                                  m_values.text(result_of(0, b)))};
        const std::vector<int> order = m_values.order(value);
        if (m_in_rank_order && !std::is_sorted(order.begin(), order.end()))
          return violation{rank, -1, b, joined("wrong order: combines ", m_values.text(value), ", not in rank order")};
      }
    }
    return {};
  }

  const unrolled& m_u;
  collective_kind m_kind;
  bool m_in_rank_order;
  expressions m_values;
  std::vector<std::size_t> m_first_value;    // per operation
  std::vector<int> m_computed;               // per operation and block
  std::vector<int> m_own;                    // ... what it reads in the own buffers
  std::vector<std::size_t> m_first_operand;  // per operation
  std::vector<std::size_t> m_operands;       // ... operand and block: which of m_computed it is, or own_buffer
  std::vector<int> m_result;                 // per rank and block, in the end
};

}  // namespace toroid::schedule::detail
