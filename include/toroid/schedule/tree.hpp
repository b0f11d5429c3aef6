// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>
#include <toroid/schedule/compose.hpp>
#include <toroid/schedule/determinism.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/topology/ring.hpp>
#include <toroid/topology/tree.hpp>

/// Up a binary tree and down again, piece after piece. A node combines what both subtrees have with its own input in
/// one pass, and passes on to both what comes from above.
///
/// A node at depth d of a tree of height h sends up in step h - d and down in step d, so that what its children send
/// arrives together.
namespace toroid::schedule {

/// A rank's place in a tree. Others are meant by their ranks, -1 is nobody.
struct tree_place {
  int depth = 0;
  int parent = -1;
  int left = -1;   ///< child; a node without it is a leaf
  int right = -1;  ///< child
  /// This leaf and the other child of its parent are leaves, or the parent is: what goes up is an input.
  bool sends_input = false;
  bool receives_inputs = false;

  TOROID_HOST_DEVICE constexpr peers children() const noexcept {
    return left < 0 ? nobody() : right < 0 ? only(left) : both(left, right);
  }
  /// The left subtree, the rank itself, the right one.
  TOROID_HOST_DEVICE constexpr peers operands(int rank) const noexcept {
    const peers first = left < 0 ? only(rank) : both(left, rank);
    return right < 0 ? first : first.with(right);
  }
};

/// A tree's nodes as places of ranks, for a numbering rank_of(node).
template <class RankOf>
TOROID_HOST_DEVICE constexpr tree_place place_in(topology::in_order_tree tree, int node, RankOf rank_of) noexcept {
  const auto named = [&](int other) { return other < 0 ? -1 : rank_of(other); };
  const int above = tree.parent(node), left = tree.left(node);
  tree_place found{tree.depth(node), named(above), named(left), named(tree.right(node)), false, false};
  // Left subtrees are perfect: if the left child is a leaf, so is the right one.
  found.receives_inputs = left >= 0 && tree.is_leaf(left);
  found.sends_input = tree.is_leaf(node) && above >= 0 && tree.is_leaf(tree.left(above));
  return found;
}

/// One tree in which ranks keep their order: for operators that do not commute. The root of a problem does not change
/// it.
struct in_order {
  static constexpr int trees = 1;
  static constexpr bool ranks_differ = true;
  static constexpr determinism level = determinism::any_chunking;
  TOROID_HOST_DEVICE static constexpr int height(problem p) noexcept { return tree(p).height(); }
  TOROID_HOST_DEVICE static constexpr int top(problem p) noexcept { return tree(p).root(); }
  TOROID_HOST_DEVICE static constexpr tree_place place_of(problem p, int) noexcept {
    return place_in(tree(p), p.rank, [](int node) { return node; });
  }

 private:
  TOROID_HOST_DEVICE static constexpr topology::in_order_tree tree(problem p) noexcept { return {p.ranks}; }
};

/// Two trees over ranks 0 to p - 1, counted from the root on. Inner nodes of one are leaves of the other, so that every
/// rank has as much to do: the second is a mirror image of the first, or where p is odd moved on by one.
///
/// Source: P. Sanders, J. Speck, J. L. Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
/// Parallel Computing 35 (2009).
struct two_trees {
  static constexpr int trees = 2;
  static constexpr bool ranks_differ = false;
  static constexpr determinism level = determinism::run_to_run;
  TOROID_HOST_DEVICE static constexpr int height(problem p) noexcept { return topology::floor_log2(p.ranks); }
  TOROID_HOST_DEVICE static constexpr tree_place place_of(problem p, int tree) noexcept {
    return place_among(p, tree, p.ranks, p.root);
  }

