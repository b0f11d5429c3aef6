// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"
#include "support/catch.hpp"

#include <toroid/schedule/cost.hpp>

#include <algorithm>
#include <cstddef>
#include <ctime>

namespace {

using namespace toroid::schedule;

/// Latency of a fast network, 25 GB/s a link, a core that adds 10 GB/s; the gradient of ResNet-50 in float.
constexpr machine cluster{5e-6, 1 / 25e9, 1 / 10e9};
constexpr std::size_t resnet50 = 102'228'128;

constexpr int rank_counts[] = {2, 3, 4, 8, 64, 256, 1024, 65536};

double share(int ranks) { return static_cast<double>(ranks - 1) / ranks; }

/// rounds * alpha + bytes * beta + reduced * gamma.
double formula(machine m, double rounds, double bytes, double reduced) {
  return rounds * m.alpha + bytes * m.beta + reduced * m.gamma;
}

/// A row-first torus: what a later schedule would bring along. Lanes: right, left, down, up.
struct grid_of_links {
  int rows;
  int columns;
  static constexpr int lanes = 4;
  template <class Use>
  constexpr void route(int from, int to, int, Use use) const {
    const int row = from / columns;
    ring_of_links{}.route(from % columns, to % columns, columns,
                          [&](int lane, int column) { use(lane, row * columns + column); });
    ring_of_links{}.route(row, to / columns, rows, [&](int lane, int r) { use(2 + lane, r * columns + to % columns); });
  }
};
static_assert(wiring<grid_of_links>);
static_assert(!wiring<int>);

}  // namespace

TEST_CASE("Costs are those of the published formulas", "[schedule]") {
  for (const int p : rank_counts) {
    const double n = p - 1, S = resnet50;
    CAPTURE(p);
    CHECK(cost(ring_all_reduce{}, p, resnet50, cluster).seconds ==
          Approx(formula(cluster, 2 * n, 2 * share(p) * S, share(p) * S)).epsilon(0.01));
    CHECK(cost(ring_reduce_scatter{}, p, resnet50, cluster).seconds ==
          Approx(formula(cluster, n, share(p) * S, share(p) * S)).epsilon(0.01));
    CHECK(cost(ring_all_gather{}, p, resnet50, cluster).seconds ==
          Approx(formula(cluster, n, share(p) * S, 0)).epsilon(0.01));
    CHECK(cost(one_shot_all_reduce{}, p, resnet50, cluster).seconds ==
          Approx(formula(cluster, 1, n * S, n * S)).epsilon(0.01));
    CHECK(cost(direct_all_reduce{}, p, resnet50, cluster).seconds ==
          Approx(formula(cluster, 2, 2 * share(p) * S, share(p) * S)).epsilon(0.01));
  }
}

TEST_CASE("A ring of many ranks takes as long as worked out by hand", "[schedule]") {
  const machine without_arithmetic{cluster.alpha, cluster.beta, 0};
  const auto milliseconds = [&](int p) {
    return 1e3 * cost(ring_all_reduce{}, p, resnet50, without_arithmetic).seconds;
  };
  CHECK(milliseconds(64) == Approx(8.68).epsilon(0.01));
  CHECK(milliseconds(256) == Approx(10.69).epsilon(0.01));
  CHECK(milliseconds(1024) == Approx(18.40).epsilon(0.01));
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
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1000}}) {
      models::for_each([&](auto schedule, models::collective_kind) {
        const schedule_cost said = cost(schedule, p, bytes, cluster);
        // Longest blocks everywhere: what a vector would cost whose blocks are all as long.
        const std::size_t blocks = static_cast<std::size_t>(decltype(schedule)::blocks({0, p}));
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
  CHECK(ring == Approx(formula(cluster, 2 * (p - 1) * pieces, 2 * share(p) * S, share(p) * S)).epsilon(0.01));
  // Both rounds of a piece run beside each other: the bytes stay, latency and arithmetic of a piece come but once.
  const double direct = cost(direct_all_reduce{}, p, resnet50, cluster, crossbar{}, pieces).seconds;
  CHECK(direct == Approx(formula(cluster, 2 + pieces - 1, 2 * share(p) * S, share(p) * S)).epsilon(0.01));
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
  const int rows = 4, columns = 4, p = rows * columns;
  const std::size_t bytes = 24 * static_cast<std::size_t>(p);
  // Along a row each of 4 columns' worth of blocks goes 1 or 2 to the right: (1 + 2) hops times 4 rows of destinations.
  CHECK(cost(direct_reduce_scatter{}, p, bytes, only_bytes, grid_of_links{rows, columns}).seconds ==
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
