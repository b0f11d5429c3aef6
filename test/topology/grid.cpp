// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <toroid/topology/grid.hpp>

using toroid::topology::grid;

TEST_CASE("Ranks and coordinates are each other's", "[topology]") {
  for (int rows = 1; rows <= 9; ++rows) {
    for (int columns = 1; columns <= 9; ++columns) {
      const grid g{rows, columns};
      int rank = 0;
      for (int row = 0; row < rows; ++row) {
        for (int column = 0; column < columns; ++column, ++rank) {
          REQUIRE(g.rank_at(row, column) == rank);
          REQUIRE(g.row_of(rank) == row);
          REQUIRE(g.column_of(rank) == column);
        }
      }
      REQUIRE(g.ranks() == rank);
    }
  }
}

TEST_CASE("Distances wrap around rows and columns by themselves", "[topology]") {
  const grid g{3, 4};
  for (int from = 0; from < 12; ++from) {
    REQUIRE(g.distance(from, from) == 0);
    REQUIRE(g.distance(0, from) == from);
    bool seen[12] = {};
    for (int to = 0; to < 12; ++to) seen[g.distance(from, to)] = true;
    for (const bool s : seen) REQUIRE(s);
  }
  CHECK(g.distance(3, 0) == 1);   // one to the right, in the same row
  CHECK(g.distance(11, 0) == 5);  // one down and one to the right
}
