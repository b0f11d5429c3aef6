// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/schedule/concept.hpp>
#include <toroid/schedule/layout.hpp>
#include <toroid/schedule/operation.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace toroid::schedule::detail {

/// All operations of all ranks as plain data, so that what walks them is compiled once for all schedules.
struct unrolled {
  int ranks = 1;
  int root = 0;
  int rows = 1;
  int blocks = 1;
  int steps = 1;
  int touching_steps = 1;
  bool pipelined = false;
  std::vector<step_class> classes;
  std::vector<operation> operations;  ///< by step, then by rank
  std::vector<std::size_t> first;     ///< index of the first operation of (step, rank); one more at the end
  std::vector<int> slot_places;       ///< by step, then by block: where in a slot what is sent then stands

  topology::grid grid() const { return {rows, ranks / rows}; }
  std::size_t begin_of(int step, int rank) const { return first[place_of(step, rank)]; }
  std::size_t end_of(int step, int rank) const { return first[place_of(step, rank) + 1]; }
  std::span<const operation> of(int step, int rank) const {
    return {operations.data() + begin_of(step, rank), end_of(step, rank) - begin_of(step, rank)};
  }
  int slot_place(int step, int block) const {
    return slot_places[static_cast<std::size_t>(step) * static_cast<std::size_t>(blocks) +
                       static_cast<std::size_t>(block)];
  }

 private:
  std::size_t place_of(int step, int rank) const {
    return static_cast<std::size_t>(step) * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(rank);
  }
};

/// Asks a schedule for everything. What all ranks should agree on is rank 0's answer.
template <schedule_type S>
unrolled unroll(S, int ranks, int root, int rows) {
  const problem zero{0, ranks, root, rows};
  unrolled u;
  u.ranks = ranks;
  u.root = root;
  u.rows = rows;
  u.blocks = S::blocks(zero);
  u.steps = S::steps(zero);
  u.touching_steps = S::touching_steps(zero);
  u.pipelined = S::pipelined;
  for (int c = 0; c < S::class_count(zero); ++c) u.classes.push_back(S::class_at(zero, c));
  for (int step = 0; step < u.steps; ++step) {
    for (int b = 0; b < u.blocks; ++b) u.slot_places.push_back(schedule::slot_place<S>(zero, step, b));
    for (int rank = 0; rank < ranks; ++rank) {
      const problem p{rank, ranks, root, rows};
      u.first.push_back(u.operations.size());
      const int count = S::operations(p, step);
      for (int i = 0; i < count; ++i) u.operations.push_back(S::at(p, step, i));
    }
  }
  u.first.push_back(u.operations.size());
  return u;
}

}  // namespace toroid::schedule::detail
