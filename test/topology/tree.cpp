// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <toroid/topology/powers.hpp>
#include <toroid/topology/tree.hpp>

#include <vector>

using toroid::topology::in_order_tree;

namespace {

/// Nodes of the subtree below `node`, from left to right.
void visit(in_order_tree tree, int node, std::vector<int>& seen) {
  if (node == in_order_tree::none) return;
  visit(tree, tree.left(node), seen);
  seen.push_back(node);
  visit(tree, tree.right(node), seen);
}

}  // namespace

TEST_CASE("A tree read from left to right is in order", "[topology]") {
  for (int nodes = 1; nodes <= 130; ++nodes) {
    const in_order_tree tree{nodes};
    std::vector<int> seen;
    visit(tree, tree.root(), seen);
    CAPTURE(nodes);
    REQUIRE(static_cast<int>(seen.size()) == nodes);
    for (int i = 0; i < nodes; ++i) REQUIRE(seen[static_cast<std::size_t>(i)] == i);
  }
}

TEST_CASE("Parents and children of a tree know each other, and depths grow by one", "[topology]") {
  for (const int nodes : {1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 100, 65536}) {
    const in_order_tree tree{nodes};
    CAPTURE(nodes);
    REQUIRE(tree.parent(tree.root()) == in_order_tree::none);
    REQUIRE(tree.depth(tree.root()) == 0);
    int deepest = 0, leaves_in_both = 0;
    for (int node = 0; node < nodes; ++node) {
      const int depth = tree.depth(node);
      deepest = depth > deepest ? depth : deepest;
      REQUIRE(tree.is_leaf(node) == (tree.left(node) == in_order_tree::none));
      if (tree.is_leaf(node)) REQUIRE(tree.right(node) == in_order_tree::none);
      for (const int child : {tree.left(node), tree.right(node)}) {
        if (child == in_order_tree::none) continue;
        REQUIRE(tree.parent(child) == node);
        REQUIRE(tree.depth(child) == depth + 1);
      }
      // The mirror image, or the tree moved on by one, has its inner nodes where this one has leaves.
      const int other = nodes % 2 == 0 ? nodes - 1 - node : (node + nodes - 1) % nodes;
      REQUIRE((tree.is_leaf(node) || tree.is_leaf(other)));
      leaves_in_both += tree.is_leaf(node) && tree.is_leaf(other);
    }
    REQUIRE(deepest == tree.height());
    REQUIRE(leaves_in_both == nodes % 2);
  }
}

TEST_CASE("Logarithms are rounded down and up", "[topology]") {
  using toroid::topology::ceil_log2;
  using toroid::topology::floor_log2;
  for (int k = 1; k < 30; ++k) {
    const int power = 1 << k;
    REQUIRE((floor_log2(power - 1) == k - 1 && floor_log2(power) == k && floor_log2(power + 1) == k));
    REQUIRE((ceil_log2(power) == k && ceil_log2(power + 1) == k + 1));
    if (k > 1) REQUIRE(ceil_log2(power - 1) == k);
  }
  REQUIRE(floor_log2(2147483647) == 30);
}
