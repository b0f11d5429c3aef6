// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/algorithms.hpp>
#include <toroid/collective/all_gather.hpp>
#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/broadcast.hpp>
#include <toroid/collective/detail/policies.hpp>
#include <toroid/collective/detail/prepare.hpp>
#include <toroid/collective/reduce_scatter.hpp>
#include <toroid/communicator/grid.hpp>
#include <toroid/core/buffer.hpp>
#include <toroid/core/call_site.hpp>
#include <toroid/core/detail/element_access.hpp>
#include <toroid/core/operators.hpp>
#include <toroid/topology/block.hpp>

#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <type_traits>

namespace toroid {

/// A grid of one communicator or of two, as make_grid makes them.
template <class G>
concept rank_grid = (detail::is_flat_grid<std::remove_cvref_t<G>> ||
                     detail::is_grid_of_two<std::remove_cvref_t<G>>)&&!std::is_const_v<std::remove_reference_t<G>>;

namespace detail {

/// Over one communicator: its torus, in the shape of the grid.
template <class C, class T, class First, class Second>
void all_reduce(flat_grid<C>& grid, std::span<const T> in, std::span<T> out, const First& first, const Second& second,
                call_site at) {
  using policies = chosen_policies<std::decay_t<First>, std::decay_t<Second>>;
  constexpr bool says_how = is_algorithm<std::decay_t<First>> || is_algorithm<std::decay_t<Second>>;
  static_assert(!says_how || std::is_same_v<typename policies::algorithm, torus_2d>,
                "toroid: a grid is reduced by torus_2d; for other algorithms pass its communicator, grid.all()");
  const policies given = policies::of(first, second);
  torus_2d how{grid.rows(), grid.columns()};
  if constexpr (says_how) {
    how.segment_bytes = given.how.segment_bytes;
    if ((given.how.rows != 0 && given.how.rows != how.rows) ||
        (given.how.columns != 0 && given.how.columns != how.columns))
      refuse(collective_kind::all_reduce, at,
             "torus_2d of " + std::to_string(given.how.rows) + " rows and " + std::to_string(given.how.columns) +
                 " columns on a grid of " + std::to_string(how.rows) + " and " + std::to_string(how.columns));
  }
  toroid::all_reduce(grid.all(), in, out, given.combine, how, at);
}

/// The sum of all ranks becomes their average, rounded once.
template <class T>
void divide_all(std::span<T> totals, int contributions) {
  std::byte* const begin = reinterpret_cast<std::byte*>(totals.data());  // of any alignment
  for (std::size_t i = 0; i < totals.size(); ++i) {
    std::byte* const at = begin + i * sizeof(T);
    store_element(at, average::divide(load_element<T>(at), contributions));
  }
}

template <class Operation>
const Operation& before_division(const Operation& op) noexcept {
  return op;
}
inline sum before_division(const average&) noexcept { return {}; }

/// Along the row to blocks, along the column, along the row to whole vectors; or by the first ranks of rows.
template <class Row, class Column, class T, class Operation>
void reduce_along_axes(grid<Row, Column>& grid, std::span<const T> in, std::span<T> out, const Operation& op,
                       call_site at) {
  auto& row = grid.along_row();
  auto& column = grid.along_column();
  constexpr bool averages = std::is_same_v<Operation, average>;
  const auto& combine = before_division(op);
  if (grid.ragged()) {
    toroid::all_reduce(row, in, out, combine, automatic{}, at);
    if (column) {
      toroid::all_reduce(column, out, combine, automatic{}, at);
      if constexpr (averages) divide_all(out, grid.size());
    }
    toroid::broadcast(row, out, 0, automatic{}, at);
    return;
  }
  const block own = block_of(out.size(), grid.columns(), grid.column());
  const std::span<T> mine = out.subspan(own.begin, own.count);
  toroid::reduce_scatter(row, in, mine, combine, automatic{}, at);
  toroid::all_reduce(column, mine, combine, automatic{}, at);
  if constexpr (averages) divide_all(mine, grid.size());
  toroid::all_gather(row, mine, out, automatic{}, at);
}

template <class Row, class Column, class T, class First, class Second>
void all_reduce(grid<Row, Column>& grid, std::span<const T> in, std::span<T> out, const First& first,
                const Second& second, call_site at) {
  using policies = chosen_policies<std::decay_t<First>, std::decay_t<Second>>;
  static_assert(!is_algorithm<std::decay_t<First>> && !is_algorithm<std::decay_t<Second>>,
                "toroid: a grid of two communicators takes no algorithm");
  check_policies<T, typename policies::operation, torus_2d>();
  const policies given = policies::of(first, second);
  // All that can be refused, before the first of several steps.
  call_identity identity;
  identity.collective = collective_kind::all_reduce;
  identity.at = at;
  check_span(in, "the input", identity);
  check_span(out, "the result", identity);
  if (in.size() != out.size())
    refuse(identity.collective, at,
           "the input has " + std::to_string(in.size()) + " elements, the result " + std::to_string(out.size()));
  check_overlap(in.data(), in.size_bytes(), out.data(), out.size_bytes(), 0, identity);
  (void)access::session(grid.along_row());  // must not be empty
  try {
    reduce_along_axes(grid, in, out, given.combine, at);
  } catch (const std::exception& e) {
    fail_both(grid.along_row(), grid.along_column(), e.what());
    throw;
  } catch (...) {
    fail_both(grid.along_row(), grid.along_column(), "its operator has thrown");
    throw;
  }
}

}  // namespace detail

/// Combines the vectors of all ranks of a grid, element by element, and leaves the result on every rank; in place.
///
/// Over one communicator it is the algorithm torus_2d. Over two it is a reduce_scatter along the row, an all_reduce of
/// the own block along the column, and an all_gather along the row; where rows have different lengths, an all_reduce
/// along each row, one among their first ranks, and a broadcast along each row. The result is the same, bit for bit, on
/// all ranks. Determinism: run_to_run, for a given grid.
///
/// @tparam G  a grid
/// @tparam B  a contiguous range of elements
/// @param grid    all its ranks make the same call
/// @param buffer  in: this rank's vector; out: the combined one. Any alignment; the same number of elements on all
///                ranks, possibly none.
/// @param first,second  an operator that commutes (default `sum`); over one communicator also a torus_2d, for the sake
///                      of its segment_bytes
/// @throws usage_error  for a null buffer with elements, or a torus_2d of another shape; nothing has moved then
/// @throws mismatch_error, timeout_error, peer_lost  the communicators of the grid are broken then, also those that the
///         error did not come from, so that all ranks learn of it; over two, so too with what check::data finds. The
///         buffer's content is undefined.
///
/// Cost on X columns and Y rows for S bytes: over one communicator see torus_2d; over two, 2 (X - 1)/X S bytes a rank
/// along the row and 2 (Y - 1)/Y S/X along the column. Collective; one thread at a time per communicator.
///
///     auto grid = toroid::make_grid(row, column);
///     toroid::all_reduce(grid, gradient, toroid::average{});
template <rank_grid G, any_range B, policy First = detail::not_given, policy Second = detail::not_given>
void all_reduce(G&& grid, B&& buffer, const First& first = {}, const Second& second = {},
                call_site at = call_site::current()) {
  detail::check_output<B>();
  const auto elements = detail::as_span(buffer);
  using T = typename decltype(elements)::element_type;
  detail::all_reduce(grid, std::span<const T>(elements), elements, first, second, at);
}

/// The same, out of place: the input stays as it is.
///
/// @param in   in: this rank's vector
/// @param out  out: the combined one; as many elements as `in`; the same memory or apart, not overlapping in part
/// @throws usage_error  also for different lengths and for partial overlap
template <rank_grid G, any_range I, any_range O, policy First = detail::not_given, policy Second = detail::not_given>
void all_reduce(G&& grid, I&& in, O&& out, const First& first = {}, const Second& second = {},
                call_site at = call_site::current()) {
  detail::check_buffer<I>();
  detail::check_output<O>();
  detail::check_same_elements<I, O>();
  const auto result = detail::as_span(out);
  using T = typename decltype(result)::element_type;
  detail::all_reduce(grid, std::span<const T>(detail::as_span(in)), result, first, second, at);
}

}  // namespace toroid
