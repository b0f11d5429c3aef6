// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"
#include "support/catch.hpp"

#include <toroid/schedule/verify.hpp>

#include <string>
#include <vector>

namespace {

using namespace toroid::schedule;

template <class S>
constexpr bool one_shot = std::is_same_v<S, one_shot_all_reduce>;

/// One-shot works in place only where a peer's input is not read where it stands: peers may still read the vector that
/// the sum replaces. Executors have to stage it there.
template <class S>
verify_options options_of(S) {
  return {.in_rank_order = models::in_rank_order<S>, .direct_in_place = !one_shot<S>};
}

/// All roots up to 16 ranks; above, those at and around the ends and the middle.
std::vector<int> roots_of(collective_kind kind, int ranks) {
  if (kind != collective_kind::broadcast && kind != collective_kind::reduce) return {0};
  std::vector<int> roots;
  for (int root = 0; root < ranks; ++root)
    if (ranks <= 16 || root == 0 || root == 1 || root == ranks / 2 || root == ranks - 1) roots.push_back(root);
  return roots;
}

void prove_all(int first, int last) {
  models::for_each([&](auto schedule, collective_kind kind) {
    for (int ranks = first; ranks <= last; ++ranks) {
      for (const int root : roots_of(kind, ranks)) {
        CAPTURE(static_cast<int>(kind), ranks, root);
        REQUIRE(verify(schedule, ranks, kind, root, options_of(schedule)).to_string() == "proved");
      }
    }
  });
}

void prove_grids(int least_ranks, int most_ranks) {
  models::for_each_grid(least_ranks, most_ranks, [](int rows, int columns) {
    CAPTURE(rows, columns);
    REQUIRE(verify(torus_2d_all_reduce{}, rows * columns, collective_kind::all_reduce, 0, {.rows = rows}).to_string() ==
            "proved");
  });
}

/// "2 + 3 + 0 + 1": ranks in turn from `first` on, combined from left to right.
std::string in_turn(int first, int ranks) {
  std::string text;
  for (int i = 0; i < ranks; ++i) text += (i == 0 ? "" : " + ") + std::to_string((first + i) % ranks);
  return text;
}

}  // namespace

TEST_CASE("Schedules are proved for few ranks", "[schedule]") { prove_all(1, 12); }

TEST_CASE("Schedules are proved for up to 64 ranks", "[schedule][slow]") { prove_all(13, 64); }

TEST_CASE("The torus is proved for small grids", "[schedule]") { prove_grids(1, 20); }

TEST_CASE("The torus is proved for all grids up to 8 x 9", "[schedule][slow]") { prove_grids(21, 72); }

TEST_CASE("Direct schedules combine in rank order, from left to right", "[schedule]") {
  for (int ranks = 1; ranks <= 64; ranks += ranks < 9 ? 1 : 11) {
    const verify_options ordered{.in_rank_order = true, .most_depth = 2, .direct_in_place = false};
    for (const verification& proof :
         {verify(one_shot_all_reduce{}, ranks, collective_kind::all_reduce, 0, ordered),
          verify(direct_all_reduce{}, ranks, collective_kind::all_reduce, 0, ordered),
          verify(direct_reduce_scatter{}, ranks, collective_kind::reduce_scatter, 0, ordered)}) {
      REQUIRE(proof.to_string() == "proved");
      REQUIRE_FALSE(proof.expressions.empty());
      for (const std::string& expression : proof.expressions) REQUIRE(expression == in_turn(0, ranks));
    }
  }
}

TEST_CASE("Ring schedules combine in ring order, beginning after the owner of the block", "[schedule]") {
  for (int ranks = 1; ranks <= 64; ranks += ranks < 9 ? 1 : 11) {
    for (const verification& proof : {verify(ring_all_reduce{}, ranks, collective_kind::all_reduce),
                                      verify(ring_reduce_scatter{}, ranks, collective_kind::reduce_scatter)}) {
      REQUIRE(proof.to_string() == "proved");
      REQUIRE(static_cast<int>(proof.expressions.size()) == ranks);
      for (int block = 0; block < ranks; ++block)
        REQUIRE(proof.expressions[static_cast<std::size_t>(block)] == in_turn((block + 1) % ranks, ranks));
    }
  }
}

TEST_CASE("A ring does not combine in rank order", "[schedule]") {
  const verification found = verify(ring_all_reduce{}, 4, collective_kind::all_reduce, 0, {.in_rank_order = true});
  CHECK(found.to_string() == "rank 0, block 0: wrong order: combines 1 + 2 + 3 + 0, not in rank order");
}

TEST_CASE("One-shot cannot work in place in memory that peers read", "[schedule]") {
  const verification found = verify(one_shot_all_reduce{}, 3, collective_kind::all_reduce);
  CHECK(
      found.to_string() ==
      "rank 1, step 1, block 0: reads the input of rank 0 while step 1 of rank 0 may write it (direct path, in place, "
      "2 slots, 4 pieces)");
}

TEST_CASE("The in-order tree combines each subtree in turn", "[schedule]") {
  const verify_options ordered{.in_rank_order = true};
  const auto expression = [&](int ranks) {
    return verify(in_order_tree_all_reduce{}, ranks, collective_kind::all_reduce, 0, ordered).expressions.at(0);
  };
  CHECK(expression(1) == "0");
  CHECK(expression(2) == "0 + 1");
  CHECK(expression(3) == "0 + 1 + 2");
  CHECK(expression(7) == "0 + 1 + 2 + 3 + (4 + 5 + 6)");
  CHECK(expression(13) == "0 + 1 + 2 + 3 + (4 + 5 + 6) + 7 + (8 + 9 + 10 + 11 + 12)");
  // Whoever asks for the result, it is the same.
  for (const int root : {0, 6, 12}) {
    const verification proof = verify(in_order_tree_reduce{}, 13, collective_kind::reduce, root, ordered);
    REQUIRE(proof.to_string() == "proved");
    CHECK(proof.expressions.at(0) == expression(13));
  }
}

TEST_CASE("Two trees combine differently, and neither in rank order", "[schedule]") {
  const verification proof = verify(tree_all_reduce{}, 6, collective_kind::all_reduce);
  REQUIRE(proof.to_string() == "proved");
  CHECK(proof.expressions == std::vector<std::string>{"0 + 1 + 2 + 3 + (4 + 5)", "5 + 4 + 3 + 2 + (1 + 0)"});
  CHECK(verify(tree_all_reduce{}, 6, collective_kind::all_reduce, 0, {.in_rank_order = true}).to_string() ==
        "rank 0, block 1: wrong order: combines 5 + 4 + 3 + 2 + (1 + 0), not in rank order");
}

TEST_CASE("Halving combines halves of what is left", "[schedule]") {
  const verification proof = verify(halving_reduce_scatter{}, 4, collective_kind::reduce_scatter);
  REQUIRE(proof.to_string() == "proved");
  CHECK(proof.expressions.at(0) == "1 + 3 + (2 + 0)");
  CHECK(proof.expressions.at(3) == "0 + 2 + (1 + 3)");
}

TEST_CASE("A torus combines along one axis, then along the other", "[schedule]") {
  const verification proof = verify(torus_2d_all_reduce{}, 4, collective_kind::all_reduce, 0, {.rows = 2});
  REQUIRE(proof.to_string() == "proved");
  REQUIRE(proof.expressions.size() == 16);
  CHECK(proof.expressions.at(0) == "3 + 2 + (1 + 0)");  // of rank 0, rows first
  CHECK(proof.expressions.at(8) == "3 + 1 + (2 + 0)");  // columns first
}
