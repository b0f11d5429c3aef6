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
static_assert(!schedule_type<int> && !schedule_type<without_touching_steps> && schedule_type<with_touching_steps>);
static_assert(!schedule_type<with_state> && !schedule_type<at_run_time> && !schedule_type<may_throw>);

// Index arithmetic is there at compile time.
static_assert(ring_all_reduce::steps({0, 5}) == 9 && ring_all_reduce::touching_steps({0, 5}) == 8);
static_assert(ring_reduce_scatter::at({2, 5}, 4, 0).completes &&
              ring_reduce_scatter::at({2, 5}, 4, 0).blocks.first == 2);
static_assert(direct_reduce_scatter::at({1, 4}, 1, 0).from.count == 4);
static_assert(ring_broadcast::operations({3, 4, 1}, 2) == 1 && ring_broadcast::operations({3, 4, 1}, 1) == 0);
static_assert(peers{3, 1, 2}.at(1, 4) == 0 && peers{0, -1, 2}.at(1, 4) == 3 && everyone_but(3, 4).at(0, 4) == 0);
static_assert(everyone_but(3, 4).contains(2, 4) && !everyone_but(3, 4).contains(3, 4) && !nobody().contains(0, 4));

}  // namespace

TEST_CASE("Every model is a schedule", "[schedule]") {
  int seen = 0;
  models::for_each([&](auto schedule, models::collective_kind) {
    STATIC_REQUIRE(schedule_type<decltype(schedule)>);
    ++seen;
  });
  CHECK(seen > 0);
}
