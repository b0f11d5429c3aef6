// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/schedule/detail/text.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace toroid::schedule::detail {

/// Symbolic values: which contributions were combined, in which order and grouping. Equal values have equal numbers.
///
/// Value r in [0, ranks) is the contribution of rank r.
class expressions {
 public:
  static constexpr int none = -1;

  explicit expressions(int ranks) : m_ranks(ranks) {
    for (int r = 0; r < ranks; ++r) m_nodes.push_back({r, none, 1, ranks == 1});
  }

  /// `left`, then `right`.
  int combine(int left, int right) { return insert(left, right); }
  /// A value that is complete and has been marked so: `average` has divided it.
  int finish(int value) { return insert(value, none); }

  bool finished(int value) const { return !is_contribution(value) && node_of(value).right == none; }
  /// Each rank's contribution is in it exactly once.
  bool complete(int value) const { return node_of(value).complete; }
  bool is_contribution(int value) const { return value < m_ranks; }

  /// Contributions from left to right, at most `limit` of them.
  std::vector<int> order(int value, std::size_t limit = std::numeric_limits<std::size_t>::max()) const {
    std::vector<int> ranks;
    std::vector<int> todo{value};
    while (!todo.empty() && ranks.size() < limit) {
      const int next = todo.back();
      todo.pop_back();
      if (is_contribution(next)) {
        ranks.push_back(next);
        continue;
      }
      if (node_of(next).right != none) todo.push_back(node_of(next).right);
      todo.push_back(node_of(next).left);
    }
    return ranks;
  }

  /// For people: "0 + 1 + 2" is combined from left to right, other groupings have parentheses.
  std::string text(int value) const {
    if (value == none) return "nothing";
    if (node_of(value).contributions > static_cast<std::size_t>(m_ranks)) return "more contributions than ranks";
    std::vector<std::string> terms;  // of the chain that leads to the left, outermost first
    int left = value;
    for (; !is_contribution(left); left = node_of(left).left) {
      const int right = node_of(left).right;
      if (right == none) continue;
      terms.push_back(is_contribution(right) ? std::to_string(right) : joined("(", text(right), ")"));
    }
    std::string out = std::to_string(left);
    std::for_each(terms.rbegin(), terms.rend(), [&](const std::string& term) { out += joined(" + ", term); });
    return out;
  }

 private:
  struct node {
    int left;
    int right;
    std::size_t contributions;  // saturates just above the number of ranks
    bool complete;
  };

  const node& node_of(int value) const { return m_nodes[static_cast<std::size_t>(value)]; }

  int insert(int left, int right) {
    const auto [at, is_new] = m_numbers.try_emplace({left, right}, static_cast<int>(m_nodes.size()));
    if (!is_new) return at->second;
    const std::size_t ranks = static_cast<std::size_t>(m_ranks);
    const std::size_t sum = node_of(left).contributions + (right == none ? 0 : node_of(right).contributions);
    m_nodes.push_back({left, right, std::min(sum, ranks + 1), false});
    if (sum == ranks) {
      std::vector<int> seen = order(at->second);
      std::sort(seen.begin(), seen.end());
      m_nodes.back().complete = std::adjacent_find(seen.begin(), seen.end()) == seen.end();
    }
    return at->second;
  }

  int m_ranks;
  std::vector<node> m_nodes;
  std::map<std::pair<int, int>, int> m_numbers;
};

}  // namespace toroid::schedule::detail
