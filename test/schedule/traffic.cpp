// SPDX-License-Identifier: Apache-2.0
// What ranks send and receive is what the papers and the headers say, whether blocks divide the count or not.
#include "models.hpp"
#include "support/catch.hpp"

#include <toroid/schedule/verify.hpp>
#include <toroid/topology/block.hpp>
#include <toroid/topology/grid.hpp>
#include <toroid/topology/ring.hpp>
#include <toroid/topology/tree.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace {

using namespace toroid::schedule;
using toroid::block_of;
using toroid::topology::left_of;
using toroid::topology::right_of;
namespace topology = toroid::topology;

/// Counts around multiples of the number of ranks.
std::vector<std::size_t> counts_for(int ranks) {
  const std::size_t p = static_cast<std::size_t>(ranks);
  return {0, 1, p - 1, p, p + 1, 12 * p, 12 * p + p / 2, 1'000'003};
}

struct expected {
  std::size_t sent;
  std::size_t received;
};

expected operator+(expected a, expected b) { return {a.sent + b.sent, a.received + b.received}; }

/// Closed formulas: n elements, the block of this rank and of its neighbours on the ring.
struct formulas {
  problem p;
  std::size_t n;
  std::size_t others = static_cast<std::size_t>(p.ranks - 1);
  std::size_t own = block_of(n, p.ranks, p.rank).count;
  std::size_t left = block_of(n, p.ranks, left_of(p.rank, p.ranks)).count;
  std::size_t right = block_of(n, p.ranks, right_of(p.rank, p.ranks)).count;

  expected of(one_shot_all_reduce) const { return {others * n, others * n}; }
  expected of(direct_reduce_scatter) const { return {n - own, others * own}; }
  expected of(direct_all_gather) const { return {others * own, n - own}; }
  expected of(direct_all_reduce) const { return of(direct_reduce_scatter{}) + of(direct_all_gather{}); }
  expected of(direct_broadcast) const { return p.rank == p.root ? expected{others * n, 0} : expected{0, n}; }
  // All blocks but one: the partial sum of the own block is never passed on, the right neighbour's block is at home
  // there.
  expected of(ring_reduce_scatter) const { return {n - own, n - left}; }
  expected of(ring_all_gather) const { return {n - right, n - own}; }
  expected of(ring_all_reduce) const { return of(ring_reduce_scatter{}) + of(ring_all_gather{}); }
  // Every block but the own one leaves once, with all that has been added to it; it comes in as often as a round is to
  // be added. The gathering half mirrors it.
  expected of(halving_reduce_scatter) const { return {n - own, of_rounds()}; }
  expected of(doubling_all_gather) const { return {of_rounds(), n - own}; }
  expected of(halving_doubling_all_reduce) const { return of(halving_reduce_scatter{}) + of(doubling_all_gather{}); }
  // Up to the parent, down to each child.
  expected of(in_order_tree_all_reduce) const { return up_and_down(topology::in_order_tree{p.ranks}, p.rank, n); }
  expected of(tree_all_reduce) const {
    const topology::in_order_tree tree{p.ranks};
    const int node = (p.rank - p.root + p.ranks) % p.ranks;
    return up_and_down(tree, node, block_of(n, 2, 0).count) +
           up_and_down(tree, second_node(node, p.ranks), block_of(n, 2, 1).count);
  }
  expected of(tree_reduce) const { return {of(tree_broadcast{}).received, of(tree_broadcast{}).sent}; }
  expected of(tree_broadcast) const {
    if (p.ranks == 1) return {0, 0};
    if (p.rank == p.root) return {n, 0};
    const topology::in_order_tree tree{p.ranks - 1};
    const int node = (p.rank - p.root - 1 + p.ranks) % p.ranks;
    return {children(tree, node) * block_of(n, 2, 0).count +
                children(tree, second_node(node, p.ranks - 1)) * block_of(n, 2, 1).count,
            n};
  }
  expected of(in_order_tree_reduce) const {
    const topology::in_order_tree tree{p.ranks};
    const std::size_t handed_on = tree.root() == p.root ? 0 : n;
    return {p.rank == tree.root() ? handed_on : n, children(tree, p.rank) * n + (p.rank == p.root ? handed_on : 0)};
  }
  expected of(torus_2d_all_reduce) const {
    const topology::grid grid{p.rows, p.ranks / p.rows};
    const int x = grid.column_of(p.rank), y = grid.row_of(p.rank);
    const int columns = grid.columns, rows = grid.rows;
    // Of two times (X - 1)(Y - 1), and of two each the half of it; one row or column is divided evenly.
    const bool flat = rows == 1 || columns == 1;
    const std::size_t row_first = flat ? 1 : static_cast<std::size_t>(p.ranks + 1 - 2 * columns);
    const std::size_t column_first = flat ? 1 : static_cast<std::size_t>(p.ranks + 1 - 2 * rows);
    const std::size_t all = 2 * (row_first + column_first);
    const std::size_t ends[] = {0, n * row_first / all, n * 2 * row_first / all,
                                n * (2 * row_first + column_first) / all, n};
    return on_lines(ends[1] - ends[0], x, columns, y, rows) +
           on_lines(ends[2] - ends[1], columns - 1 - x, columns, rows - 1 - y, rows) +
           on_lines(ends[3] - ends[2], y, rows, x, columns) +
           on_lines(ends[4] - ends[3], rows - 1 - y, rows, columns - 1 - x, columns);
  }
  expected of(ring_broadcast) const { return {right_of(p.rank, p.ranks) == p.root ? 0 : n, p.rank == p.root ? 0 : n}; }

