// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <toroid/schedule/exchange.hpp>
#include <toroid/schedule/verify.hpp>

#include <cstddef>

// Schedules on blocks that callers lay out.

namespace {

using namespace toroid::schedule;

static_assert(stated_schedule<direct_exchange> && stated_schedule<fetching_all_gather> &&
              stated_schedule<mapped_reduce_scatter>);

void prove(int ranks) {
  CAPTURE(ranks);
  REQUIRE(verify(direct_exchange{}, ranks, collective_kind::all_to_all).to_string() == "proved");
  // In place, executors leave a block alone that is where it belongs; the checker would have it written.
  const verify_options apart{.direct_in_place = false};
  REQUIRE(verify(fetching_all_gather{}, ranks, collective_kind::all_gather, 0, apart).to_string() == "proved");
  REQUIRE(
      verify(mapped_reduce_scatter{}, ranks, collective_kind::reduce_scatter, 0, {.in_rank_order = true}).to_string() ==
      "proved");
}

}  // namespace

TEST_CASE("Exchanges are proved for few ranks", "[schedule]") {
  for (int ranks = 1; ranks <= 9; ++ranks) prove(ranks);
}

TEST_CASE("Exchanges are proved for up to 64 ranks", "[schedule][slow]") {
  for (int ranks = 10; ranks <= 64; ++ranks) prove(ranks);
}

TEST_CASE("An exchange sends all but the own block, and receives as much", "[schedule]") {
  for (const int ranks : {1, 2, 5, 8}) {
    const std::size_t p = static_cast<std::size_t>(ranks), each = 3;
    const auto moved = [&](problem) { return (p - 1) * each; };
    REQUIRE(verify_traffic(direct_exchange{}, ranks, p * p * each, moved, moved).to_string() == "proved");
    REQUIRE(verify_traffic(fetching_all_gather{}, ranks, p * each, moved, moved).to_string() == "proved");
  }
}

TEST_CASE("An exchange of the wrong block is found", "[schedule]") {
  struct mirrored : direct_exchange {
    static constexpr operation at(problem p, int step, int index) noexcept {
      operation op = direct_exchange::at(p, step, index);
      const int s = op.blocks.first / p.ranks, d = op.blocks.first % p.ranks;
      op.blocks.first = d * p.ranks + s;
      return op;
    }
  };
  CHECK_FALSE(verify(mirrored{}, 3, collective_kind::all_to_all).proved());
}
