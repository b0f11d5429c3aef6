// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>
#include <toroid/topology/ring.hpp>

namespace toroid::topology {

/// Ranks as a grid with wrap-around, row after row.
///
///     0  1  2  3      rows = 3, columns = 4; rank 6 stands in row 1, column 2
///     4  5  6  7
///     8  9 10 11
struct grid {
  int rows = 1;     ///< at least 1
  int columns = 1;  ///< at least 1

  TOROID_HOST_DEVICE constexpr int ranks() const noexcept { return rows * columns; }
  TOROID_HOST_DEVICE constexpr int row_of(int rank) const noexcept { return rank / columns; }
  TOROID_HOST_DEVICE constexpr int column_of(int rank) const noexcept { return rank % columns; }
  TOROID_HOST_DEVICE constexpr int rank_at(int row, int column) const noexcept { return row * columns + column; }

  /// Where `to` stands if `from` stands at rank 0: one number for how far down and how far right it is.
  TOROID_HOST_DEVICE constexpr int distance(int from, int to) const noexcept {
    return rank_at(wrap(row_of(to) - row_of(from), rows), wrap(column_of(to) - column_of(from), columns));
  }
};

/// The grid of so many ranks that is nearest to a square, with no more rows than columns; one row for a prime number.
TOROID_HOST_DEVICE constexpr grid nearest_to_square(int ranks) noexcept {
  int rows = 1;
  for (int divisor = 2; divisor <= ranks / divisor; ++divisor)
    if (ranks % divisor == 0) rows = divisor;
  return {rows, ranks / rows};
}

/// The grid of so many ranks with so many rows and columns, where zero is what follows from the other, or from
/// nearest_to_square; no rows and no columns if there is none.
TOROID_HOST_DEVICE constexpr grid fitting(int rows, int columns, int ranks) noexcept {
  if (rows == 0 && columns == 0) return nearest_to_square(ranks);
  if (rows == 0 && columns > 0) rows = ranks / columns;
  if (columns == 0 && rows > 0) columns = ranks / rows;
  const bool fits = rows >= 1 && columns >= 1 && ranks % rows == 0 && ranks / rows == columns;
  return fits ? grid{rows, columns} : grid{0, 0};
}

static_assert(nearest_to_square(12).rows == 3 && nearest_to_square(16).rows == 4 && nearest_to_square(7).rows == 1);
static_assert(nearest_to_square(1).columns == 1 && nearest_to_square(2).columns == 2);
static_assert(grid{3, 4}.row_of(6) == 1 && grid{3, 4}.column_of(6) == 2 && grid{3, 4}.rank_at(2, 3) == 11);
static_assert(fitting(0, 0, 6).rows == 2 && fitting(3, 0, 6).columns == 2 && fitting(0, 6, 6).rows == 1);
static_assert(fitting(4, 0, 6).rows == 0 && fitting(7, 0, 6).rows == 0 && fitting(2, 2, 6).rows == 0);
static_assert(fitting(-2, -3, 6).rows == 0 && fitting(0, -1, 6).rows == 0 && fitting(1 << 30, 4, 6).rows == 0);
static_assert(grid{3, 4}.distance(6, 5) == 3 && grid{3, 4}.distance(6, 2) == 8 && grid{1, 5}.distance(3, 1) == 3);

}  // namespace toroid::topology
