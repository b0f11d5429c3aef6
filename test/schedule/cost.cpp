// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"
#include "support/catch.hpp"

#include <toroid/schedule/cost.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <ctime>

namespace {

using namespace toroid::schedule;

/// Latency of a fast network, 25 GB/s a link, a core that adds 10 GB/s; the gradient of ResNet-50 in float.
constexpr machine cluster{5e-6, 1 / 25e9, 1 / 10e9};
constexpr std::size_t resnet50 = 102'228'128;

constexpr int rank_counts[] = {2, 3, 4, 8, 64, 256, 1024, 65536};

double rest(int ranks) { return static_cast<double>(ranks - 1) / ranks; }

/// rounds * alpha + bytes * beta + reduced * gamma.
double formula(machine m, double rounds, double bytes, double reduced) {
  return rounds * m.alpha + bytes * m.beta + reduced * m.gamma;
}

/// One wire for all that a rank sends.
struct one_wire {
  static constexpr int lanes = 1;
  template <class Use>
  constexpr void route(int from, int, int, Use use) const {
    use(0, from);
  }
};
static_assert(wiring<one_wire>);
static_assert(!wiring<int>);

/// What a tree of p ranks costs in m pieces of blocks of `block` bytes: h rounds up and h down for the first piece, in
/// which a parent hears from, and speaks to, two children, but the root of 2^h ranks has only one; then a round a
/// piece, in which the busiest rank sends `most` blocks, and a node with two children applies the operator twice.
double tree_formula(machine m, int height, bool root_has_one_child, int pieces, double most, double block) {
  const double h = height, one = root_has_one_child;
  const double first = 2 * h * m.alpha + (4 * h - 2 * one) * block * m.beta + (2 * h - one) * block * m.gamma;
  const double reduced = height == 1 && root_has_one_child ? 1 : 2;
  return first + (pieces - 1) * (m.alpha + most * block * m.beta + reduced * block * m.gamma);
}

}  // namespace

TEST_CASE("Costs are those of the published formulas", "[schedule]") {
  for (const int p : rank_counts) {
    const double n = p - 1, S = resnet50;
    CAPTURE(p);
    CHECK(cost(ring_all_reduce{}, p, resnet50, cluster).seconds ==
          Approx(formula(cluster, 2 * n, 2 * rest(p) * S, rest(p) * S)).epsilon(0.01));
    CHECK(cost(ring_reduce_scatter{}, p, resnet50, cluster).seconds ==
          Approx(formula(cluster, n, rest(p) * S, rest(p) * S)).epsilon(0.01));
    CHECK(cost(ring_all_gather{}, p, resnet50, cluster).seconds ==
          Approx(formula(cluster, n, rest(p) * S, 0)).epsilon(0.01));
    CHECK(cost(one_shot_all_reduce{}, p, resnet50, cluster).seconds ==
          Approx(formula(cluster, 1, n * S, n * S)).epsilon(0.01));
    CHECK(cost(direct_all_reduce{}, p, resnet50, cluster).seconds ==
          Approx(formula(cluster, 2, 2 * rest(p) * S, rest(p) * S)).epsilon(0.01));
    const double rounds = std::ceil(std::log2(p));
    CHECK(cost(halving_doubling_all_reduce{}, p, resnet50, cluster).seconds ==
          Approx(formula(cluster, 2 * rounds, 2 * rest(p) * S, rest(p) * S)).epsilon(0.01));
    CHECK(cost(halving_reduce_scatter{}, p, resnet50, cluster).seconds ==
          Approx(formula(cluster, rounds, rest(p) * S, rest(p) * S)).epsilon(0.01));
    CHECK(cost(doubling_all_gather{}, p, resnet50, cluster).seconds ==
          Approx(formula(cluster, rounds, rest(p) * S, 0)).epsilon(0.01));
  }
}

