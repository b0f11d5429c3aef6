// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <toroid/topology/ring.hpp>

using namespace toroid::topology;

TEST_CASE("Neighbours on a ring are each other's", "[topology]") {
  for (int ranks = 1; ranks <= 64; ++ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      REQUIRE(right_of(left_of(rank, ranks), ranks) == rank);
      REQUIRE(left_of(right_of(rank, ranks), ranks) == rank);
      REQUIRE(right_of(rank, ranks) == (rank + 1 == ranks ? 0 : rank + 1));
    }
    for (int value = -ranks; value < 3 * ranks; ++value) {
      const int wrapped = wrap(value, ranks);
      REQUIRE((wrapped >= 0 && wrapped < ranks));
      REQUIRE((value - wrapped) % ranks == 0);
    }
  }
}
