// SPDX-License-Identifier: Apache-2.0
#include "collective/grid_sums.hpp"
#include "support/catch.hpp"
#include "support/launch.hpp"

#include <toroid/toroid.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

// Grids: over one communicator, over two of the same or of different transports, and with rows of different length.

namespace {

using support::demand;
using support::demand_words;
using support::text_of;

struct shape {
  int rows, columns;
};
constexpr shape shapes[] = {{1, 1}, {1, 5}, {5, 1}, {2, 2}, {2, 3}, {3, 2}, {3, 5}, {4, 3}};

template <class Communicator>
void over_one(Communicator& comm, shape form) {
  auto grid = toroid::make_grid(comm, {.rows = form.rows, .columns = form.columns});
  static_assert(std::is_same_v<decltype(grid), toroid::flat_grid<Communicator&>>);
  grid_sums::check_place(grid, comm.rank() / form.columns, comm.rank() % form.columns, form.rows, form.columns);
  grid_sums::check(grid, comm, form.columns);
  std::vector<float> pieces(100);
  toroid::all_reduce(grid, pieces, toroid::torus_2d{.columns = form.columns, .segment_bytes = 64});
  auto same = toroid::make_grid(comm.split(0), {});
  static_assert(std::is_same_v<decltype(same), toroid::flat_grid<Communicator>>);
  demand(same.rows() * same.columns() == comm.size() && same.rows() <= same.columns(), "a grid of its own choice");
  grid_sums::check_bits(same, comm, 500);
  const auto refused = [&](toroid::grid_shape wrong) {
    demand_words(text_of<toroid::usage_error>([&] { (void)toroid::make_grid(comm, wrong); }), "does not fit");
  };
  refused({.rows = form.rows + 1, .columns = form.columns});
  refused({.rows = form.rows, .columns = -form.columns});
  refused({.rows = comm.size() + 1});
  refused({.rows = -form.rows, .columns = -form.columns});
  const auto other = toroid::torus_2d{.rows = form.rows + 1};
  std::vector<int> values(3);
  demand_words(text_of<toroid::usage_error>([&] { toroid::all_reduce(grid, values, other); }), "torus_2d of");
}

template <class Communicator>
void over_two(Communicator& comm, shape form) {
  const int row_number = comm.rank() / form.columns, column_number = comm.rank() % form.columns;
  auto row = comm.split(row_number), column = comm.split(column_number);
  {
    auto grid = toroid::make_grid(row, column);
    static_assert(std::is_same_v<decltype(grid), toroid::grid<Communicator&, Communicator&>>);
    grid_sums::check_place(grid, row_number, column_number, form.rows, form.columns);
    demand(!grid.ragged(), "ragged");
    grid_sums::check(grid, comm, form.columns);
  }
  auto turned = toroid::make_grid(std::move(column), std::move(row));
  static_assert(std::is_same_v<decltype(turned), toroid::grid<Communicator, Communicator>>);
  grid_sums::check_place(turned, column_number, row_number, form.columns, form.rows);
  grid_sums::check_bits(turned, comm, 1000);
}

/// Rows of processes' threads, columns of processes.
void over_threads_and_processes(shape form) {
  const toroid::options chosen{.region_bytes = 4096};
  support::run_processes_in_groups(form.columns + 1, form.rows, chosen, [&](auto& columns) {
    const auto memory = std::make_shared<toroid::transport::threads::shared_memory>(form.columns, 4096);
    toroid::detail::first_error first;
    std::vector<std::thread> threads;
    for (int j = 0; j < form.columns; ++j)
      threads.emplace_back([&, j] {
        try {
          toroid::communicator<toroid::transport::threads> row(
              toroid::transport::threads(j, memory, toroid::detail::waiting_of(form.columns, chosen)), chosen);
          auto& column = columns[static_cast<std::size_t>(j)];
          auto grid = toroid::make_grid(row, column);
          grid_sums::check_place(grid, column.rank(), j, form.rows, form.columns);
          for (const std::size_t count : grid_sums::counts(form.columns, form.rows * form.columns))
            grid_sums::check_sum(grid, count);
        } catch (...) {
          first.note(std::current_exception());
          for (auto& column : columns) column.abort();
        }
      });
    for (std::thread& thread : threads) thread.join();
    first.rethrow();
  });
}

/// Rank r stands in row `rows[r]`, in the order of ranks.
template <class Communicator>
void over_rows(Communicator& comm, const std::vector<int>& rows, bool ragged) {
  const int mine = rows[static_cast<std::size_t>(comm.rank())];
  std::vector<int> seen;  // rows in the order of their first ranks
  int column = 0, length = 0, before = 0;
  for (const int row : rows) {
    bool known = false;
    for (const int other : seen) known = known || other == row;
    if (!known) seen.push_back(row);
  }
  int number = 0;
  while (seen[static_cast<std::size_t>(number)] != mine) ++number;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r] == mine) column += static_cast<int>(r) < comm.rank() ? 1 : 0, ++length;
    for (int k = 0; k < number; ++k) before += rows[r] == seen[static_cast<std::size_t>(k)] ? 1 : 0;
  }
  const auto check = [&](auto& grid) {
    demand(grid.ragged() == ragged, ragged ? "not ragged" : "ragged");
    demand(grid.row() == number && grid.column() == column && grid.columns() == length, "rank ", comm.rank(),
           " stands at ", grid.row(), ", ", grid.column(), " of ", grid.columns());
    demand(grid.rank() == before + column && grid.size() == comm.size(), "rank ", comm.rank(), " is number ",
           grid.rank(), " of ", grid.size());
    demand(grid.rows() == static_cast<int>(seen.size()), grid.rows(), " rows");
    grid_sums::check(grid, comm, 2);  // the same counts on all ranks
  };
  auto chosen = toroid::make_grid_of_rows(comm, mine);
  check(chosen);
  if (!ragged) return;
  auto row = comm.split(mine);
  auto leaders = comm.split(row.rank() == 0 ? toroid::colour(0) : toroid::no_group);
  auto grid = toroid::make_grid(row, leaders);
  check(grid);
}

