// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/random.hpp"

#include <toroid/transport/free_list.hpp>

#include <vector>

using toroid::transport::free_list;

TEST_CASE("A free list gives out runs that do not overlap, aligned, and takes all back", "[free_list]") {
  constexpr std::size_t bytes = 4096;
  struct run {
    std::size_t begin, length;
  };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    support::random_numbers random(seed);
    free_list list(bytes);
    std::vector<bool> taken(bytes, false);
    std::vector<run> held;
    for (int i = 0; i < 2000; ++i) {
      if (!held.empty() && random.below(2) == 0) {
        const std::size_t which = random.below(held.size());
        const run back = held[which];
        list.give_back(back.begin, back.length);
        for (std::size_t b = 0; b < back.length; ++b) taken[back.begin + b] = false;
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
        continue;
      }
      const std::size_t length = 1 + random.below(300), alignment = std::size_t{1} << random.below(8);
      const auto begin = list.take(length, alignment);
      if (!begin) {
        // Right only if no run is long enough.
        for (std::size_t at = 0; at + length <= bytes; at += alignment) {
          std::size_t free = 0;
          while (free < length && !taken[at + free]) ++free;
          REQUIRE(free < length);
        }
        continue;
      }
      REQUIRE(*begin % alignment == 0);
      REQUIRE(*begin + length <= bytes);
      for (std::size_t b = 0; b < length; ++b) {
        REQUIRE_FALSE(taken[*begin + b]);
        taken[*begin + b] = true;
      }
      held.push_back({*begin, length});
    }
    for (const run& back : held) list.give_back(back.begin, back.length);
    CHECK(list.runs() == 1);
    CHECK(list.take(bytes, 1) == 0);
    CHECK(list.runs() == 0);
    CHECK_FALSE(list.take(1, 1).has_value());
  }
}

TEST_CASE("An empty free list gives nothing", "[free_list]") {
  free_list list;
  CHECK(list.runs() == 0);
  CHECK_FALSE(list.take(1, 1).has_value());
}
