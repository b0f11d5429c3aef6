// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"

#include <toroid/schedule/layout.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace {

using namespace toroid::schedule;
using toroid::block;
using toroid::block_of;

/// Three parts, the second of them empty, of two blocks each.
struct uneven {
  static constexpr int blocks(problem) noexcept { return 6; }
  static constexpr int parts(problem) noexcept { return 3; }
  static constexpr int weight(problem, int part) noexcept { return part == 0 ? 1 : part == 1 ? 0 : 3; }
};

static_assert(weighted<uneven> && weighted<torus_2d_all_reduce> && !weighted<ring_all_reduce>);
static_assert(block_at<uneven>({}, 16, 0) == block{0, 2} && block_at<uneven>({}, 16, 2) == block{4, 0});
static_assert(block_at<uneven>({}, 16, 5) == block{10, 6} && longest_at<uneven>({}, 17, 5) == 7);
static_assert(block_at<ring_all_reduce>({0, 3}, 10, 1) == block_of(10, 3, 1));
static_assert(longest_at<ring_all_reduce>({0, 3}, 10, 2) == 4);

static_assert(slot_places<ring_all_reduce>({0, 5}) == 1 && slot_place<ring_all_reduce>({0, 5}, 3, 4) == 0);
static_assert(slot_places<direct_all_reduce>({0, 5}) == 5 && slot_place<direct_all_reduce>({0, 5}, 1, 4) == 4);
static_assert(slot_places<tree_all_reduce>({0, 8}) == 4 && slot_place<tree_all_reduce>({0, 8}, 2, 1) == 1 &&
              slot_place<tree_all_reduce>({0, 8}, 3, 1) == 3);

}  // namespace

TEST_CASE("Blocks of weighted parts cover a vector without gaps", "[schedule]") {
  support::random_numbers random(5);
  const auto check = [](problem p, std::size_t count) {
    using model = torus_2d_all_reduce;
    CAPTURE(p.ranks, p.rows, count);
    std::size_t end = 0;
    for (int i = 0; i < model::blocks(p); ++i) {
      const block b = block_at<model>(p, count, i);
      REQUIRE(b.begin == end);
      end = b.end();
      const std::size_t longest = longest_at<model>(p, count, i);
      REQUIRE((b.count <= longest && b.count + 1 >= longest));
    }
    REQUIRE(end == count);
  };
  models::for_each_grid(1, 72, [&](int rows, int columns) {
    const problem p{0, rows * columns, 0, rows};
    for (std::size_t count = 0; count < 20; ++count) check(p, count);
    for (int i = 0; i < 5; ++i) check(p, random.next() >> random.below(64));
    check(p, SIZE_MAX);
  });
}

TEST_CASE("Parts of a torus are as long as their weights say", "[schedule]") {
  const problem p{0, 12, 0, 3};  // 4 columns, 3 rows: 12 + 1 - 8 to 12 + 1 - 6
  CHECK(part_of<torus_2d_all_reduce>(p, 2400, 0) == block{0, 500});
  CHECK(part_of<torus_2d_all_reduce>(p, 2400, 1) == block{500, 500});
  CHECK(part_of<torus_2d_all_reduce>(p, 2400, 2) == block{1000, 700});
  CHECK(part_of<torus_2d_all_reduce>(p, 2400, 3) == block{1700, 700});
}

TEST_CASE("What is sent in a step has a place in a slot", "[schedule]") {
  models::for_each([](auto schedule, models::collective_kind) {
    using model = decltype(schedule);
    for (const int ranks : {1, 2, 3, 6, 8}) {
      const problem p{0, ranks};
      for (int step = 0; step < model::steps(p); ++step)
        for (int b = 0; b < model::blocks(p); ++b) {
          const int place = slot_place<model>(p, step, b);
          CAPTURE(ranks, step, b);
          REQUIRE((place >= 0 && place < slot_places<model>(p)));
        }
    }
  });
}
