// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>
#include <toroid/topology/powers.hpp>

namespace toroid::topology {

/// A binary tree over nodes 0 to nodes - 1 whose left subtrees hold the nodes just before, whose right subtrees those
/// just after a node: read from left to right it is 0, 1, 2, ... Left subtrees are perfect.
///
///     3           of 6 nodes; node v stands as high as 2 divides v + 1
///     |-----.
///     1     5     (its right subtree would be node 6)
///     |--.  |
///     0  2  4
///
/// Even nodes are leaves, odd ones have a left child. Height and every answer take at most log2(nodes) steps.
struct in_order_tree {
  int nodes = 1;  ///< at least 1

  static constexpr int none = -1;

  /// Edges from the root to the deepest node: floor(log2(nodes)).
  TOROID_HOST_DEVICE constexpr int height() const noexcept { return floor_log2(nodes); }
  TOROID_HOST_DEVICE constexpr int root() const noexcept { return (1 << height()) - 1; }

  TOROID_HOST_DEVICE constexpr int left(int node) const noexcept {
    const int span = lowest_bit(node + 1);
    return span > 1 ? node - span / 2 : none;
  }
  /// The highest node after this one that belongs to its subtree.
  TOROID_HOST_DEVICE constexpr int right(int node) const noexcept {
    for (int away = lowest_bit(node + 1) / 2; away > 0; away /= 2)
      if (node + away < nodes) return node + away;
    return none;
  }
  /// The nearest ancestor in the perfect tree that exists in this one.
  TOROID_HOST_DEVICE constexpr int parent(int node) const noexcept {
    if (node == root()) return none;
    int number = node + 1;
    do {
      const int bit = lowest_bit(number);
      number = (number ^ bit) | 2 * bit;
    } while (number > nodes);
    return number - 1;
  }
  /// Edges to the root.
  TOROID_HOST_DEVICE constexpr int depth(int node) const noexcept {
    int edges = 0;
    for (int above = parent(node); above != none; above = parent(above)) ++edges;
    return edges;
  }
  TOROID_HOST_DEVICE constexpr bool is_leaf(int node) const noexcept { return node % 2 == 0; }

 private:
  TOROID_HOST_DEVICE static constexpr int lowest_bit(int number) noexcept { return number & -number; }
};

static_assert(in_order_tree{6}.root() == 3 && in_order_tree{6}.right(3) == 5 && in_order_tree{6}.right(5) == -1);
static_assert(in_order_tree{6}.parent(5) == 3 && in_order_tree{6}.depth(4) == 2 && in_order_tree{1}.is_leaf(0));

}  // namespace toroid::topology