  /// Over `nodes` ranks, of which the first is `first`.
  TOROID_HOST_DEVICE static constexpr tree_place place_among(problem p, int tree, int nodes, int first) noexcept {
    // Both ways to number nodes undo themselves, or are undone by a step back.
    const auto second = [&](int i, int moved) {
      return tree == 0 ? i : nodes % 2 == 0 ? nodes - 1 - i : topology::wrap(i + moved, nodes);
    };
    const int node = second(topology::wrap(p.rank - first, p.ranks), -1);
    return place_in(topology::in_order_tree{nodes}, node,
                    [&](int other) { return topology::wrap(second(other, 1) + first - p.ranks, p.ranks); });
  }
};

/// The root above two trees of all others.
struct two_trees_below_root {
  static constexpr int trees = 2;
  static constexpr bool ranks_differ = false;
  static constexpr determinism level = determinism::run_to_run;
  TOROID_HOST_DEVICE static constexpr int height(problem p) noexcept {
    return p.ranks == 1 ? 0 : topology::floor_log2(p.ranks - 1) + 1;
  }
  TOROID_HOST_DEVICE static constexpr tree_place place_of(problem p, int tree) noexcept {
    if (p.ranks == 1) return {};
    const int others = p.ranks - 1, first = topology::wrap(p.root + 1 - p.ranks, p.ranks);
    if (p.rank == p.root) {  // as its child sees it
      problem of_child = p;
      const int node = topology::in_order_tree{others}.root();
      const int at = tree == 0 ? node : others % 2 == 0 ? others - 1 - node : topology::wrap(node + 1 - others, others);
      of_child.rank = topology::wrap(first + at - p.ranks, p.ranks);
      return {0, -1, of_child.rank, -1, false, others == 1};
    }
    tree_place found = two_trees::place_among(p, tree, others, first);
    ++found.depth;
    if (found.parent < 0) {
      found.parent = p.root;
      found.sends_input = others == 1;
    }
    return found;
  }
};

/// What trees have in common: of each of its trees a rank does something in one step.
///
/// @tparam Shape  the trees: their number, height and a rank's place in each
template <class Shape>
struct on_trees {
  static constexpr bool pipelined = true;
  static constexpr bool one_value_a_step = Shape::trees == 1;
  static constexpr bool ranks_differ = Shape::ranks_differ;
  TOROID_HOST_DEVICE static constexpr int blocks(problem) noexcept { return Shape::trees; }
  TOROID_HOST_DEVICE static constexpr int slot_places(problem) noexcept { return Shape::trees; }
  TOROID_HOST_DEVICE static constexpr int slot_place(problem, int, int block_index) noexcept { return block_index; }

 protected:
  /// How many of its trees a rank stands in at a depth, and the index-th of them.
  TOROID_HOST_DEVICE static constexpr int count_at(problem p, int depth) noexcept {
    int count = 0;
    for (int tree = 0; tree < Shape::trees; ++tree) count += Shape::place_of(p, tree).depth == depth;
    return count;
  }
  TOROID_HOST_DEVICE static constexpr int tree_at(problem p, int depth, int index) noexcept {
    int tree = 0;
    while (Shape::place_of(p, tree).depth != depth || index-- > 0) ++tree;
    return tree;
  }
};

/// Reduction up the trees to their roots.
///
/// Cost: height + 1 steps a piece; each rank but the root sends S bytes.
template <class Shape>
struct reduce_on_trees : on_trees<Shape> {
  static constexpr bool sends_partial_values = true;
  static constexpr determinism level = Shape::level;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks > 1, 1}; }
  TOROID_HOST_DEVICE static constexpr int steps(problem p) noexcept { return Shape::height(p) + 1; }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem p) noexcept {
    // In the last step the root reads slots, but of leaves it reads inputs.
    return p.ranks < 4 ? steps(p) : steps(p) - 1;
  }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    return on_trees<Shape>::count_at(p, Shape::height(p) - step);
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    const int tree = on_trees<Shape>::tree_at(p, Shape::height(p) - step, index);
    const tree_place here = Shape::place_of(p, tree);
    const place theirs = here.receives_inputs ? place::input : place::slot;
    if (here.parent < 0) return {here.operands(p.rank), theirs, {tree, 1}, only(p.rank), place::delivered, true};
    return {here.operands(p.rank), theirs, {tree, 1}, only(here.parent), here.sends_input ? place::input : place::slot};
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem p) noexcept { return steps(p); }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem, int index) noexcept { return {index, 1}; }
};

