// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/schedule/concept.hpp>
#include <toroid/schedule/detail/text.hpp>
#include <toroid/schedule/operation.hpp>

#include <string>

/// A schedule as text for people, as DOT for Graphviz and as JSON for programs.
namespace toroid::schedule {

namespace detail {

inline const char* word_for(place where) {
  return where == place::input ? "input" : where == place::slot ? "slot" : "delivered";
}

inline std::string text_of(block_range blocks) {
  return blocks.count == 1 ? joined(blocks.first) : joined(blocks.first, "-", blocks.first + blocks.count - 1);
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
void for_each_operation(int ranks, int root, Visit visit) {
  const int steps = S::steps(problem{0, ranks, root});
  for (int step = 0; step < steps; ++step) {
    for (int rank = 0; rank < ranks; ++rank) {
      const problem p{rank, ranks, root};
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
std::string draw_text(S, int ranks, int root = 0) {
  using detail::joined;
  const problem zero{0, ranks, root};
  std::string out = joined(ranks, " ranks, ", S::blocks(zero), " blocks, ", S::steps(zero),
                           " steps; peers touch each other's buffers in the first ", S::touching_steps(zero), "\n");
  int shown = 0;
  const auto head = [&](int end) {
    for (; shown < end; ++shown) out += joined("step ", shown, "\n");
  };
  detail::for_each_operation<S>(ranks, root, [&](int step, int rank, const operation& op) {
    head(step + 1);
    const auto operand = [&](int q) {
      return q == rank ? joined("own input") : joined(q, ".", detail::word_for(op.theirs));
    };
    const auto target = [&](int q) {
      return q == rank ? joined("own result") : joined(q, ".", detail::word_for(op.at));
    };
    out += joined("  rank ", rank, ", block ", detail::text_of(op.blocks), ": ",
                  detail::list_of(op.from, ranks, " + ", operand), " -> ", detail::list_of(op.to, ranks, ", ", target),
                  op.completes ? " (complete)\n" : "\n");
  });
  head(S::steps(zero));  // those at the end in which nobody does anything
  return out;
}

/// A node for each rank and step, an edge for each message, labelled with its blocks: dotted where the receiver may
/// read it in the sender's input, bold where the sender puts it into the receiver's result.
template <schedule_type S>
std::string draw_dot(S, int ranks, int root = 0) {
  using detail::joined;
  const int steps = S::steps(problem{0, ranks, root});
  const auto node = [](int step, int rank) { return joined("\"", rank, "@", step, "\""); };
  std::string out = "digraph schedule {\n  rankdir=LR;\n  node [shape=box];\n";
  for (int step = 0; step < steps; ++step) {
    out += "  { rank=same;";
    for (int rank = 0; rank < ranks; ++rank) out += joined(" ", node(step, rank), ";");
    out += " }\n";
  }
  for (int rank = 0; rank < ranks; ++rank)
    for (int step = 0; step + 1 < steps; ++step)
      out += joined("  ", node(step, rank), " -> ", node(step + 1, rank), " [style=invis];\n");
  detail::for_each_operation<S>(ranks, root, [&](int step, int rank, const operation& op) {
    const char* style = op.at == place::input ? "dotted" : op.at == place::slot ? "solid" : "bold";
    for (int i = 0; i < op.to.count; ++i)
      if (const int to = op.to.at(i, ranks); to != rank)
        out += joined("  ", node(step, rank), " -> ", node(step + 1, to), " [label=\"", detail::text_of(op.blocks),
                      "\", style=", style, "];\n");
  });
  return joined(out, "}\n");
}

/// An object with ranks, root, blocks, steps, touching_steps, pipelined, classes (first, count) and operations (step,
/// rank, from, theirs, blocks [first, count], to, at, completes), sets of ranks as arrays.
template <schedule_type S>
std::string draw_json(S, int ranks, int root = 0) {
  using detail::joined;
  const problem zero{0, ranks, root};
  const auto number = [](const char* name, int value) { return joined("\"", name, "\": ", value); };
  const auto truth = [](const char* name, bool value) { return joined("\"", name, "\": ", value ? "true" : "false"); };
  const auto where = [](const char* name, place value) {
    return joined("\"", name, "\": \"", detail::word_for(value), "\"");
  };
  const auto array = [&](const char* name, const peers& set) {
    return joined("\"", name, "\": [", detail::list_of(set, ranks, ", ", [](int q) { return joined(q); }), "]");
  };
  std::string out =
      joined("{", number("ranks", ranks), ", ", number("root", root), ", ", number("blocks", S::blocks(zero)), ", ",
             number("steps", S::steps(zero)), ", ", number("touching_steps", S::touching_steps(zero)), ", ",
             truth("pipelined", S::pipelined), ",\n \"classes\": [");
  for (int c = 0; c < S::class_count(zero); ++c) {
    const step_class run = S::class_at(zero, c);
    out += joined(c == 0 ? "{" : ", {", number("first", run.first), ", ", number("count", run.count), "}");
  }
  out += "],\n \"operations\": [";
  bool some = false;
  detail::for_each_operation<S>(ranks, root, [&](int step, int rank, const operation& op) {
    out += joined(some ? ",\n  {" : "\n  {", number("step", step), ", ", number("rank", rank), ", ",
                  array("from", op.from), ", ", where("theirs", op.theirs), ", \"blocks\": [", op.blocks.first, ", ",
                  op.blocks.count, "], ", array("to", op.to), ", ", where("at", op.at), ", ",
                  truth("completes", op.completes), "}");
    some = true;
  });
  return joined(out, "]}\n");
}

}  // namespace toroid::schedule
