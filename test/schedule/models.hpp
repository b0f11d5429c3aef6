// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/schedule/compose.hpp>
#include <toroid/schedule/direct.hpp>
#include <toroid/schedule/ring.hpp>
#include <toroid/schedule/verification.hpp>

/// All schedules of the library and what each is for. To have a new one proved, add a line.
namespace models {

using toroid::schedule::collective_kind;

/// Calls visit(schedule, kind) for each.
template <class Visit>
void for_each(Visit visit) {
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
}

}  // namespace models
