// SPDX-License-Identifier: Apache-2.0
// What all-reduce costs on 64, 256 and 1024 ranks, against closed formulas; docs/algorithms.md derives them, and shows
// these costs as a table and a picture, which tools/costs.py keeps true.
#include "support/catch.hpp"

#include <toroid/schedule/compose.hpp>
#include <toroid/schedule/cost.hpp>
#include <toroid/schedule/halving_doubling.hpp>
#include <toroid/schedule/torus.hpp>
#include <toroid/schedule/tree.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace {

using namespace toroid::schedule;
using toroid::topology::grid;

/// Latency and bandwidth of a fast network.
constexpr double a = 5e-6, b = 1 / 25e9;
constexpr machine cluster{a, b, 0};
constexpr double within = 0.01;

constexpr grid grids[] = {{8, 8}, {16, 16}, {32, 32}, {16, 64}, {64, 16}, {4, 16}, {8, 32}};
constexpr std::size_t sizes[] = {4, 10'000, 1'000'000, 102'228'128, std::size_t{1} << 30};

/// 2 (p - 1) rounds, or 2 ceil(log2 p), and 2 (p - 1)/p S bytes over one link.
double one_link(double rounds, double p, double S) { return rounds * a + 2 * (p - 1) / p * S * b; }

/// Of m pieces, each in as many blocks as there are trees: 2 h rounds up and down for the first piece, two blocks a
/// round but one beside a root with a single child, then a round a piece in which the busiest rank sends `most` blocks.
double trees(double p, double S, double m, double number, double most) {
  const double h = std::floor(std::log2(p)), e = p == std::exp2(h) ? 1 : 0, B = S / m / number;
  return 2 * h * a + (4 * h - 2 * e) * B * b + (m - 1) * (a + most * B * b);
}

/// On links to four neighbours. Of X columns and Y rows let X <= Y; then a round carries, until the shorter axis is
/// through, a block of A/X or of B/Y, whichever is longer, then along the longer axis B/Y and A/N, in the end the
/// longer of A/N and B/N; and the same on the way down. A and B are what goes row-first, and column-first, one way
/// round.
double torus(grid shape, double S, double m) {
  const double X = std::min(shape.rows, shape.columns), Y = std::max(shape.rows, shape.columns), N = X * Y;
  const double weights = 2 * (N - 2 * X + 1) + 2 * (N - 2 * Y + 1);
  const double A = S / m * (N - 2 * X + 1) / weights, B = S / m * (N - 2 * Y + 1) / weights;
  const double up = (X - 1) * std::max(A / X, B / Y) + (Y - X) * (B / Y + A / N) + (X - 1) * std::max(A, B) / N;
  return 2 * (X + Y - 2) * a + 2 * up * b + (m - 1) * (a + S / m * (1 - 1 / N) / 2 * b);
}

/// With ranks numbered row by row, skips along a torus of links: a skip of k < X columns puts k blocks on each of k
/// links of a row, one of j rows j X blocks on each of j links of a column.
double halving_on_torus(grid shape, double S) {
  const double X = shape.columns, Y = shape.rows, N = X * Y;
  return 2 * std::log2(N) * a + 2 * ((X * X - 1) / 3 + X * (Y * Y - 1) / 3) * S / N * b;
}

}  // namespace

TEST_CASE("All-reduce on 64, 256 and 1024 ranks costs what closed formulas say", "[schedule]") {
  for (const grid shape : grids) {
    for (const std::size_t bytes : sizes) {
      const int ranks = shape.ranks();
      const double p = ranks, S = static_cast<double>(bytes);
      CAPTURE(shape.rows, shape.columns, bytes);
      const auto on_switch = [&](auto schedule, int pieces = 1) {
        return cost(schedule, ranks, bytes, cluster, crossbar{}, pieces, shape.rows).seconds;
      };
      const auto on_torus = [&](auto schedule, int pieces = 1) {
        return cost(schedule, ranks, bytes, cluster, torus_of_links{shape}, pieces, shape.rows).seconds;
      };
      CHECK(on_switch(ring_all_reduce{}) == Approx(one_link(2 * (p - 1), p, S)).epsilon(within));
      CHECK(on_torus(ring_all_reduce{}) == Approx(one_link(2 * (p - 1), p, S)).epsilon(within));
      CHECK(on_switch(halving_doubling_all_reduce{}) == Approx(one_link(2 * std::log2(p), p, S)).epsilon(within));
      CHECK(on_switch(torus_2d_all_reduce{}) ==
            Approx(one_link(2 * (shape.rows + shape.columns - 2), p, S)).epsilon(within));
      // Longest blocks count, and one of a byte is not half of one.
      if (bytes < 10'000) continue;
      CHECK(on_torus(halving_doubling_all_reduce{}) == Approx(halving_on_torus(shape, S)).epsilon(within));
      for (const int pieces : {1, 8, 128}) {
        const double m = pieces;
        CAPTURE(pieces);
        CHECK(on_switch(tree_all_reduce{}, pieces) == Approx(trees(p, S, m, 2, 4)).epsilon(within));
        CHECK(on_switch(in_order_tree_all_reduce{}, pieces) == Approx(trees(p, S, m, 1, 3)).epsilon(within));
        CHECK(on_torus(torus_2d_all_reduce{}, pieces) == Approx(torus(shape, S, m)).epsilon(within));
      }
      if (shape.rows == shape.columns)
        CHECK(on_torus(torus_2d_all_reduce{}) ==
              Approx(2 * (shape.rows + shape.columns - 2) * a + S * b * (1 - 1 / p) / 2).epsilon(within));
    }
  }
}

TEST_CASE("A torus that is not square comes to the bandwidth of a square one with many pieces", "[schedule]") {
  for (const grid shape : {grid{16, 64}, grid{64, 16}, grid{4, 16}}) {
    const double N = shape.ranks(), S = static_cast<double>(std::size_t{1} << 36);
    CAPTURE(shape.rows, shape.columns);
    const double found = cost(torus_2d_all_reduce{}, shape.ranks(), std::size_t{1} << 36, {0, b, 0},
                              torus_of_links{shape}, 16384, shape.rows)
                             .seconds;
    CHECK(found == Approx(S * b * (1 - 1 / N) / 2).epsilon(within));
  }
}
