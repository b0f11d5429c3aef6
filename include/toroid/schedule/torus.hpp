// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>
#include <toroid/schedule/compose.hpp>
#include <toroid/schedule/determinism.hpp>
#include <toroid/schedule/layout.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/schedule/ring.hpp>
#include <toroid/topology/grid.hpp>
#include <toroid/topology/ring.hpp>

/// Rings along the rows and the columns of a grid of ranks.
///
/// A grid of X columns and Y rows has N = X Y ranks. Whatever is first reduced along rows is cut into X blocks of Y
/// blocks each; what is first reduced along columns the other way round.
namespace toroid::schedule {

/// The ranks of this rank's row, from left to right.
struct along_row {
  TOROID_HOST_DEVICE static constexpr problem line(problem p) noexcept {
    return {p.grid().column_of(p.rank), p.grid().columns};
  }
  TOROID_HOST_DEVICE static constexpr int rank_at(problem p, int index) noexcept {
    return p.grid().rank_at(p.grid().row_of(p.rank), index);
  }
};

/// The ranks of this rank's column, from top to bottom.
struct along_column {
  TOROID_HOST_DEVICE static constexpr problem line(problem p) noexcept {
    return {p.grid().row_of(p.rank), p.grid().rows};
  }
  TOROID_HOST_DEVICE static constexpr int rank_at(problem p, int index) noexcept {
    return p.grid().rank_at(index, p.grid().column_of(p.rank));
  }
};

/// The same line, from its other end: rings turn the other way.
template <class Line>
struct backwards {
  TOROID_HOST_DEVICE static constexpr problem line(problem p) noexcept {
    const problem forwards = Line::line(p);
    return {forwards.ranks - 1 - forwards.rank, forwards.ranks};
  }
  TOROID_HOST_DEVICE static constexpr int rank_at(problem p, int index) noexcept {
    return Line::rank_at(p, Line::line(p).ranks - 1 - index);
  }
};

/// Peers on a line, one or two, as ranks of the whole.
template <class Line>
TOROID_HOST_DEVICE constexpr peers across(problem p, const peers& set) noexcept {
  const int length = Line::line(p).ranks;
  const int first = Line::rank_at(p, set.at(0, length));
  return set.count == 1 ? only(first) : both(first, Line::rank_at(p, set.at(1, length)));
}

/// An operation on a line as one of the whole: each of its blocks stands for `size` blocks, counted from `origin`.
template <class Line>
TOROID_HOST_DEVICE constexpr operation across(problem p, operation op, int origin, int size) noexcept {
  op.from = across<Line>(p, op.from);
  op.to = across<Line>(p, op.to);
  op.blocks = {origin + op.blocks.first * size, op.blocks.count * size};
  return op;
}

/// Reduce-scatter along one line, then along the other, of the block that the first has left on the rank. The sums of
/// the first line wait in the own result for the second to come round, so it is for an all-reduce.
///
/// @tparam Scatter  a reduce-scatter between neighbours: every step is one operation with at most one peer on each
/// side;
///                  the first announces the block before the own one, the last leaves the own block
template <class Scatter, class First, class Second>
struct grid_reduce_scatter {
  static constexpr bool pipelined = true;
  static constexpr bool one_value_a_step = false;
  static constexpr bool sends_partial_values = true;
  static constexpr determinism level = Scatter::level;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks - 1, p.ranks}; }
  TOROID_HOST_DEVICE static constexpr int blocks(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr int steps(problem p) noexcept {
    return lines::steps(First::line(p), Second::line(p));
  }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    const bool turns = First::line(p).ranks > 1 && step == lines::meeting(First::line(p));
    return turns ? Second::line(p).ranks : 1;
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    const problem first = First::line(p), second = Second::line(p);
    const int meeting = lines::meeting(first), origin = first.rank * second.ranks;
    if (step < meeting) return across<First>(p, Scatter::at(first, step, 0), 0, second.ranks);
    operation next = across<Second>(p, Scatter::at(second, step - meeting, 0), origin, 1);
    if (first.ranks == 1) return next;  // nothing was summed: operands are still inputs
    if (step > meeting) {
      next.own = place::delivered;
      next.theirs = place::slot;
      return next;
    }
    // Where they turn, each block goes its own way: the first one on, the others to where they will be operands.
    operation op = across<First>(p, Scatter::at(first, step, 0), 0, second.ranks);
    op.blocks = {origin + topology::wrap(next.blocks.first - origin + index - second.ranks, second.ranks), 1};
    op.completes = next.completes;
    op.to = index == 0 ? next.to : only(p.rank);
    op.at = index == 0 && !next.completes ? place::slot : place::delivered;
    return op;
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem p) noexcept {
    return lines::class_count(First::line(p), Second::line(p));
  }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem p, int index) noexcept {
    return lines::class_at(First::line(p), Second::line(p), index);
  }

 private:
  using lines = in_succession<Scatter, Scatter>;
};

