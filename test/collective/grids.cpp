// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// All-reduce on grids of ranks: all shapes, lengths around the number of ranks, and grids that do not fit.

namespace {

using support::demand;

struct shape {
  int rows, columns;
};
constexpr shape shapes[] = {{1, 1}, {1, 5}, {5, 1}, {2, 2}, {2, 3}, {3, 2}, {3, 5}, {4, 3}};

/// Rank r's number at an index; sums over ranks have no two parts in one bit.
std::uint64_t brought(int rank, std::size_t index) { return (index << 32) + (std::uint64_t{1} << 2 * rank); }
std::uint64_t total(int ranks, std::size_t index) {
  std::uint64_t sum = 0;
  for (int r = 0; r < ranks; ++r) sum += brought(r, index);
  return sum;
}

template <class Comm>
void sum_on(Comm& comm, std::size_t count, toroid::torus_2d how) {
  std::vector<std::uint64_t> in(count), out(count, 7);
  for (std::size_t i = 0; i < count; ++i) in[i] = brought(comm.rank(), i);
  toroid::all_reduce(comm, in, out, how);
  const auto check = [&](const std::vector<std::uint64_t>& found, const char* where) {
    for (std::size_t i = 0; i < count; ++i)
      demand(found[i] == total(comm.size(), i), where, " on ", how.rows, " x ", how.columns, ": element ", i, " of ",
             count, " is ", found[i]);
  };
  check(out, "out of place");
  for (std::size_t i = 0; i < count; ++i)
    demand(in[i] == brought(comm.rank(), i), "the input is overwritten at ", i, " of ", count);
  toroid::all_reduce(comm, in, how);
  check(in, "in place");
}

template <class Comm>
void sum_on(Comm& comm, shape grid) {
  const std::size_t columns = static_cast<std::size_t>(grid.columns), ranks = static_cast<std::size_t>(comm.size());
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, columns - 1, ranks - 1, ranks, ranks + 1, 4 * ranks,
                                  4 * ranks + 3, 100 * ranks - 1})
    for (const std::size_t segment : {0u, 16u})
      sum_on(comm, count, {.rows = grid.rows, .columns = grid.columns, .segment_bytes = segment});
}

/// What a call with this grid is refused with.
template <class Comm>
void refused(Comm& comm, toroid::torus_2d how, const char* words) {
  std::vector<int> values(1000, 1);
  support::demand_words(support::text_of<toroid::usage_error>([&] { toroid::all_reduce(comm, values, how); }),
                        "all_reduce", words);
  support::demand_words(support::text_of<toroid::usage_error>([&] { (void)toroid::plan(comm, 1000, how); }), words);
  demand(values == std::vector<int>(1000, 1), "a refused call has moved something");
}

}  // namespace

TEST_CASE("Sums on grids of every shape are right", "[grids]") {
  for (const shape grid : shapes)
    support::run_both(grid.rows * grid.columns, [grid](auto& comm) { sum_on(comm, grid); });
}

TEST_CASE("Long sums on grids of every shape are right", "[grids][slow]") {
  for (const shape grid : shapes)
    support::run_both(grid.rows * grid.columns, [grid](auto& comm) {
      sum_on(comm, 1'000'003, toroid::torus_2d{.rows = grid.rows, .columns = grid.columns});
    });
}

TEST_CASE("Rows and columns that are not given follow", "[grids]") {
  support::run_both(6, [](auto& comm) {
    for (const toroid::torus_2d how :
         {toroid::torus_2d{}, {.rows = 2}, {.rows = 3}, {.columns = 1}, {.columns = 6}, {.rows = 2, .columns = 3}})
      sum_on(comm, 1000, how);
    demand(toroid::plan(comm, 10'000, toroid::torus_2d{}).algorithm == "torus_2d of 2 x 3", "another grid is planned");
    demand(toroid::plan(comm, 10'000, toroid::torus_2d{.columns = 1}).algorithm == "torus_2d of 6 x 1",
           "another grid is planned");
  });
  support::run_threads(7, [](auto& comm) {
    demand(toroid::plan(comm, 10'000, toroid::torus_2d{}).algorithm == "torus_2d of 1 x 7", "another grid is planned");
  });
}

TEST_CASE("Grids that do not fit the ranks are refused on all of them, and the group goes on", "[grids]") {
  support::run_both(6, [](auto& comm) {
    for (const toroid::torus_2d how : {toroid::torus_2d{.rows = 2, .columns = 2},
                                       {.rows = 4},
                                       {.columns = 5},
                                       {.rows = 7},
                                       {.columns = 12},
                                       {.rows = -2, .columns = -3},
                                       {.rows = -1},
                                       {.rows = 1 << 30, .columns = 1 << 30},
                                       {.rows = 3, .columns = 3}})
      refused(comm, how, "does not fit 6 ranks");
    sum_on(comm, 100, toroid::torus_2d{});
  });
}

TEST_CASE("Ranks that see different grids learn of it", "[grids]") {
  support::run_both(4, [](auto& comm) {
    std::vector<int> values(1000, 1);
    const auto call = [&] {
      toroid::all_reduce(comm, values, toroid::torus_2d{.rows = comm.rank() == 2 ? 4 : 2});
      toroid::all_reduce(comm, values);
      toroid::all_reduce(comm, values);
    };
    support::demand_words(support::text_of<toroid::mismatch_error>(call), "torus_2d in 4 rows", "torus_2d in 2 rows");
  });
}
