// SPDX-License-Identifier: Apache-2.0
// What ranks send and receive is what the papers and the headers say, whether blocks divide the count or not.
#include "models.hpp"
#include "support/catch.hpp"

#include <toroid/schedule/verify.hpp>
#include <toroid/topology/block.hpp>
#include <toroid/topology/ring.hpp>

#include <cstddef>

namespace {

using namespace toroid::schedule;
using toroid::block_of;
using toroid::topology::left_of;
using toroid::topology::right_of;

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
  expected of(ring_broadcast) const { return {right_of(p.rank, p.ranks) == p.root ? 0 : n, p.rank == p.root ? 0 : n}; }
};

template <class S>
std::string compared(S schedule, int ranks, std::size_t count, int root) {
  return verify_traffic(
             schedule, ranks, count,
             [&](problem p) {
               return formulas{p, count}.of(S{}).sent;
             },
             [&](problem p) {
               return formulas{p, count}.of(S{}).received;
             },
             root)
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

TEST_CASE("Operators are applied as often as there are contributions to add", "[schedule]") {
  for (int ranks = 1; ranks <= 64; ++ranks) {
    for (const std::size_t count : counts_for(ranks)) {
      const std::size_t once = static_cast<std::size_t>(ranks - 1) * count;
      std::size_t ring = 0, direct = 0, one_shot = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        ring += traffic_of(ring_all_reduce{}, {rank, ranks}, count).reduced;
        direct += traffic_of(direct_all_reduce{}, {rank, ranks}, count).reduced;
        one_shot += traffic_of(one_shot_all_reduce{}, {rank, ranks}, count).reduced;
      }
      CAPTURE(ranks, count);
      REQUIRE(ring == once);
      REQUIRE(direct == once);
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