/// Broadcast from the roots down the trees.
///
/// Cost: height + 1 steps a piece; a rank sends up to 2/trees S bytes.
template <class Shape>
struct broadcast_on_trees : on_trees<Shape> {
  static constexpr bool sends_partial_values = false;
  static constexpr determinism level = determinism::any_chunking;
  TOROID_HOST_DEVICE static constexpr int steps(problem p) noexcept { return Shape::height(p) + 1; }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem p) noexcept { return p.ranks > 1 ? steps(p) - 1 : 1; }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    return p.ranks == 1 ? 0 : on_trees<Shape>::count_at(p, step);
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    const int tree = on_trees<Shape>::tree_at(p, step, index);
    const tree_place here = Shape::place_of(p, tree);
    if (step == 0) return {only(p.rank), place::input, {tree, 1}, here.children(), place::delivered};
    return {only(here.parent), place::delivered, {tree, 1}, here.children().with(p.rank), place::delivered};
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem p) noexcept { return steps(p); }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem, int index) noexcept { return {index, 1}; }
};

/// Reduction up, then broadcast down the same trees: the roots hand on what they have combined.
///
/// Cost: 2 height + 1 steps a piece. With one tree a rank sends up to 3 S bytes, one up and two down; with two, of half
/// the vector each, up to 2 S: a leaf of one sends S/2, an inner node of the other three times that.
template <class Shape>
struct all_reduce_on_trees : scatter_then_gather<reduce_on_trees<Shape>, broadcast_on_trees<Shape>> {
  using phases = scatter_then_gather<reduce_on_trees<Shape>, broadcast_on_trees<Shape>>;
  static constexpr bool ranks_differ = Shape::ranks_differ;
  static constexpr determinism level = Shape::level;
  // Two values of one time, one on its way up and one on its way down.
  static constexpr bool one_value_a_step = false;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept {
    // Blocks of an inner node with two children below a root, which takes four ranks; and those of leaves of other
    // trees.
    const int inner = p.ranks < 4 ? p.ranks - 1 : 3;
    return {p.ranks == 1 ? 0 : inner + Shape::trees - 1, Shape::trees};
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    operation op = phases::at(p, step, index);
    if (step == Shape::height(p)) op.to = op.to.with(p.rank);  // a broadcast leaves its root's buffer alone
    return op;
  }
};

/// Operands combine in rank order.
using in_order_tree_all_reduce = all_reduce_on_trees<in_order>;
/// Two trees at once, each with half of the vector; the operator must commute.
using tree_all_reduce = all_reduce_on_trees<two_trees>;
/// To any root, from any root.
using tree_reduce = reduce_on_trees<two_trees_below_root>;

struct tree_broadcast : broadcast_on_trees<two_trees_below_root> {
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks > 1, 1}; }
};

/// Reduction in rank order: the tree's own root combines last, and hands the result to the problem's root.
///
/// Cost: floor(log2 p) + 2 steps a piece; a rank sends S bytes.
struct in_order_tree_reduce : reduce_on_trees<in_order> {
  using up = reduce_on_trees<in_order>;
  TOROID_HOST_DEVICE static constexpr int steps(problem p) noexcept { return up::steps(p) + (p.ranks > 1); }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem p) noexcept { return up::steps(p); }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    if (step < up::steps(p)) return up::operations(p, step);
    return p.rank == p.root && p.rank != in_order::top(p);
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    if (step == up::steps(p)) return {only(in_order::top(p)), place::delivered, {}, only(p.rank), place::delivered};
    operation op = up::at(p, step, index);
    if (op.completes) op.to = only(p.root);
    return op;
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem p) noexcept { return steps(p); }
};

}  // namespace toroid::schedule
