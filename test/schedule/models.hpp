// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/schedule/compose.hpp>
#include <toroid/schedule/direct.hpp>
#include <toroid/schedule/halving_doubling.hpp>
#include <toroid/schedule/ring.hpp>
#include <toroid/schedule/torus.hpp>
#include <toroid/schedule/tree.hpp>
#include <toroid/schedule/verification.hpp>

#include <type_traits>

/// All schedules of the library and what each is for. To have a new one proved, add a line.
namespace models {

using toroid::schedule::collective_kind;

/// Calls visit(schedule, kind) for each that collectives carry out.
template <class Visit>
void for_each_carried_out(Visit visit) {
  namespace s = toroid::schedule;
  visit(s::one_shot_all_reduce{}, collective_kind::all_reduce);
  visit(s::direct_all_reduce{}, collective_kind::all_reduce);
  visit(s::direct_reduce_scatter{}, collective_kind::reduce_scatter);
  visit(s::direct_all_gather{}, collective_kind::all_gather);
  visit(s::direct_broadcast{}, collective_kind::broadcast);
  visit(s::ring_all_reduce{}, collective_kind::all_reduce);
  visit(s::ring_reduce_scatter{}, collective_kind::reduce_scatter);
  visit(s::ring_all_gather{}, collective_kind::all_gather);
  visit(s::ring_broadcast{}, collective_kind::broadcast);
  visit(s::halving_doubling_all_reduce{}, collective_kind::all_reduce);
  visit(s::halving_reduce_scatter{}, collective_kind::reduce_scatter);
  visit(s::doubling_all_gather{}, collective_kind::all_gather);
  visit(s::tree_all_reduce{}, collective_kind::all_reduce);
  visit(s::tree_broadcast{}, collective_kind::broadcast);
  visit(s::in_order_tree_all_reduce{}, collective_kind::all_reduce);
  visit(s::torus_2d_all_reduce{}, collective_kind::all_reduce);
}

/// Calls visit(schedule, kind) for each of all. Those that know grids are asked about a single row.
template <class Visit>
void for_each(Visit visit) {
  namespace s = toroid::schedule;
  for_each_carried_out(visit);
  visit(s::tree_reduce{}, collective_kind::reduce);
  visit(s::in_order_tree_reduce{}, collective_kind::reduce);
}

/// Whether operands meet in rank order.
template <class S>
constexpr bool in_rank_order = std::is_same_v<S, toroid::schedule::one_shot_all_reduce> ||
                               std::is_same_v<S, toroid::schedule::direct_all_reduce> ||
                               std::is_same_v<S, toroid::schedule::direct_reduce_scatter> ||
                               std::is_same_v<S, toroid::schedule::in_order_tree_all_reduce> ||
                               std::is_same_v<S, toroid::schedule::in_order_tree_reduce>;

/// Calls visit(rows, columns) for all grids of up to 8 times 9 ranks, either way round.
template <class Visit>
void for_each_grid(int least_ranks, int most_ranks, Visit visit) {
  for (int rows = 1; rows <= 9; ++rows)
    for (int columns = 1; columns <= 9; ++columns)
      if (rows * columns <= 72 && rows * columns >= least_ranks && rows * columns <= most_ranks) visit(rows, columns);
}

}  // namespace models