/// What each rank names as its row and its column, and its place in them.
struct arrangement {
  const char* words;
  std::vector<int> rows, columns;          ///< colours; -1: none
  std::vector<int> row_keys, column_keys;  ///< empty: in the order of ranks
};

template <class Communicator>
void refuse(Communicator& comm, const arrangement& wrong) {
  const std::size_t rank = static_cast<std::size_t>(comm.rank());
  const auto group = [&](const std::vector<int>& colours, const std::vector<int>& keys) {
    return comm.split(colours[rank] < 0 ? toroid::colour(toroid::no_group) : toroid::colour(colours[rank]),
                      keys.empty() ? 0 : keys[rank]);
  };
  auto row = group(wrong.rows, wrong.row_keys), column = group(wrong.columns, wrong.column_keys);
  const std::string text = text_of<toroid::usage_error>([&] { (void)toroid::make_grid(row, column); });
  demand_words(text, "make_grid", wrong.words);
  toroid::barrier(row);  // nothing is broken
  if (column) toroid::barrier(column);
  toroid::barrier(comm);
}

template <class Communicator>
void spread_a_failure(Communicator& comm, bool ragged) {
  auto grid = ragged ? toroid::make_grid_of_rows(comm, comm.rank() == 0 ? 0 : comm.rank() / 2)
                     : toroid::make_grid_of_rows(comm, comm.rank() / 3);
  grid_sums::check_sum(grid, 1000);
  if (comm.rank() == 0) grid.along_row().abort();
  std::vector<int> values(5000, 1);
  for (int i = 0; i < 2; ++i)
    (void)text_of<toroid::peer_lost>([&] {
      toroid::all_reduce(grid, values);
      toroid::all_reduce(grid, values);
    });
  toroid::barrier(comm);
}

template <class Communicator>
void check_arguments(Communicator& comm) {
  auto row = comm.split(comm.rank() / 2), column = comm.split(comm.rank() % 2);
  auto grid = toroid::make_grid(row, column);
  std::vector<int> values(10, 1), fewer(9);
  demand_words(text_of<toroid::usage_error>([&] { toroid::all_reduce(grid, values, fewer); }), "10", "9");
  const std::span<int> all(values);
  demand_words(text_of<toroid::usage_error>([&] { toroid::all_reduce(grid, all.first(6), all.subspan(2, 6)); }),
               "overlap");
  const std::span<int> nothing(static_cast<int*>(nullptr), 4);
  demand_words(text_of<toroid::usage_error>([&] { toroid::all_reduce(grid, nothing); }), "null");
  toroid::all_reduce(grid, nothing.first(0));
  toroid::all_reduce(grid, values);
  for (const int value : values) demand(value == 4, value);
  auto moved = std::move(row);
  demand_words(text_of<toroid::usage_error>([&] { toroid::all_reduce(grid, values); }), "moved from");
}

/// Sums that are not whole numbers are divided once, at the end.
template <class Communicator>
void average(Communicator& comm, bool ragged) {
  auto grid = toroid::make_grid_of_rows(comm, ragged ? comm.rank() == 5 : comm.rank() / 3);
  std::vector<double> values(100);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(comm.rank() + 1) * (i % 7 == 0 ? 1 : 3);
  toroid::all_reduce(grid, values, toroid::average{});
  for (std::size_t i = 0; i < values.size(); ++i)
    demand(values[i] == (i % 7 == 0 ? 21.0 : 63.0) / 6, "average ", i, " is ", values[i]);
  std::vector<int> mine(7, comm.rank());
  toroid::all_reduce(grid, mine, toroid::maximum{});
  for (const int value : mine) demand(value == 5, "a maximum of ", value);
  toroid::all_reduce(grid, mine, toroid::commutative([](int a, int b) { return a < b ? a : b; }));
  for (const int value : mine) demand(value == 5, "a minimum of ", value);
}

}  // namespace

