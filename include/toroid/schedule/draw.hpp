// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/schedule/concept.hpp>
#include <toroid/schedule/detail/text.hpp>
#include <toroid/schedule/operation.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <vector>

/// A schedule as text for people, as DOT for Graphviz and as JSON for programs.
namespace toroid::schedule {

namespace detail {

inline const char* word_for(place where) {
  return where == place::input ? "input" : where == place::slot ? "slot" : "delivered";
}

/// "3", "3-6", or where they wrap around "6-7,0-1".
inline std::string text_of(block_range blocks, int all) {
  const auto run = [](int first, int last) { return first == last ? joined(first) : joined(first, "-", last); };
  const int last = blocks.first + blocks.count - 1;
  return last < all ? run(blocks.first, last) : joined(run(blocks.first, all - 1), ",", run(0, last - all));
}

/// Blocks in any order, as runs of consecutive ones: "0-2,5".
inline std::string text_of(std::vector<int> blocks) {
  std::sort(blocks.begin(), blocks.end());
  std::string out;
  for (std::size_t i = 0; i < blocks.size();) {
    std::size_t end = i + 1;
    while (end < blocks.size() && blocks[end] == blocks[end - 1] + 1) ++end;
    out += joined(i == 0 ? "" : ",", blocks[i]);
    if (end > i + 1) out += joined("-", blocks[end - 1]);
    i = end;
  }
  return out;
}

/// Ranks of a set with a separator between them, each in the words of `word`.
template <class Word>
std::string list_of(const peers& set, int ranks, const char* separator, Word word) {
  std::string out;
  for (int i = 0; i < set.count; ++i) out += joined(i == 0 ? "" : separator, word(set.at(i, ranks)));
  return out;
}

/// Calls visit(step, rank, operation) for all of them.
template <schedule_type S, class Visit>
void for_each_operation(int ranks, int root, int rows, Visit visit) {
  const int steps = S::steps(problem{0, ranks, root, rows});
  for (int step = 0; step < steps; ++step) {
    for (int rank = 0; rank < ranks; ++rank) {
      const problem p{rank, ranks, root, rows};
      const int operations = S::operations(p, step);
      for (int i = 0; i < operations; ++i) visit(step, rank, S::at(p, step, i));
    }
  }
}

}  // namespace detail

/// One line an operation: what is combined, left to right, and where the value goes.
///
///     step 1
///       rank 0, block 1: 2.input + own input -> 1.slot
template <schedule_type S>
std::string draw_text(S, int ranks, int root = 0, int rows = 1) {
  using detail::joined;
  const problem zero{0, ranks, root, rows};
  const int blocks = S::blocks(zero);
  std::string out = joined(ranks, " ranks, ", blocks, " blocks, ", S::steps(zero),
                           " steps; peers touch each other's buffers in the first ", S::touching_steps(zero), "\n");
  int shown = 0;
  const auto head = [&](int end) {
    for (; shown < end; ++shown) out += joined("step ", shown, "\n");
  };
  detail::for_each_operation<S>(ranks, root, rows, [&](int step, int rank, const operation& op) {
    head(step + 1);
    const auto own = [](place where) { return where == place::delivered ? "result" : detail::word_for(where); };
    const auto operand = [&](int q) {
      return q == rank ? joined("own ", own(op.own)) : joined(q, ".", detail::word_for(op.theirs));
    };
    const auto target = [&](int q) {
      return q == rank ? joined("own ", own(op.at)) : joined(q, ".", detail::word_for(op.at));
    };
    out += joined("  rank ", rank, ", block ", detail::text_of(op.blocks, blocks), ": ",
                  detail::list_of(op.from, ranks, " + ", operand), " -> ", detail::list_of(op.to, ranks, ", ", target),
                  op.completes ? " (complete)\n" : "\n");
  });
  head(S::steps(zero));  // those at the end in which nobody does anything
  return out;
}

/// A node for each rank and step, an edge for what goes from one rank to another in a step, labelled with its blocks:
/// dotted where the receiver may read it in the sender's input, bold where the sender puts it into the receiver's
/// result. What a rank puts into its own slot is a dashed edge.
template <schedule_type S>
std::string draw_dot(S, int ranks, int root = 0, int rows = 1) {
  using detail::joined;
  const problem zero{0, ranks, root, rows};
  const int steps = S::steps(zero), blocks = S::blocks(zero);
  const auto node = [](int step, int rank) { return joined("\"", rank, "@", step, "\""); };
  std::string out =
      "digraph schedule {\n  rankdir=LR;\n  ranksep=2;\n  nodesep=0.5;\n  splines=line;\n"
      "  node [shape=box];\n  edge [labeldistance=3, fontsize=10];\n";
  // Only these decide where nodes stand: ranks in order, each on a line of its own.
  for (int step = 0; step < steps; ++step) {
    out += "  { rank=same;";
    for (int rank = 0; rank < ranks; ++rank) out += joined(rank == 0 ? " " : " -> ", node(step, rank));
    out += ranks > 1 ? " [style=invis]; }\n" : "; }\n";
  }
  for (int rank = 0; rank < ranks; ++rank)
    for (int step = 0; step + 1 < steps; ++step)
      out += joined("  ", node(step, rank), " -> ", node(step + 1, rank), " [style=invis, weight=100];\n");
  out += "  edge [constraint=false];\n";
  std::map<std::tuple<int, int, int, place>, std::vector<int>> edges;  // by step, from, to, place: blocks
  detail::for_each_operation<S>(ranks, root, rows, [&](int step, int rank, const operation& op) {
    for (int i = 0; i < op.to.count; ++i) {
      const int to = op.to.at(i, ranks);
      if (to == rank && op.at != place::slot) continue;
      for (int b = 0; b < op.blocks.count; ++b) edges[{step, rank, to, op.at}].push_back(op.blocks.at(b, blocks));
    }
  });
  for (const auto& [key, label] : edges) {
    const auto [step, from, to, at] = key;
    const char* style = to == from ? "dashed" : at == place::input ? "dotted" : at == place::slot ? "solid" : "bold";
    out += joined("  ", node(step, from), " -> ", node(step + 1, to), " [taillabel=\"", detail::text_of(label),
                  "\", style=", style, "];\n");
  }
  return joined(out, "}\n");
}

/// An object with ranks, root, rows, blocks, steps, touching_steps, pipelined, classes (first, count) and operations
/// (step, rank, from, theirs, own, blocks [first, count] modulo all, to, at, completes), sets of ranks as arrays.
template <schedule_type S>
std::string draw_json(S, int ranks, int root = 0, int rows = 1) {
  using detail::joined;
  const problem zero{0, ranks, root, rows};
  const auto number = [](const char* name, int value) { return joined("\"", name, "\": ", value); };
  const auto truth = [](const char* name, bool value) { return joined("\"", name, "\": ", value ? "true" : "false"); };
  const auto where = [](const char* name, place value) {
    return joined("\"", name, "\": \"", detail::word_for(value), "\"");
  };
  const auto array = [&](const char* name, const peers& set) {
    return joined("\"", name, "\": [", detail::list_of(set, ranks, ", ", [](int q) { return joined(q); }), "]");
  };
  std::string out = joined("{", number("ranks", ranks), ", ", number("root", root), ", ", number("rows", rows), ", ",
                           number("blocks", S::blocks(zero)), ", ", number("steps", S::steps(zero)), ", ",
                           number("touching_steps", S::touching_steps(zero)), ", ", truth("pipelined", S::pipelined),
                           ",\n \"classes\": [");
  for (int c = 0; c < S::class_count(zero); ++c) {
    const step_class run = S::class_at(zero, c);
    out += joined(c == 0 ? "{" : ", {", number("first", run.first), ", ", number("count", run.count), "}");
  }
  out += "],\n \"operations\": [";
  bool some = false;
  detail::for_each_operation<S>(ranks, root, rows, [&](int step, int rank, const operation& op) {
    out += joined(some ? ",\n  {" : "\n  {", number("step", step), ", ", number("rank", rank), ", ",
                  array("from", op.from), ", ", where("theirs", op.theirs), ", ", where("own", op.own),
                  ", \"blocks\": [", op.blocks.first, ", ", op.blocks.count, "], ", array("to", op.to), ", ",
                  where("at", op.at), ", ", truth("completes", op.completes), "}");
    some = true;
  });
  return joined(out, "]}\n");
}

}  // namespace toroid::schedule