TEST_CASE("Trees cost what their height and segments say", "[schedule]") {
  for (const int p : {2, 3, 4, 5, 7, 8, 12, 64, 100, 256, 1024}) {
    const int height = static_cast<int>(std::floor(std::log2(p)));
    const bool one_child = p == 1 << height;
    const double inner = std::min(p - 1, 3);
    for (const int pieces : {1, 2, 16, 1000}) {
      const std::size_t bytes = 4000 * 128;  // blocks of all pieces are equal
      CAPTURE(p, pieces);
      CHECK(cost(in_order_tree_all_reduce{}, p, bytes, cluster, crossbar{}, pieces).seconds ==
            Approx(tree_formula(cluster, height, one_child, pieces, inner, static_cast<double>(bytes) / pieces))
                .epsilon(1e-9));
      CHECK(cost(tree_all_reduce{}, p, bytes, cluster, crossbar{}, pieces).seconds ==
            Approx(tree_formula(cluster, height, one_child, pieces, inner + 1, static_cast<double>(bytes) / pieces / 2))
                .epsilon(1e-9));
    }
  }
  // Many pieces: each byte leaves a rank twice, or three times.
  const double S = resnet50;
  const machine only_bytes{0, cluster.beta, 0};
  CHECK(cost(tree_all_reduce{}, 1024, resnet50, only_bytes, crossbar{}, 1000).seconds ==
        Approx(2 * S * cluster.beta).epsilon(0.02));
  CHECK(cost(in_order_tree_all_reduce{}, 1024, resnet50, only_bytes, crossbar{}, 1000).seconds ==
        Approx(3 * S * cluster.beta).epsilon(0.04));
}

TEST_CASE("A square torus uses all its links in every step", "[schedule]") {
  const machine without_arithmetic{cluster.alpha, cluster.beta, 0};
  for (const int side : {3, 8, 16, 32}) {
    const int p = side * side;
    const double S = resnet50;
    CAPTURE(side);
    const schedule_cost found =
        cost(torus_2d_all_reduce{}, p, resnet50, without_arithmetic, torus_of_links{{side, side}}, 1, side);
    CHECK(found.seconds == Approx(formula(without_arithmetic, 4 * (side - 1), rest(p) * S / 2, 0)).epsilon(0.01));
    CHECK(found.rounds == 4 * (side - 1));
  }
}

TEST_CASE("On any grid all links of a torus carry the same in the end", "[schedule]") {
  // So many pieces that only what the busiest link carries in all steps counts.
  const machine only_bytes{0, 1, 0};
  for (int rows = 3; rows <= 9; ++rows) {
    for (int columns = 3; columns <= 9; ++columns) {
      const int p = rows * columns;
      // Weights and blocks divide this without a remainder.
      const double weights = 2.0 * (2 * p + 2 - 2 * rows - 2 * columns);
      const std::size_t piece = static_cast<std::size_t>(weights) * static_cast<std::size_t>(p);
      const auto seconds = [&](int pieces) {
        return cost(torus_2d_all_reduce{}, p, piece * static_cast<std::size_t>(pieces), only_bytes,
                    torus_of_links{{rows, columns}}, pieces, rows)
            .seconds;
      };
      CAPTURE(rows, columns);
      CHECK(seconds(1001) - seconds(1) == Approx(1000 * static_cast<double>(piece) * rest(p) / 2).epsilon(1e-9));
      CHECK(torus_2d_all_reduce::steps({0, p, 0, rows}) == 2 * (rows + columns - 2) + 1);
    }
  }
}

TEST_CASE("A torus of one row or column is a ring in both directions", "[schedule]") {
  const machine without_arithmetic{cluster.alpha, cluster.beta, 0};
  for (const int p : {3, 5, 64}) {
    const double expected = formula(without_arithmetic, 2 * (p - 1), rest(p) * static_cast<double>(resnet50), 0);
    CAPTURE(p);
    CHECK(cost(torus_2d_all_reduce{}, p, resnet50, without_arithmetic, torus_of_links{{1, p}}, 1, 1).seconds ==
          Approx(expected).epsilon(0.01));
    CHECK(cost(torus_2d_all_reduce{}, p, resnet50, without_arithmetic, torus_of_links{{p, 1}}, 1, p).seconds ==
          Approx(expected).epsilon(0.01));
  }
}

