// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/colour.hpp>
#include <toroid/communicator/communicator.hpp>
#include <toroid/communicator/grid_set_up.hpp>
#include <toroid/core/call_site.hpp>
#include <toroid/core/error.hpp>
#include <toroid/topology/grid.hpp>

#include <cstddef>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace toroid {

/// The shape of a grid.
struct grid_shape {
  int rows = 0;     ///< zero: chosen
  int columns = 0;  ///< zero: chosen
};

/// The ranks of one communicator as a grid, row after row. Made by make_grid.
///
/// @tparam C  a communicator that the grid owns, or a reference to one that it borrows
template <class C>
class flat_grid {
 public:
  flat_grid(C&& comm, topology::grid shape) : m_comm(std::forward<C>(comm)), m_shape(shape) {}

  int rank() const noexcept { return m_comm.rank(); }
  int size() const noexcept { return m_comm.size(); }
  int row() const noexcept { return m_shape.row_of(rank()); }
  int column() const noexcept { return m_shape.column_of(rank()); }
  int rows() const noexcept { return m_shape.rows; }
  int columns() const noexcept { return m_shape.columns; }
  /// The communicator of all ranks.
  std::remove_reference_t<C>& all() noexcept { return m_comm; }

 private:
  C m_comm;
  topology::grid m_shape;
};

/// A grid of two communicators, each with a transport of its own: one joins the ranks of a row, the other those of a
/// column. Or, if the rows have different lengths, the first ranks of all rows. Made by make_grid.
///
/// @tparam Row,Column  communicators that the grid owns, or references to those that it borrows
template <class Row, class Column>
class grid {
 public:
  grid(Row&& row, Column&& column, const detail::grid_place& place)
      : m_row(std::forward<Row>(row)), m_column(std::forward<Column>(column)), m_place(place) {}

  /// Ranks are counted row after row.
  int rank() const noexcept { return m_place.rank; }
  int size() const noexcept { return m_place.size; }
  int row() const noexcept { return m_place.row; }
  int column() const noexcept { return m_place.column; }
  int rows() const noexcept { return m_place.rows; }
  /// Ranks of this rank's row.
  int columns() const noexcept { return m_place.columns; }
  /// Whether only the first ranks of rows are joined: the same on all ranks.
  bool ragged() const noexcept { return m_place.ragged; }
  /// The communicator of this rank's row.
  std::remove_reference_t<Row>& along_row() noexcept { return m_row; }
  /// The communicator of this rank's column; if ragged(), of the first ranks of all rows, and empty on the others.
  std::remove_reference_t<Column>& along_column() noexcept { return m_column; }

 private:
  Row m_row;
  Column m_column;
  detail::grid_place m_place;
};

namespace detail {

template <class T>
inline constexpr bool is_flat_grid = false;
template <class C>
inline constexpr bool is_flat_grid<flat_grid<C>> = true;
template <class T>
inline constexpr bool is_grid_of_two = false;
template <class Row, class Column>
inline constexpr bool is_grid_of_two<grid<Row, Column>> = true;

}  // namespace detail

/// Sees the ranks of a communicator as a grid, so that collectives run along its rows and columns.
///
/// @tparam C  a communicator: one that is named is borrowed and has to outlive the grid, a temporary one is owned
/// @param shape  the same on all ranks; without rows and columns the grid nearest to a square, with one of both the
///               other follows
/// @throws usage_error  if rows times columns is not the number of ranks: on all ranks, which all find it by themselves
///
/// Cost: none. Ranks that give different shapes get a mismatch_error in their first call.
///
///     auto grid = toroid::make_grid(comm, {.rows = 2, .columns = 3});
///     toroid::all_reduce(grid, gradient);
template <group C>
flat_grid<C> make_grid(C&& comm, const grid_shape& shape, call_site at = call_site::current()) {
  (void)detail::access::session(comm);  // must not be empty
  const topology::grid found = topology::fitting(shape.rows, shape.columns, comm.size());
  if (found.rows == 0)
    throw usage_error(std::string("toroid: make_grid at ") + at.file + ":" + std::to_string(at.line) + ": a grid of " +
                      std::to_string(shape.rows) + " rows and " + std::to_string(shape.columns) +
                      " columns does not fit " + std::to_string(comm.size()) + " ranks");
  return {std::forward<C>(comm), found};
}

/// Joins two communicators of each rank into a grid: its row, whose ranks are fast to reach, and its column.
///
/// A rank has the same number in its row as all ranks of its column have in theirs, and the other way round. Rows may
/// be of different length if only their first ranks have a column, and the others an empty communicator. Which of the
/// two forms it is, all ranks agree on.
///
/// @tparam Row,Column  communicators, over any transports: those that are named are borrowed and have to outlive the
///                     grid, temporary ones are owned
/// @throws usage_error  on all ranks, if rows and columns are no grid; if the row is empty, on the rank that has it
/// @throws mismatch_error, timeout_error, peer_lost  both communicators are broken then
///
/// Cost: two exchanges of some hundred bytes along the row, one along the column. Collective over all rows and columns.
///
///     auto row = comm.split(comm.rank() / 4), column = comm.split(comm.rank() % 4);
///     auto grid = toroid::make_grid(row, column);
template <group Row, group Column>
grid<Row, Column> make_grid(Row&& row, Column&& column, call_site at = call_site::current()) {
  detail::grid_place place;
  try {
    place = detail::grid_set_up(row, column, at).run();
  } catch (const usage_error&) {
    throw;
  } catch (const std::exception& e) {
    detail::fail_both(row, column, e.what());
    throw;
  }
  return {std::forward<Row>(row), std::forward<Column>(column), place};
}

/// Makes a grid whose rows are the ranks of one colour: those of one host, say. If all rows are equally long it has
/// columns; if not, only the first ranks of rows are joined. So all ranks choose the same.
///
/// @param comm  the ranks of the grid; it is not needed afterwards
/// @param row   any integer; not no_group
/// @throws usage_error  on all ranks, if one names no_group; what split() and make_grid() throw
///
/// Cost: that of two calls of split(), of an exchange more, and of make_grid(). Collective.
///
///     auto grid = toroid::make_grid_of_rows(comm, host_number);
template <class Transport>
grid<communicator<Transport>, communicator<Transport>> make_grid_of_rows(communicator<Transport>& comm,
                                                                         const colour& row,
                                                                         call_site at = call_site::current()) {
  detail::call_identity identity;
  identity.collective = detail::collective_kind::make_grid;
  identity.at = at;
  const std::vector<colour> rows = detail::exchange(detail::access::session(comm), identity, row);
  const auto length_of = [&](const colour& which) {
    std::size_t length = 0;
    for (const colour& other : rows) length += which.joins(other) ? 1U : 0U;
    return length;
  };
  bool equal = true;
  for (const colour& one : rows) {
    if (one.is_none())
      throw usage_error(std::string("toroid: make_grid_of_rows at ") + at.file + ":" + std::to_string(at.line) +
                        ": each rank needs a row, and one has named no_group");
    equal = equal && length_of(one) == length_of(rows.front());
  }
  int first = 0;  // of the own row
  while (!row.joins(rows[static_cast<std::size_t>(first)])) ++first;
  communicator<Transport> along_row = comm.split(row, comm.rank(), at);
  const colour place = equal ? colour(along_row.rank()) : along_row.rank() == 0 ? colour(0) : colour(no_group);
  communicator<Transport> along_column = comm.split(place, first, at);
  return make_grid(std::move(along_row), std::move(along_column), at);
}

}  // namespace toroid
