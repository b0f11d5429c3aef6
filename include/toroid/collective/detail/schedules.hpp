// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/algorithms.hpp>
#include <toroid/schedule/compose.hpp>
#include <toroid/schedule/direct.hpp>
#include <toroid/schedule/halving_doubling.hpp>
#include <toroid/schedule/ring.hpp>
#include <toroid/schedule/rooted.hpp>
#include <toroid/schedule/torus.hpp>
#include <toroid/schedule/tree.hpp>

#include <type_traits>

/// Which schedules carry out which algorithms.
namespace toroid::detail {

/// Whether an algorithm picks its schedule by the length of the vector; each collective says how.
template <class Algorithm>
inline constexpr bool picks_by_length = is_one_of<Algorithm, automatic, direct>;

/// The schedules of an algorithm that has one for all lengths, by collective; those that it does not know are missing.
template <class Algorithm>
struct schedules_of {};
template <own_algorithm Algorithm>
struct schedules_of<Algorithm> : Algorithm::schedules {};

template <>
struct schedules_of<ring> {
  using all_reduce = schedule::ring_all_reduce;
  using reduce_scatter = schedule::ring_reduce_scatter;
  using all_gather = schedule::ring_all_gather;
  using broadcast = schedule::ring_broadcast;
  using reduce = schedule::ring_reduce;
};
template <>
struct schedules_of<halving_doubling> {
  using all_reduce = schedule::halving_doubling_all_reduce;
  using reduce_scatter = schedule::halving_reduce_scatter;
  using all_gather = schedule::doubling_all_gather;
};
template <>
struct schedules_of<tree> {
  using all_reduce = schedule::tree_all_reduce;
  using broadcast = schedule::tree_broadcast;
  using reduce = schedule::tree_reduce;
};
template <>
struct schedules_of<torus_2d> {
  using all_reduce = schedule::torus_2d_all_reduce;
};

/// A tree for operators that do not commute: ranks know it from the other one by its name.
struct tree_in_order : tree {
  static constexpr determinism level = determinism::any_chunking;
};
template <>
inline constexpr algorithm_kind algorithm_of<tree_in_order> = algorithm_kind::tree_in_order;
template <>
struct schedules_of<tree_in_order> {
  using all_reduce = schedule::in_order_tree_all_reduce;
  using reduce = schedule::in_order_tree_reduce;
};

/// The algorithm that stands for another with an operator that commutes, or does not.
template <class Algorithm, bool Commutes>
using algorithm_for = std::conditional_t<std::is_same_v<Algorithm, tree> && !Commutes, tree_in_order, Algorithm>;

static_assert(automatic::level <= schedule::one_shot_all_reduce::level &&
              direct::level <= schedule::direct_all_reduce::level && ring::level <= schedule::ring_all_reduce::level);
static_assert(halving_doubling::level <= schedule::halving_doubling_all_reduce::level &&
              tree::level <= schedule::tree_all_reduce::level &&
              tree_in_order::level <= schedule::in_order_tree_all_reduce::level &&
              torus_2d::level <= schedule::torus_2d_all_reduce::level);

}  // namespace toroid::detail
