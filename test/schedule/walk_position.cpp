// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <toroid/schedule/compose.hpp>
#include <toroid/schedule/direct.hpp>
#include <toroid/schedule/halving_doubling.hpp>
#include <toroid/schedule/ring.hpp>
#include <toroid/schedule/torus.hpp>
#include <toroid/schedule/tree.hpp>
#include <toroid/schedule/walk_position.hpp>

#include <cstddef>
#include <vector>

// A walk that is left off and gone on with comes by the same places, in the same order, as the one that runs through.

namespace {

using namespace toroid::schedule;

struct place_in_walk {
  int first_block = -1, from = -1, step = -1;
  std::size_t piece = 0, time = 0;
  bool operator==(const place_in_walk&) const = default;
};

struct recorder {
  std::vector<place_in_walk> places;
  void perform(const operation& op, int step, std::size_t piece, std::size_t time) {
    places.push_back({op.blocks.first, op.from.first, step, piece, time});
  }
  void finish(std::size_t time) { places.push_back({-1, -1, -1, 0, time}); }
};

template <class Schedule>
bool same_walk(const problem& p, std::size_t pieces) {
  recorder through, by_steps;
  walk<Schedule>(p, pieces, through);
  for (walk_position<Schedule> at(p, pieces); !at.done(); at.next()) {
    if (at.ends_time())
      by_steps.finish(at.time());
    else
      by_steps.perform(at.operation(), at.step(), at.piece(), at.time());
  }
  return through.places == by_steps.places && by_steps.places.size() >= walk_length<Schedule>(p, pieces);
}

template <class Schedule>
void check() {
  for (int ranks = 1; ranks <= 9; ++ranks)
    for (int rank = 0; rank < ranks; ++rank)
      for (const std::size_t pieces : {1U, 2U, 3U, 8U}) {
        const problem p{rank, ranks, ranks / 2, ranks % 3 == 0 ? 3 : 1};
        INFO("rank " << rank << " of " << ranks << ", pieces " << pieces);
        CHECK(same_walk<Schedule>(p, pieces));
      }
}

}  // namespace

TEST_CASE("A walk that is gone on with comes by the same places as one that runs through", "[walk]") {
  check<direct_all_reduce>();
  check<one_shot_all_reduce>();
  check<direct_broadcast>();
  check<ring_all_reduce>();
  check<ring_broadcast>();
  check<halving_doubling_all_reduce>();
  check<tree_all_reduce>();
  check<in_order_tree_all_reduce>();
  check<torus_2d_all_reduce>();
}
