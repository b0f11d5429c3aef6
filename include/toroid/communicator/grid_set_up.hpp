// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/communicator.hpp>
#include <toroid/communicator/exchange.hpp>
#include <toroid/communicator/split.hpp>
#include <toroid/core/call_site.hpp>
#include <toroid/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

/// How the ranks of a grid make sure that their rows and columns are one.
namespace toroid::detail {

/// Where a rank stands in a grid, and which form it has.
struct grid_place {
  int rank = 0, size = 1;  ///< row after row
  int row = 0, rows = 1;
  int column = 0, columns = 1;  ///< of the own row
  bool ragged = false;          ///< rows of different length: only their first ranks meet
};

/// What a row can be a part of. One of a single rank that has a column fits either.
enum class row_form : std::int32_t { either, full, leaders, neither };

inline std::uint64_t mixed(std::uint64_t word) noexcept {
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
  word = (word ^ word >> 27) * 0x94d049bb133111ebu;
  return word ^ word >> 31;
}

/// Settles a grid in three exchanges: along the row, along the column, along the row.
///
/// In the first a row learns which form it can have. In the second, those that share a column compare their rows, and
/// know all of them by numbers drawn at random. In the third, the ranks of a row compare what their columns have found.
/// A row that finds nothing wrong is part of a whole grid: all its columns cross the same rows, each of these has as
/// many ranks as there are columns, so nobody else is connected with it. So either all ranks agree, or none does.
template <class Row, class Column>
class grid_set_up {
 public:
  /// @param column  empty where the rank has none
  grid_set_up(communicator<Row>& row, communicator<Column>& column, call_site at) : m_row(row), m_column(column) {
    m_identity.collective = collective_kind::make_grid;
    m_identity.at = at;
    m_title = std::string("toroid: make_grid at ") + at.file + ":" + std::to_string(at.line) + ": ";
  }

  /// @throws usage_error  on all ranks, if rows and columns are no grid; what an exchange throws
  grid_place run() {
    (void)access::session(m_row);  // must not be empty
    ask_row();
    if (m_column) ask_column();
    return conclude();
  }

 private:
  struct member {
    std::uint64_t id = 0;
    std::int32_t has_column = 0, column_rank = 0, column_size = 0;
    outcome part{};
  };
  struct crossing {
    std::uint64_t row = 0;  ///< the number of its first rank
    std::int32_t place = 0, length = 0;
    row_form form = row_form::neither;
    outcome part{};
  };
  struct finding {
    std::uint64_t rows = 0;  ///< all numbers of rows, in order
    grid_place place{};
    outcome part{};
  };

  void ask_row() {
    member mine;
    mine.part = outcome::of([&] { mine.id = random_number("make_grid"); });
    mine.has_column = static_cast<bool>(m_column) ? 1 : 0;
    if (m_column) mine.column_rank = m_column.rank(), mine.column_size = m_column.size();
    const std::vector<member> all = exchange(access::session(m_row), m_identity, mine);
    m_row_id = all.front().id;
    m_so_far = outcome::of([&] {
      all_or_none(all, m_row.rank());
      m_form = form_of(all);
    });
  }

  row_form form_of(const std::vector<member>& all) const {
    std::size_t with_column = 0;
    for (const member& one : all) with_column += one.has_column != 0 ? 1 : 0;
    if (with_column == 1 && all.front().has_column != 0) return all.size() == 1 ? row_form::either : row_form::leaders;
    if (with_column != all.size())
      throw usage_error(m_title + "in a row, either all ranks have a column, or the first alone; here " +
                        std::to_string(with_column) + " of " + std::to_string(all.size()) + " have one");
    for (const member& one : all) {
      if (one.column_size != all.front().column_size)
        throw usage_error(m_title + "columns of " + std::to_string(all.front().column_size) + " and " +
                          std::to_string(one.column_size) + " ranks cross one row");
      if (one.column_rank != all.front().column_rank)
        throw usage_error(m_title + "a row is number " + std::to_string(all.front().column_rank) +
                          " in one column and " + std::to_string(one.column_rank) + " in another");
    }
    return row_form::full;
  }

  void ask_column() {
    crossing mine;
    mine.row = m_row_id;
    mine.place = m_row.rank();
    mine.length = m_row.size();
    mine.form = m_form;
    mine.part = m_so_far;
    const std::vector<crossing> all = exchange(access::session(m_column), m_identity, mine);
    if (m_so_far.how == outcome::kind::fine)
      m_so_far = outcome::of([&] {
        all_or_none(all, m_column.rank());
        compare(all);
      });
  }

  void compare(const std::vector<crossing>& all) {
    row_form form = row_form::either;
    for (const crossing& one : all) {
      if (one.form == row_form::either) continue;
      if (form != row_form::either && one.form != form)
        throw usage_error(m_title + "all ranks of some rows have columns, and only the first of others");
      form = one.form;
    }
    m_place.ragged = form == row_form::leaders;
    m_place.row = m_column.rank();
    m_place.rows = m_column.size();
    m_place.size = 0;
    for (std::size_t r = 0; r < all.size(); ++r) {
      const crossing& one = all[r];
      if (one.place != m_row.rank())
        throw usage_error(m_title + "a column meets one row at its rank " + std::to_string(m_row.rank()) +
                          ", and another at its rank " + std::to_string(one.place));
      if (!m_place.ragged && one.length != m_row.size())
        throw usage_error(m_title + "rows of " + std::to_string(m_row.size()) + " and " + std::to_string(one.length) +
                          " ranks; unequal ones can only be joined by their first ranks");
      if (static_cast<int>(r) == m_place.row) m_place.rank = m_place.size;
      m_place.size += one.length;
      m_rows = mixed(m_rows + one.row);
    }
  }

  grid_place conclude() {
    finding mine;
    mine.rows = m_rows;
    mine.place = m_place;
    mine.part = m_so_far;
    const std::vector<finding> all = exchange(access::session(m_row), m_identity, mine);
    all_or_none(all, m_row.rank());
    if (m_form == row_form::full)
      for (const finding& one : all)
        if (one.rows != all.front().rows) throw usage_error(m_title + "two columns of a row cross different rows");
    grid_place place = all.front().place;
    place.rank += m_row.rank();
    place.column = m_row.rank();
    place.columns = m_row.size();
    return place;
  }

  communicator<Row>& m_row;
  communicator<Column>& m_column;
  call_identity m_identity{};
  std::string m_title;
  std::uint64_t m_row_id = 0;
  std::uint64_t m_rows = 0;
  row_form m_form = row_form::neither;
  grid_place m_place{};
  outcome m_so_far{};
};

/// Breaks both communicators of a grid because one of them has failed a rank: so all others learn of it.
template <class Row, class Column>
void fail_both(communicator<Row>& row, communicator<Column>& column, const char* why) noexcept {
  try {
    const std::string text = std::string("a rank of the grid has failed: ") + why;
    if (row) access::session(row).fail(text);
    if (column) access::session(column).fail(text);
  } catch (...) {  // no memory for a text
    row.abort();
    column.abort();
  }
}

}  // namespace toroid::detail