/// All-gather along the second line, then along the first.
///
/// @tparam Gather  an all-gather between neighbours: every step is one operation with at most one peer on each side;
///                 the first keeps the own block and sends it on, the last keeps one
template <class Gather, class First, class Second>
struct grid_all_gather {
  static constexpr bool pipelined = true;
  static constexpr bool one_value_a_step = false;
  static constexpr bool sends_partial_values = false;
  static constexpr determinism level = Gather::level;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks - 1, p.ranks}; }
  TOROID_HOST_DEVICE static constexpr int blocks(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr int steps(problem p) noexcept {
    return lines::steps(Second::line(p), First::line(p));
  }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem p) noexcept { return p.ranks > 1 ? steps(p) - 1 : 1; }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    const bool turns = First::line(p).ranks > 1 && step == lines::meeting(Second::line(p));
    return turns ? Second::line(p).ranks : 1;
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    const problem first = First::line(p), second = Second::line(p);
    const int meeting = lines::meeting(second), origin = first.rank * second.ranks;
    if (step > meeting) return across<First>(p, Gather::at(first, step - meeting, 0), 0, second.ranks);
    operation op = across<Second>(p, Gather::at(second, step, 0), origin, 1);
    if (first.ranks == 1 || step < meeting) return op;
    // Where they turn, the block that has just come is kept and goes on, and those kept before go on too.
    const peers onward = across<First>(p, Gather::at(first, 0, 0).to);
    op.to = onward;
    if (index > 0) {
      op.from = only(p.rank);
      op.own = place::delivered;
      op.blocks = {origin + topology::wrap(op.blocks.first - origin + index - second.ranks, second.ranks), 1};
      op.to = only(onward.at(1, p.ranks));
    }
    return op;
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem p) noexcept {
    return lines::class_count(Second::line(p), First::line(p));
  }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem p, int index) noexcept {
    return lines::class_at(Second::line(p), First::line(p), index);
  }
  // A block may be on its way along the second line while the one of the piece before is on its way along the first.
  TOROID_HOST_DEVICE static constexpr int slot_places(problem p) noexcept { return Second::line(p).ranks + p.ranks; }
  TOROID_HOST_DEVICE static constexpr int slot_place(problem p, int step, int block_index) noexcept {
    const int length = Second::line(p).ranks;
    return step < lines::meeting(Second::line(p)) ? block_index % length : length + block_index;
  }

 private:
  using lines = in_succession<Gather, Gather>;
};

/// All-reduce of one part of a vector: along the first line, then the second, and back.
template <class First, class Second>
using grid_all_reduce = scatter_then_gather<grid_reduce_scatter<ring_reduce_scatter, First, Second>,
                                            grid_all_gather<ring_all_gather, First, Second>>;