  /// Blocks from the own one on that a rank has after each round of gathering, added up.
  std::size_t of_rounds() const {
    std::size_t sum = 0;
    for (int skip = 1; skip < p.ranks; skip *= 2)
      for (int i = 0; i < std::min(skip, p.ranks - skip); ++i)
        sum += block_of(n, p.ranks, (p.rank + i) % p.ranks).count;
    return sum;
  }
  static std::size_t children(topology::in_order_tree tree, int node) {
    return static_cast<std::size_t>(tree.left(node) >= 0) + static_cast<std::size_t>(tree.right(node) >= 0);
  }
  static int second_node(int node, int nodes) { return nodes % 2 == 0 ? nodes - 1 - node : (node + nodes - 1) % nodes; }
  static expected up_and_down(topology::in_order_tree tree, int node, std::size_t length) {
    const std::size_t below = children(tree, node) * length, above = tree.parent(node) < 0 ? 0 : length;
    return {above + below, above + below};
  }
  /// A ring of rings: part of a vector of `length`, first along a line of a ranks, of which this is `i`, then of b.
  static expected on_lines(std::size_t length, int i, int a, int j, int b) {
    const auto outer = [&](int index) {
      const auto begin = [&](int k) { return k == a ? length : block_of(length, a * b, k * b).begin; };
      return begin(index + 1) - begin(index);
    };
    const auto inner = [&](int index) { return block_of(length, a * b, i * b + index).count; };
    const std::size_t own = inner(j);
    const expected first{length - outer(i), length - outer(left_of(i, a))};
    const expected second{outer(i) - own, outer(i) - inner(left_of(j, b))};
    const expected back{outer(i) - inner(right_of(j, b)), outer(i) - own};
    const expected home{length - outer(right_of(i, a)), length - outer(i)};
    return first + second + back + home;
  }
};

template <class S>
std::string compared(S schedule, int ranks, std::size_t count, int root, int rows = 1) {
  return verify_traffic(
             schedule, ranks, count,
             [&](problem p) {
               return formulas{p, count}.of(S{}).sent;
             },
             [&](problem p) {
               return formulas{p, count}.of(S{}).received;
             },
             root, rows)
      .to_string();
}

