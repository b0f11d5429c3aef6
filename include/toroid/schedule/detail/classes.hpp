// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/schedule/detail/text.hpp>
#include <toroid/schedule/detail/unrolled.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/schedule/verification.hpp>
#include <toroid/topology/grid.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace toroid::schedule::detail {

/// A set of peers as seen from a rank: how far ahead of it each one is.
inline std::vector<int> distances(const peers& set, int rank, topology::grid grid) {
  std::vector<int> ahead;
  for (int i = 0; i < set.count; ++i) ahead.push_back(grid.distance(rank, set.at(i, grid.ranks())));
  std::sort(ahead.begin(), ahead.end());
  return ahead;
}

/// What rank `a` does and what rank `b` does differ only in what follows from their numbers.
inline bool alike(const operation& x, int a, const operation& y, int b, topology::grid grid) {
  if (x.from.count != y.from.count || x.theirs != y.theirs || x.blocks.count != y.blocks.count ||
      x.to.count != y.to.count || x.at != y.at || x.completes != y.completes || x.own != y.own)
    return false;
  const auto same_peers = [&](const peers& p, const peers& q) {
    return p.count == grid.ranks() || distances(p, a, grid) == distances(q, b, grid);
  };
  return same_peers(x.from, y.from) && same_peers(x.to, y.to);
}

inline bool alike(std::span<const operation> x, int a, std::span<const operation> y, int b, topology::grid grid) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [&](const operation& p, const operation& q) { return alike(p, a, q, b, grid); });
}

/// Step classes cover all steps once and in order, and each is a run of equal steps.
inline std::optional<violation> check_classes(const unrolled& u) {
  int next = 0;
  for (const step_class& c : u.classes) {
    if (c.first != next || c.count < 1)
      return violation{
          -1, next, -1,
          joined("class begins at step ", c.first, " with ", c.count, " steps; the classes before it end here")};
    if (c.count > u.steps - next) return violation{-1, c.first, -1, "class goes beyond the last step"};
    for (int step = c.first; step < c.first + c.count; ++step)
      for (int rank = 0; rank < u.ranks; ++rank)
        if (!alike(u.of(step, rank), rank, u.of(c.first, rank), rank, u.grid()))
          return violation{rank, step, -1, joined("is unlike step ", c.first, " of the same class")};
    next = c.first + c.count;
  }
  if (next != u.steps) return violation{-1, next, -1, "belongs to no class"};
  return {};
}

/// Rank r does what rank 0 would do if the root were r places, or as many rows and columns, nearer.
template <schedule_type S>
std::optional<violation> check_symmetry(S, const unrolled& u) {
  for (int rank = 1; rank < u.ranks; ++rank) {
    const problem model{0, u.ranks, u.grid().distance(rank, u.root), u.rows};
    for (int step = 0; step < u.steps; ++step) {
      std::vector<operation> expected;
      for (int i = 0; i < S::operations(model, step); ++i) expected.push_back(S::at(model, step, i));
      if (!alike(u.of(step, rank), rank, expected, 0, u.grid()))
        return violation{rank, step, -1, "differs from rank 0 by more than rank arithmetic"};
    }
  }
  return {};
}

}  // namespace toroid::schedule::detail