TEST_CASE("Rounds and bytes are counted exactly where blocks are equal", "[schedule]") {
  for (const int p : rank_counts) {
    const std::size_t ranks = static_cast<std::size_t>(p), bytes = 24 * ranks;
    CAPTURE(p);
    const schedule_cost ring = cost(ring_all_reduce{}, p, bytes, cluster);
    CHECK(ring.rounds == 2 * (p - 1));
    CHECK(ring.sent == 2 * (bytes - 24));
    CHECK(ring.reduced == bytes - 24);
    const schedule_cost two_shot = cost(direct_all_reduce{}, p, bytes, cluster);
    CHECK(two_shot.rounds == 2);
    CHECK(two_shot.sent == 2 * (bytes - 24));
    CHECK(two_shot.reduced == bytes - 24);
    const schedule_cost one_shot = cost(one_shot_all_reduce{}, p, bytes, cluster);
    CHECK(one_shot.rounds == 1);
    CHECK(one_shot.sent == (ranks - 1) * bytes);
    CHECK(one_shot.reduced == (ranks - 1) * bytes);
  }
}

TEST_CASE("Bytes are those of the busiest rank, and no more where blocks differ", "[schedule]") {
  for (int p = 1; p <= 64; ++p) {
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{1000}, static_cast<std::size_t>(24 * p)}) {
      models::for_each([&](auto schedule, models::collective_kind) {
        const schedule_cost said = cost(schedule, p, bytes, cluster);
        // Longest blocks everywhere: what a vector would cost whose blocks are all as long.
        const std::size_t blocks = static_cast<std::size_t>(decltype(schedule)::blocks({0, p}));
        if (weighted<decltype(schedule)> && bytes % blocks != 0) return;  // only those of a part are
        const std::size_t padded = toroid::longest_block(bytes, static_cast<int>(blocks)) * blocks;
        std::size_t sent = 0, reduced = 0;
        for (int rank = 0; rank < p; ++rank) {
          const traffic counted = traffic_of(schedule, {rank, p}, padded);
          sent = std::max(sent, counted.sent);
          reduced = std::max(reduced, counted.reduced);
        }
        CAPTURE(p, bytes);
        REQUIRE(said.sent == sent);
        REQUIRE(said.reduced == reduced);
      });
    }
  }
}

TEST_CASE("One rank alone costs nothing", "[schedule]") {
  models::for_each([](auto schedule, models::collective_kind) {
    const schedule_cost alone = cost(schedule, 1, resnet50, cluster);
    CHECK(alone.seconds == 0);
    CHECK(alone.rounds == 0);
    CHECK(alone.sent == 0);
  });
}

TEST_CASE("Broadcasts cost what the root, or the chain, takes", "[schedule]") {
  for (const int p : {2, 3, 4, 8, 64, 256}) {
    const double n = p - 1, S = resnet50;
    CAPTURE(p);
    CHECK(cost(direct_broadcast{}, p, resnet50, cluster).seconds ==
          Approx(formula(cluster, 1, n * S, 0)).epsilon(0.01));
    for (const int pieces : {1, 4, 1000}) {
      CAPTURE(pieces);
      const schedule_cost chain = cost(ring_broadcast{}, p, resnet50, cluster, crossbar{}, pieces);
      CHECK(chain.seconds == Approx((n + pieces - 1) * formula(cluster, 1, S / pieces, 0)).epsilon(0.01));
      CHECK(static_cast<double>(chain.sent) == Approx(S).epsilon(0.01));
    }
  }
}

TEST_CASE("Pieces overlap only in schedules that allow it", "[schedule]") {
  const int p = 8, pieces = 16;
  const double S = resnet50;
  const double ring = cost(ring_all_reduce{}, p, resnet50, cluster, crossbar{}, pieces).seconds;
  CHECK(ring == Approx(formula(cluster, 2 * (p - 1) * pieces, 2 * rest(p) * S, rest(p) * S)).epsilon(0.01));
  // Both rounds of a piece run beside each other: the bytes stay, latency and arithmetic of a piece come but once.
  const double direct = cost(direct_all_reduce{}, p, resnet50, cluster, crossbar{}, pieces).seconds;
  CHECK(direct == Approx(formula(cluster, 2 + pieces - 1, 2 * rest(p) * S, rest(p) * S)).epsilon(0.01));
}

