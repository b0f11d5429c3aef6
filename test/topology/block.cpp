// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/random.hpp"

#include <toroid/topology/block.hpp>

#include <cstddef>
#include <cstdint>

using toroid::block;
using toroid::block_of;

// Where 32 bits are not enough.
static_assert(block_of(1'500'000'000, 4, 3).begin * 8 == 9'000'000'000);
static_assert(block_of(SIZE_MAX, 1, 0) == block{0, SIZE_MAX});
static_assert(block_of(SIZE_MAX, 2, 1).end() == SIZE_MAX);
static_assert(block_of((std::size_t{1} << 31) + 7, 2, 1) ==
              block{(std::size_t{1} << 30) + 4, (std::size_t{1} << 30) + 3});

namespace {

/// Blocks stand one after the other, cover all, and the longer ones, by one element, come first.
void check_split(std::size_t count, int ranks) {
  CAPTURE(count, ranks);
  std::size_t end = 0, shortest = SIZE_MAX, previous = SIZE_MAX;
  for (int r = 0; r < ranks; ++r) {
    const block b = block_of(count, ranks, r);
    REQUIRE(b.begin == end);
    REQUIRE(b.count <= previous);
    end = b.end();
    previous = b.count;
    if (b.count < shortest) shortest = b.count;
  }
  REQUIRE(end == count);
  const std::size_t longest = toroid::longest_block(count, ranks);
  REQUIRE(longest == block_of(count, ranks, 0).count);
  REQUIRE(longest - shortest <= 1);
}

}  // namespace

TEST_CASE("Blocks cover a vector, without gaps, as evenly as can be", "[topology]") {
  for (int ranks = 1; ranks <= 17; ++ranks)
    for (std::size_t count = 0; count <= 70; ++count) check_split(count, ranks);
  support::random_numbers random(1);
  for (int i = 0; i < 2000; ++i)
    check_split(random.next() >> random.below(64), static_cast<int>(1 + random.below(300)));
}
