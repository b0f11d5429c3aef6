// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "support/demand.hpp"
#include "support/sanitizers.hpp"

#include <toroid/collective/all_gather.hpp>
#include <toroid/collective/grid_all_reduce.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

/// Sums on grids, with what they have to give.
namespace grid_sums {

inline std::vector<std::size_t> counts(int columns, int ranks) {
  const std::size_t c = static_cast<std::size_t>(columns), p = static_cast<std::size_t>(ranks);
  return {0, 1, c - 1, p - 1, p + 1, support::sanitized ? 10'007U : 100'003U};
}

template <class Grid>
void check_place(Grid& grid, int row, int column, int rows, int columns) {
  support::demand(grid.row() == row && grid.column() == column && grid.rows() == rows && grid.columns() == columns &&
                      grid.rank() == row * columns + column && grid.size() == rows * columns,
                  "rank ", grid.rank(), " of ", grid.size(), " stands at ", grid.row(), ", ", grid.column(), " of ",
                  grid.rows(), " x ", grid.columns());
}

/// Out of place and in place; the numbers differ from element to element and from rank to rank.
template <class Grid>
void check_sum(Grid& grid, std::size_t count) {
  const std::int64_t p = grid.size();
  std::vector<std::int64_t> in(count), out(count, -1);
  const auto brought = [&](std::size_t i) { return grid.rank() + 1 + static_cast<std::int64_t>(i % 7); };
  for (std::size_t i = 0; i < count; ++i) in[i] = brought(i);
  const auto check = [&](const std::vector<std::int64_t>& found, const char* where) {
    for (std::size_t i = 0; i < count; ++i)
      support::demand(found[i] == p * (p + 1) / 2 + p * static_cast<std::int64_t>(i % 7), where, ": element ", i,
                      " of ", count, " is ", found[i], " on rank ", grid.rank());
  };
  toroid::all_reduce(grid, in, out);
  check(out, "out of place");
  for (std::size_t i = 0; i < count; ++i) support::demand(in[i] == brought(i), "the input has changed at ", i);
  toroid::all_reduce(grid, in);
  check(in, "in place");
}

/// Of numbers whose sum depends on the order, all ranks of `comm`, which are those of the grid, get the same bits, and
/// get them again.
template <class Grid, class Communicator>
void check_bits(Grid& grid, Communicator& comm, std::size_t count) {
  std::vector<float> in(count), out(count), again(count);
  for (std::size_t i = 0; i < count; ++i)
    in[i] = static_cast<float>((grid.rank() * 7919 + static_cast<int>(i) * 104'729) % 1009 - 500) *
            (grid.rank() % 3 == 0 ? 1e6F : 0.37F);
  toroid::all_reduce(grid, in, out);
  toroid::all_reduce(grid, in, again);
  support::demand(std::memcmp(out.data(), again.data(), count * sizeof(float)) == 0, "other bits the second time");
  std::vector<float> all(count * static_cast<std::size_t>(comm.size()));
  toroid::all_gather(comm, out, all);
  for (int r = 0; r < comm.size(); ++r)
    support::demand(
        std::memcmp(out.data(), all.data() + static_cast<std::size_t>(r) * count, count * sizeof(float)) == 0, "ranks ",
        comm.rank(), " and ", r, " have got different bits");
}

template <class Grid, class Communicator>
void check(Grid& grid, Communicator& comm, int columns) {
  for (const std::size_t count : counts(columns, comm.size())) check_sum(grid, count);
  check_bits(grid, comm, 1003);
}

}  // namespace grid_sums
