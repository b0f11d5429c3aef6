// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/operation.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace model {

/// The programs of all threads, as trees: a node is a place that a program has reached, told by the results so far; it
/// holds the operation that comes next. Trees grow as far as executions go.
///
/// A program is an ordinary function. To reach a place that is new it is run from its beginning: each operation gives
/// back what it gave before, and the first one that is new ends the run by an exception.
class programs {
 public:
  using node_index = std::uint32_t;

  void add(std::string name, std::function<std::uint64_t()> body) {
    m_programs.push_back({std::move(name), std::move(body)});
  }
  std::size_t size() const noexcept { return m_programs.size(); }
  const std::string& name(std::size_t thread) const { return m_programs[thread].name; }

  /// Forgets all trees, and makes new ones of one node.
  void restart() {
    m_nodes.clear();
    m_places.clear();
    m_roots.clear();
    for (std::size_t t = 0; t < m_programs.size(); ++t) m_roots.push_back(run_to(t, none, 0));
  }

  /// Where a thread begins.
  node_index root(std::size_t thread) const { return m_roots[thread]; }
  /// What the program does at `at`; stays where it is.
  const operation& pending(node_index at) const { return m_nodes[at].pending; }

  /// Where the program goes on when its operation at `at` results in `result`.
  node_index after(std::size_t thread, node_index at, std::uint64_t result) {
    for (const auto& [known, child] : m_nodes[at].next)
      if (known == result) return child;
    const node_index child = run_to(thread, at, result);
    m_nodes[at].next.push_back({result, child});
    return child;
  }

  /// The one node that stands for all that come to this `place` of a forget().
  node_index same_place(std::size_t thread, std::uint64_t place, node_index at) {
    return m_places.insert({{thread, place}, at}).first->second;
  }

  /// Called by the program that is run.
  std::uint64_t perform(operation op) {
    op.inside = m_inside;
    if (m_position == m_path.size()) {
      m_pending = std::move(op);
      throw suspended{};
    }
    const auto& [at, result] = m_path[m_position++];
    const operation& before = m_nodes[at].pending;
    if (before.what != op.what || before.place != op.place || before.operand != op.operand)
      throw std::logic_error("model: a program did something else when it was run again");
    return result;
  }

  /// Says which function the program is in.
  /// @return what it was in before
  const char* enter(const char* function) noexcept { return std::exchange(m_inside, function); }

 private:
  static constexpr node_index none = ~node_index{0};

  struct suspended {};
  struct program {
    std::string name;
    std::function<std::uint64_t()> run;
  };
  struct node {
    operation pending;
    node_index parent = none;
    std::uint64_t result = 0;  ///< of the parent's operation
    std::vector<std::pair<std::uint64_t, node_index>> next;
  };

  node_index run_to(std::size_t thread, node_index parent, std::uint64_t result) {
    node fresh;
    fresh.parent = parent;
    fresh.result = result;
    m_path.clear();
    for (node_index at = parent; at != none; at = m_nodes[at].parent) {
      m_path.push_back({at, result});
      result = m_nodes[at].result;
    }
    std::reverse(m_path.begin(), m_path.end());
    m_position = 0;
    m_inside = "";
    try {
      const std::uint64_t returned = m_programs[thread].run();
      fresh.pending = {.what = action::finish, .operand = returned};
    } catch (const suspended&) {
      fresh.pending = std::move(m_pending);
    }
    m_nodes.push_back(std::move(fresh));
    return static_cast<node_index>(m_nodes.size() - 1);
  }

  std::vector<program> m_programs;
  std::deque<node> m_nodes;  ///< references to nodes last while others are added
  std::vector<node_index> m_roots;
  std::map<std::pair<std::size_t, std::uint64_t>, node_index> m_places;
  std::vector<std::pair<node_index, std::uint64_t>> m_path;  ///< nodes that the run passes, and results there
  std::size_t m_position = 0;
  operation m_pending;
  const char* m_inside = "";
};

}  // namespace model