/// Rank 1 sends each block to the rank after its owner too, unless that is itself.
struct wasteful : direct_reduce_scatter {
  static constexpr operation at(problem p, int step, int index) noexcept {
    operation op = direct_reduce_scatter::at(p, step, index);
    if (step == 0 && p.rank == 1) op.to.count = 2;
    return op;
  }
};

// A rank of a ring of four that reduces a hundred elements: 2 * 100 less two blocks of 25.
static_assert(traffic_of(ring_all_reduce{}, {1, 4}, 100).sent == 150);
static_assert(traffic_of(ring_all_reduce{}, {1, 4}, 100).reduced == 75);
static_assert(traffic_of(ring_all_reduce{}, {1, 4}, 100).messages == 6);

}  // namespace

TEST_CASE("Ranks send and receive what the formulas say", "[schedule]") {
  models::for_each([](auto schedule, collective_kind) {
    for (int ranks = 1; ranks <= 64; ++ranks) {
      for (const std::size_t count : counts_for(ranks)) {
        for (const int root : {0, ranks / 2, ranks - 1}) {
          CAPTURE(ranks, count, root);
          REQUIRE(compared(schedule, ranks, count, root) == "proved");
        }
      }
    }
  });
}

TEST_CASE("Ranks of a grid send and receive what the formulas say", "[schedule]") {
  models::for_each_grid(1, 72, [](int rows, int columns) {
    for (const std::size_t count : counts_for(rows * columns)) {
      CAPTURE(rows, columns, count);
      REQUIRE(compared(torus_2d_all_reduce{}, rows * columns, count, 0, rows) == "proved");
    }
  });
}

TEST_CASE("Operators are applied as often as there are contributions to add", "[schedule]") {
  for (int ranks = 1; ranks <= 64; ++ranks) {
    for (const std::size_t count : counts_for(ranks)) {
      const std::size_t once = static_cast<std::size_t>(ranks - 1) * count;
      std::size_t ring = 0, direct = 0, one_shot = 0, halving = 0, tree = 0, in_order = 0, torus = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        ring += traffic_of(ring_all_reduce{}, {rank, ranks}, count).reduced;
        direct += traffic_of(direct_all_reduce{}, {rank, ranks}, count).reduced;
        one_shot += traffic_of(one_shot_all_reduce{}, {rank, ranks}, count).reduced;
        halving += traffic_of(halving_doubling_all_reduce{}, {rank, ranks}, count).reduced;
        tree += traffic_of(tree_all_reduce{}, {rank, ranks}, count).reduced;
        in_order += traffic_of(in_order_tree_all_reduce{}, {rank, ranks}, count).reduced;
        torus += traffic_of(torus_2d_all_reduce{}, {rank, ranks, 0, ranks % 3 == 0 ? 3 : 1}, count).reduced;
      }
      CAPTURE(ranks, count);
      REQUIRE(ring == once);
      REQUIRE(direct == once);
      REQUIRE(halving == once);
      REQUIRE(tree == once);
      REQUIRE(in_order == once);
      REQUIRE(torus == once);
      REQUIRE(one_shot == once * static_cast<std::size_t>(ranks));
    }
  }
}

TEST_CASE("More traffic than promised is refused", "[schedule]") {
  const auto sent = [](problem p) { return formulas{p, 10}.of(direct_reduce_scatter{}).sent; };
  const auto received = [](problem p) { return formulas{p, 10}.of(direct_reduce_scatter{}).received; };
  CHECK(verify_traffic(wasteful{}, 4, 10, sent, received).to_string() == "rank 1: sends 11 elements instead of 7");
  const auto promised = [](problem p) { return traffic_of(wasteful{}, p, 10).sent; };
  CHECK(verify_traffic(wasteful{}, 4, 10, promised, received).to_string() == "more is sent than received, or less");
  CHECK(verify_traffic(direct_reduce_scatter{}, 4, 10, sent, sent).to_string() ==
        "rank 0: receives 9 elements instead of 7");
}
