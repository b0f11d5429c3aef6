// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"
#include "support/catch.hpp"

#include <toroid/schedule/verify.hpp>

namespace {

using namespace toroid::schedule;

template <class S>
constexpr bool one_shot = std::is_same_v<S, one_shot_all_reduce>;

/// One-shot works in place only where a peer's input is not read where it stands: peers may still read the vector that
/// the sum replaces. Executors have to stage it there.
template <class S>
verify_options options_of(S) {
  return {.direct_in_place = !one_shot<S>};
}

/// All roots up to 16 ranks; above, those at and around the ends and the middle.
std::vector<int> roots_of(collective_kind kind, int ranks) {
  if (kind != collective_kind::broadcast) return {0};
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

/// "2 + 3 + 0 + 1": ranks in turn from `first` on, combined from left to right.
std::string in_turn(int first, int ranks) {
  std::string text;
  for (int i = 0; i < ranks; ++i) text += (i == 0 ? "" : " + ") + std::to_string((first + i) % ranks);
  return text;
}

}  // namespace

TEST_CASE("Schedules are proved for few ranks", "[schedule]") { prove_all(1, 12); }

TEST_CASE("Schedules are proved for up to 64 ranks", "[schedule][slow]") { prove_all(13, 64); }

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
