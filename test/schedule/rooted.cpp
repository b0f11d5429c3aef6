// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <toroid/schedule/rooted.hpp>
#include <toroid/schedule/verify.hpp>
#include <toroid/topology/block.hpp>

#include <string>

// Reduce, gather and scatter without a tree, for every root.

namespace {

using namespace toroid::schedule;

static_assert(stated_schedule<one_shot_reduce> && stated_schedule<fetching_reduce> && stated_schedule<direct_reduce> &&
              stated_schedule<ring_reduce>);
static_assert(stated_schedule<direct_gather> && stated_schedule<fetching_gather> && stated_schedule<direct_scatter>);

/// All roots up to 16 ranks; above, those at and around the ends and the middle.
bool is_tried(int root, int ranks) { return ranks <= 16 || root < 2 || root == ranks / 2 || root == ranks - 1; }

template <class S>
void prove(S schedule, int ranks, collective_kind kind, bool in_rank_order = false) {
  for (int root = 0; root < ranks; ++root) {
    if (!is_tried(root, ranks)) continue;
    CAPTURE(ranks, root);
    REQUIRE(verify(schedule, ranks, kind, root, {.in_rank_order = in_rank_order}).to_string() == "proved");
  }
}

void prove_all(int first, int last) {
  for (int ranks = first; ranks <= last; ++ranks) {
    prove(one_shot_reduce{}, ranks, collective_kind::reduce, true);
    prove(fetching_reduce{}, ranks, collective_kind::reduce, true);
    prove(direct_reduce{}, ranks, collective_kind::reduce, true);
    prove(ring_reduce{}, ranks, collective_kind::reduce);
    prove(direct_gather{}, ranks, collective_kind::gather);
    prove(fetching_gather{}, ranks, collective_kind::gather);
    prove(direct_scatter{}, ranks, collective_kind::scatter);
  }
}

}  // namespace

TEST_CASE("Rooted schedules are proved for few ranks", "[schedule]") { prove_all(1, 12); }

TEST_CASE("Rooted schedules are proved for up to 64 ranks", "[schedule][slow]") { prove_all(13, 64); }

TEST_CASE("A reduction combines from left to right, on a ring beginning after the root", "[schedule]") {
  const verification ring = verify(ring_reduce{}, 5, collective_kind::reduce, 2);
  REQUIRE(ring.to_string() == "proved");
  CHECK(ring.expressions.at(0) == "3 + 4 + 0 + 1 + 2");
  const verification direct = verify(direct_reduce{}, 5, collective_kind::reduce, 2);
  REQUIRE(direct.expressions.size() == 5);
  for (const std::string& expression : direct.expressions) CHECK(expression == "0 + 1 + 2 + 3 + 4");
  CHECK(verify(one_shot_reduce{}, 5, collective_kind::reduce, 2).expressions.at(0) == "0 + 1 + 2 + 3 + 4");
  CHECK(verify(fetching_reduce{}, 5, collective_kind::reduce, 2).expressions.at(4) == "0 + 1 + 2 + 3 + 4");
}

TEST_CASE("Rooted schedules send what their headers say", "[schedule]") {
  for (const int ranks : {1, 2, 3, 7, 8}) {
    const std::size_t p = static_cast<std::size_t>(ranks);
    for (const std::size_t n : {std::size_t{0}, p - 1, p + 1, std::size_t{1003}}) {
      for (const int root : {0, ranks - 1}) {
        const auto own = [&](problem q) { return toroid::block_of(n, q.ranks, q.rank).count; };
        const auto nothing = [](problem) { return std::size_t{0}; };
        const auto holds = [&](auto schedule, auto sent, auto received) {
          CAPTURE(ranks, n, root);
          REQUIRE(verify_traffic(schedule, ranks, n, sent, received, root).to_string() == "proved");
        };
        const auto if_root = [=](auto yes, auto no) {
          return [=](problem q) { return q.rank == root ? yes(q) : no(q); };
        };
        const auto all = [&](problem) { return n; };
        const auto all_times_others = [&](problem) { return n * (p - 1); };
        const auto others = [&](problem q) { return n - own(q); };
        holds(one_shot_reduce{}, if_root(nothing, all), if_root(all_times_others, nothing));
        holds(fetching_reduce{}, if_root(nothing, all), if_root(all_times_others, nothing));
        holds(ring_reduce{}, if_root(nothing, all),
              [&](problem q) { return ranks > 1 && q.rank != (root + 1) % ranks ? n : 0; });
        const auto operands = [&](problem q) { return own(q) * (p - 1); };
        holds(direct_reduce{}, if_root(others, all),
              if_root([=](problem q) { return operands(q) + others(q); }, operands));
        holds(direct_gather{}, if_root(nothing, own), if_root(others, nothing));
        holds(fetching_gather{}, if_root(nothing, own), if_root(others, nothing));
        holds(direct_scatter{}, if_root(others, nothing), if_root(nothing, own));
      }
    }
  }
}

TEST_CASE("A gather to the wrong rank and a scatter of the wrong block are found", "[schedule]") {
  struct astray : direct_gather {
    static constexpr operation at(problem p, int step, int index) noexcept {
      operation op = direct_gather::at(p, step, index);
      if (step == 0) op.to = only(0);
      return op;
    }
  };
  CHECK_FALSE(verify(astray{}, 3, collective_kind::gather, 1).proved());
  struct shifted : direct_scatter {
    static constexpr operation at(problem p, int step, int index) noexcept {
      operation op = direct_scatter::at(p, step, index);
      if (step == 1) op.blocks.first = (op.blocks.first + 1) % p.ranks;
      return op;
    }
  };
  CHECK_FALSE(verify(shifted{}, 3, collective_kind::scatter, 0).proved());
}