TEST_CASE("A grid over one communicator is its torus", "[grid]") {
  for (const shape form : shapes) {
    INFO(form.rows << " x " << form.columns);
    support::run_threads(form.rows * form.columns, [&](auto& comm) { over_one(comm, form); }, {.region_bytes = 8192});
  }
  support::run_processes(6, [&](auto& comm) { over_one(comm, {2, 3}); });
}

TEST_CASE("A grid of two communicators sums right on all shapes, with the same bits everywhere", "[grid]") {
  for (const shape form : shapes) {
    INFO(form.rows << " x " << form.columns);
    support::run_threads(form.rows * form.columns, [&](auto& comm) { over_two(comm, form); }, {.region_bytes = 8192});
  }
  support::run_processes(6, [&](auto& comm) { over_two(comm, {2, 3}); });
}

TEST_CASE("A grid has threads along its rows and processes along its columns", "[grid]") {
  for (const shape form : {shape{2, 2}, shape{2, 3}, shape{3, 1}, shape{1, 3}}) {
    INFO(form.rows << " x " << form.columns);
    over_threads_and_processes(form);
  }
}

TEST_CASE("Rows of different length are joined by their first ranks, and all ranks know", "[grid]") {
  const std::vector<std::vector<int>> ragged = {{0, 0, 0, 1}, {0, 0, 1, 1, 2}, {7, 3, 7, 3, 3, -1, 7, 7}, {1, 0, 0}};
  const std::vector<std::vector<int>> even = {{0, 0, 1, 1}, {0, 1, 1, 0}, {2, 2}, {1, 2, 3}, {5}, {4, 9, 4, 9, 2, 2}};
  for (const std::vector<int>& rows : ragged)
    support::run_both(static_cast<int>(rows.size()), [&](auto& comm) { over_rows(comm, rows, true); });
  for (const std::vector<int>& rows : even)
    support::run_both(static_cast<int>(rows.size()), [&](auto& comm) { over_rows(comm, rows, false); });
}

TEST_CASE("Rows and columns that are no grid are refused on all ranks", "[grid]") {
  const std::vector<arrangement> wrong = {
      {"ranks", {0, 0, 0, 1, 1}, {0, 1, 2, 0, 1}, {}, {}},  // 3 + 2, with columns
      {"", {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 0}, {}},   // a row turned round
      {"", {0, 0, 1, 1}, {0, 1, 0, 1}, {}, {0, 0, 1, -1}},  // a column turned round
      {"different rows", {0, 0, 1, 1, 2, 2, 3, 3}, {0, 1, 0, 2, 3, 2, 3, 1}, {}, {0, 0, 1, 1, 0, 0, 1, 1}},
      {"", {0, 0, 0, 0}, {0, 0, 0, 0}, {}, {}},                        // the same twice
      {"columns of", {0, 0, 1, 1}, {0, 1, 0, -1}, {}, {}},             // one form and the other
      {"have one", {0, 0, 1, 1}, {-1, 0, -1, 0}, {}, {}},              // the last of a row
      {"have one", {0, 0, 0, 1, 1, 1}, {0, 1, -1, 0, 1, -1}, {}, {}},  // two of three
  };
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    INFO("arrangement " << i);
    support::run_both(static_cast<int>(wrong[i].rows.size()), [&](auto& comm) { refuse(comm, wrong[i]); });
  }
  support::run_threads(3, [](auto& comm) {
    const auto row = comm.rank() == 1 ? toroid::colour(toroid::no_group) : toroid::colour(0);
    demand_words(text_of<toroid::usage_error>([&] { (void)toroid::make_grid_of_rows(comm, row); }), "no_group");
    toroid::barrier(comm);
  });
}

TEST_CASE("A failure in one row or column reaches all ranks of a grid", "[grid]") {
  support::run_both(9, [](auto& comm) { spread_a_failure(comm, false); });
  support::run_threads(7, [](auto& comm) { spread_a_failure(comm, true); });
}

TEST_CASE("Arguments of a sum on a grid are refused before anything moves", "[grid]") {
  support::run_threads(4, [](auto& comm) { check_arguments(comm); });
}

TEST_CASE("Operators on a grid", "[grid]") {
  support::run_threads(6, [](auto& comm) { average(comm, false), average(comm, true); });
}
