// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"
#include "support/catch.hpp"

#include <toroid/schedule/concept.hpp>

namespace {

using namespace toroid::schedule;

static_assert(schedule_type<one_shot_all_reduce> && schedule_type<direct_all_reduce> &&
              schedule_type<direct_reduce_scatter> && schedule_type<direct_all_gather> &&
              schedule_type<direct_broadcast>);
static_assert(schedule_type<ring_all_reduce> && schedule_type<ring_reduce_scatter> && schedule_type<ring_all_gather> &&
              schedule_type<ring_broadcast>);

struct without_touching_steps {
  static constexpr bool pipelined = true;
  static constexpr int blocks(problem) noexcept { return 1; }
  static constexpr int steps(problem) noexcept { return 1; }
  static constexpr int operations(problem, int) noexcept { return 0; }
  static constexpr operation at(problem, int, int) noexcept { return {}; }
  static constexpr int class_count(problem) noexcept { return 1; }
  static constexpr step_class class_at(problem, int) noexcept { return {0, 1}; }
};
struct with_touching_steps : without_touching_steps {
  static constexpr int touching_steps(problem) noexcept { return 1; }
};
struct with_state : with_touching_steps {
  int state = 0;
};
struct at_run_time : with_touching_steps {
  static int steps(problem) noexcept { return 1; }
};
struct may_throw : with_touching_steps {
  static constexpr int steps(problem) { return 1; }
};
static_assert(schedule_type<halving_doubling_all_reduce> && schedule_type<tree_reduce> &&
              schedule_type<in_order_tree_all_reduce> && schedule_type<torus_2d_all_reduce>);
static_assert(!schedule_type<int> && !schedule_type<without_touching_steps> && schedule_type<with_touching_steps>);
static_assert(!schedule_type<with_state> && !schedule_type<at_run_time> && !schedule_type<may_throw>);

// Index arithmetic is there at compile time.
static_assert(ring_all_reduce::steps({0, 5}) == 9 && ring_all_reduce::touching_steps({0, 5}) == 8);
static_assert(ring_reduce_scatter::at({2, 5}, 4, 0).completes &&
              ring_reduce_scatter::at({2, 5}, 4, 0).blocks.first == 2);
static_assert(direct_reduce_scatter::at({1, 4}, 1, 0).from.count == 4);
static_assert(ring_broadcast::operations({3, 4, 1}, 2) == 1 && ring_broadcast::operations({3, 4, 1}, 1) == 0);
static_assert(peers{3, 1, 2}.at(1, 4) == 0 && peers{0, -1, 2}.at(1, 4) == 3 && everyone_but(3, 4).at(0, 4) == 0);
static_assert(both(3, 1).at(0, 5) == 3 && both(3, 1).at(1, 5) == 1);
static_assert(both(0, 2).with(5).at(2, 8) == 5 && both(0, 2).with(5).contains(5, 8) && !both(0, 2).contains(5, 8));
static_assert(nobody().with(3).at(0, 4) == 3 && nobody().with(3).count == 1);
static_assert(block_range{6, 3}.at(1, 8) == 7 && block_range{6, 3}.at(2, 8) == 0);
static_assert(sizeof(operation) <= 16 * sizeof(int));
static_assert(halving_doubling_all_reduce::steps({0, 65536}) == 33 && tree_all_reduce::steps({0, 65536}) == 33 &&
              torus_2d_all_reduce::steps({0, 65536, 0, 256}) == 1021);
static_assert(in_order_tree_all_reduce::at({3, 6}, 2, 0).from.count == 3 &&
              in_order_tree_all_reduce::at({3, 6}, 2, 0).completes);
static_assert(everyone_but(3, 4).contains(2, 4) && !everyone_but(3, 4).contains(3, 4) && !nobody().contains(0, 4));

}  // namespace

TEST_CASE("Every model is a schedule", "[schedule]") {
  int seen = 0;
  models::for_each([&](auto schedule, models::collective_kind) {
    STATIC_REQUIRE(stated_schedule<decltype(schedule)>);
    ++seen;
  });
  CHECK(seen > 0);
}

TEST_CASE("Levels of determinism follow from how operands meet", "[schedule]") {
  models::for_each([&](auto schedule, models::collective_kind kind) {
    using model = decltype(schedule);
    // Where nothing is combined, or everything in rank order and in one grouping, an element's place does not matter.
    const bool combines = kind != models::collective_kind::all_gather && kind != models::collective_kind::broadcast;
    CAPTURE(static_cast<int>(kind));
    CHECK(model::level ==
          (combines && !models::in_rank_order<model> ? determinism::run_to_run : determinism::any_chunking));
  });
}

TEST_CASE("Step classes of many ranks are few and cover all steps", "[schedule]") {
  const auto check = [](auto schedule, problem p, int most) {
    using model = decltype(schedule);
    int next = 0;
    for (int c = 0; c < model::class_count(p); ++c) {
      REQUIRE(model::class_at(p, c).first == next);
      next += model::class_at(p, c).count;
    }
    CHECK(next == model::steps(p));
    CHECK(model::class_count(p) <= most);
  };
  check(ring_all_reduce{}, {0, 65536}, 8);
  check(halving_doubling_all_reduce{}, {0, 65536}, 33);
  check(tree_all_reduce{}, {0, 65536}, 33);
  for (const int rows : {1, 2, 256, 16384, 65536}) check(torus_2d_all_reduce{}, {0, 65536, 0, rows}, 26);
}