/// Schedules beside each other, each on a part of the vector.
///
/// @tparam Weights  of(problem, index): how long a part is in proportion to the others
/// @tparam Parts    schedules of as many blocks and steps each
template <class Weights, class... Parts>
struct side_by_side {
  static constexpr bool pipelined = (Parts::pipelined && ...);
  static constexpr bool one_value_a_step = false;
  static constexpr bool sends_partial_values = (Parts::sends_partial_values || ...);
  static constexpr determinism level =
      determinism::run_to_run;  // which part an element is in decides how it is combined
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return lead::sent(p); }
  TOROID_HOST_DEVICE static constexpr int blocks(problem p) noexcept { return (Parts::blocks(p) + ...); }
  TOROID_HOST_DEVICE static constexpr int parts(problem) noexcept { return sizeof...(Parts); }
  TOROID_HOST_DEVICE static constexpr int weight(problem p, int part) noexcept { return Weights::of(p, part); }
  TOROID_HOST_DEVICE static constexpr int steps(problem p) noexcept { return lead::steps(p); }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem p) noexcept { return lead::touching_steps(p); }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    return (Parts::operations(p, step) + ...);
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    operation found;
    int before = 0;  // blocks of the parts that have been passed
    const auto look = [&]<class Part>(Part) {
      const int own = Part::operations(p, step);
      if (index >= 0 && index < own) {
        found = Part::at(p, step, index);
        found.blocks.first += before;
      }
      index -= own;
      before += Part::blocks(p);
    };
    (look(Parts{}), ...);
    return found;
  }
  // A class ends where one of any part ends.
  TOROID_HOST_DEVICE static constexpr int class_count(problem p) noexcept {
    int count = 0;
    for (int first = 0; first < steps(p); first = class_after(p, first)) ++count;
    return count;
  }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem p, int index) noexcept {
    int first = 0;
    while (index-- > 0) first = class_after(p, first);
    return {first, class_after(p, first) - first};
  }
  TOROID_HOST_DEVICE static constexpr int slot_places(problem p) noexcept {
    return (schedule::slot_places<Parts>(p) + ...);
  }
  TOROID_HOST_DEVICE static constexpr int slot_place(problem p, int step, int block_index) noexcept {
    int found = -1, before = 0, places = 0;
    const auto look = [&]<class Part>(Part) {
      const int own = Part::blocks(p);
      if (found < 0 && block_index < before + own)
        found = places + schedule::slot_place<Part>(p, step, block_index - before);
      before += own;
      places += schedule::slot_places<Part>(p);
    };
    (look(Parts{}), ...);
    return found;
  }

 private:
  template <class Part, class...>
  struct first_of {
    using type = Part;
  };
  using lead = typename first_of<Parts...>::type;

  /// The first step after `step` with which a class of some part begins.
  TOROID_HOST_DEVICE static constexpr int class_after(problem p, int step) noexcept {
    int next = steps(p);
    const auto look = [&]<class Part>(Part) {
      for (int c = 0; c < Part::class_count(p); ++c)
        if (const int first = Part::class_at(p, c).first; first > step && first < next) next = first;
    };
    (look(Parts{}), ...);
    return next;
  }
};

/// How long the parts of a torus are: two that go row-first, then two that go column-first.
///
/// Let A S go row-first and B S column-first, A + B = 1. A link along a row then carries A (X - 1)/X + B (X - 1)/N of
/// S/2 on the way up and as much on the way down, a link along a column B (Y - 1)/Y + A (Y - 1)/N. Both are (1 - 1/N)/2
/// if A : B = N - 2 X + 1 : N - 2 Y + 1. On a single row or column it does not matter.
struct torus_weights {
  TOROID_HOST_DEVICE static constexpr int of(problem p, int part) noexcept {
    const topology::grid grid = p.grid();
    if (grid.rows == 1 || grid.columns == 1) return 1;
    return p.ranks + 1 - 2 * (part < 2 ? grid.columns : grid.rows);
  }
};

/// All-reduce on a grid of ranks with wrap-around, on both axes and in both directions at once: two parts of the vector
/// go row-first, two column-first, one clockwise and one anticlockwise of each. All links carry the same.
///
/// Cost: 2 (X + Y) - 3 steps, 2 (N - 1)/N S bytes a rank, a quarter of it over each link. One row or one column is a
/// ring, used in both directions. Operators must commute.
///
/// Source: C. Ying, S. Kumar, D. Chen, T. Wang, Y. Cheng, "Image classification at supercomputer scale", arXiv
/// 1811.06992.
using torus_2d_all_reduce = side_by_side<torus_weights, grid_all_reduce<along_row, along_column>,
                                         grid_all_reduce<backwards<along_row>, backwards<along_column>>,
                                         grid_all_reduce<along_column, along_row>,
                                         grid_all_reduce<backwards<along_column>, backwards<along_row>>>;

}  // namespace toroid::schedule