TEST_CASE("Messages that share links wait for each other", "[schedule]") {
  const machine only_bytes{0, 1, 0};
  for (const int p : {2, 3, 4, 5, 8, 9, 64}) {
    const std::size_t bytes = 24 * static_cast<std::size_t>(p);
    CAPTURE(p);
    // Neighbours only: a ring is as good as a switch.
    CHECK(cost(ring_all_reduce{}, p, bytes, only_bytes, ring_of_links{}).seconds ==
          cost(ring_all_reduce{}, p, bytes, only_bytes).seconds);
    // Everyone to everyone: 1 + 2 + ... hops to the right, ties included, of a block each.
    const int furthest = p / 2;
    CHECK(cost(direct_reduce_scatter{}, p, bytes, only_bytes, ring_of_links{}).seconds ==
          Approx(24.0 * furthest * (furthest + 1) / 2));
    // From the root: the first link to the right carries what half of the ranks get.
    CHECK(cost(direct_broadcast{}, p, bytes, only_bytes, ring_of_links{}).seconds ==
          Approx(static_cast<double>(bytes) * furthest));
    CHECK(cost(direct_broadcast{}, p, bytes, only_bytes).seconds == Approx(static_cast<double>(bytes) * (p - 1)));
  }
}

TEST_CASE("A wiring of one's own needs no change here", "[schedule]") {
  const machine only_bytes{0, 1, 0};
  CHECK(cost(direct_reduce_scatter{}, 8, 24 * 8, only_bytes, one_wire{}).seconds == Approx(24 * 7));
}

TEST_CASE("Messages across a torus pass links along the row, then along the column", "[schedule]") {
  const machine only_bytes{0, 1, 0};
  const int rows = 4, columns = 4, p = rows * columns;
  const std::size_t bytes = 24 * static_cast<std::size_t>(p);
  // Along a row each of 4 columns' worth of blocks goes 1 or 2 to the right: (1 + 2) hops times 4 rows of destinations.
  CHECK(cost(direct_reduce_scatter{}, p, bytes, only_bytes, torus_of_links{{rows, columns}}).seconds ==
        Approx(24 * 3 * rows));
}

TEST_CASE("A ring of 65,536 ranks is costed from its classes", "[schedule]") {
  const int ranks = 65536;
  const auto processor_time = [](auto&& body) {
    const std::clock_t begin = std::clock();
    body();
    return std::clock() - begin;
  };
  double seconds = 0;
  const std::clock_t costing = processor_time([&] {
    for (std::size_t i = 0; i < 100; ++i) seconds += cost(ring_all_reduce{}, ranks, resnet50 + i, cluster).seconds;
  });
  std::size_t sent = 0;
  const std::clock_t walking = processor_time([&] {
    for (int rank = 0; rank < 10; ++rank) sent += traffic_of(ring_all_reduce{}, {rank, ranks}, resnet50).sent;
  });
  CHECK(seconds > 0);
  CHECK(sent > 0);
  // A cost that walked all steps of a rank would take ten times as long as these walks, not a small part.
  CHECK(costing < walking);
}

TEST_CASE("Schedules of 65,536 ranks are costed", "[schedule]") {
  const int ranks = 65536;
  const double S = resnet50;
  CHECK(cost(tree_all_reduce{}, ranks, resnet50, cluster, crossbar{}, 1).rounds == 32);
  CHECK(
      cost(torus_2d_all_reduce{}, ranks, resnet50, {cluster.alpha, cluster.beta, 0}, torus_of_links{{256, 256}}, 1, 256)
          .seconds == Approx(formula(cluster, 4 * 255, S / 2, 0)).epsilon(0.01));
}

TEST_CASE("The share of the vector that a schedule says it sends is what its busiest rank sends", "[schedule]") {
  const auto check = [](auto schedule, int ranks, int rows) {
    using model = decltype(schedule);
    const problem zero{0, ranks, 0, rows};
    std::size_t count = static_cast<std::size_t>(model::blocks(zero));
    if constexpr (weighted<model>) {
      std::size_t weights = 0;
      for (int part = 0; part < model::parts(zero); ++part)
        weights += static_cast<std::size_t>(model::weight(zero, part));
      count *= weights;
    }
    std::size_t sent = 0;
    for (int rank = 0; rank < ranks; ++rank)
      sent = std::max(sent, traffic_of(schedule, {rank, ranks, 0, rows}, count).sent);
    CAPTURE(ranks, rows, count);
    REQUIRE(sent == model::sent(zero).times(count));
  };
  models::for_each([&](auto schedule, models::collective_kind) {
    for (int ranks = 1; ranks <= 64; ++ranks) check(schedule, ranks, 1);
  });
  models::for_each_grid(1, 72, [&](int rows, int columns) { check(torus_2d_all_reduce{}, rows * columns, rows); });
}
