// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>
#include <toroid/schedule/determinism.hpp>
#include <toroid/schedule/operation.hpp>

/// Everyone talks to everyone, operands always in rank order: the result of an element depends on nothing but that
/// element's inputs.
namespace toroid::schedule {

/// All-reduce in one exchange: each rank sends its whole vector to all and adds up everybody's.
///
/// Cost: 2 steps, (p - 1) S bytes a rank. For messages so short that latency is all.
struct one_shot_all_reduce {
  static constexpr bool plain_operations = true;
  static constexpr bool pipelined = true;
  static constexpr bool one_value_a_step = true;
  static constexpr bool sends_partial_values = false;
  static constexpr determinism level = determinism::any_chunking;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks - 1, 1}; }
  TOROID_HOST_DEVICE static constexpr int blocks(problem) noexcept { return 1; }
  TOROID_HOST_DEVICE static constexpr int steps(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    return step == 0 ? p.ranks > 1 : 1;
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int) noexcept {
    if (step == 0) return {only(p.rank), place::input, {}, everyone_but(p.rank, p.ranks), place::input};
    return {everyone(p.ranks), place::input, {}, only(p.rank), place::delivered, true};
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem, int index) noexcept { return {index, 1}; }
};

/// Reduce-scatter in one exchange: block j of every rank meets on rank j.
///
/// Cost: 2 steps, (p - 1)/p S bytes a rank.
struct direct_reduce_scatter {
  static constexpr bool plain_operations = true;
  static constexpr bool pipelined = true;
  static constexpr bool one_value_a_step = false;
  static constexpr bool sends_partial_values = false;
  static constexpr determinism level = determinism::any_chunking;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks - 1, p.ranks}; }
  TOROID_HOST_DEVICE static constexpr int blocks(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr int steps(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    return step == 0 ? p.ranks - 1 : 1;
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    if (step == 0) {
      const int owner = everyone_but(p.rank, p.ranks).at(index, p.ranks);
      return {only(p.rank), place::input, {owner, 1}, only(owner), place::input};
    }
    return {everyone(p.ranks), place::input, {p.rank, 1}, only(p.rank), place::delivered, true};
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem, int index) noexcept { return {index, 1}; }
};

/// All-gather in one exchange: each rank puts its block into everybody's result.
///
/// Cost: 2 steps, (p - 1)/p S bytes a rank.
struct direct_all_gather {
  static constexpr bool plain_operations = true;
  static constexpr bool fetches = true;
  static constexpr bool pipelined = true;
  static constexpr bool one_value_a_step = false;
  static constexpr bool sends_partial_values = false;
  static constexpr determinism level = determinism::any_chunking;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks - 1, p.ranks}; }
  TOROID_HOST_DEVICE static constexpr int blocks(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr int steps(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem) noexcept { return 1; }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    return step == 0 ? 1 : p.ranks - 1;
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    if (step == 0) return {only(p.rank), place::input, {p.rank, 1}, everyone(p.ranks), place::delivered};
    const int owner = everyone_but(p.rank, p.ranks).at(index, p.ranks);
    return {only(owner), place::delivered, {owner, 1}, only(p.rank), place::delivered};
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem, int index) noexcept { return {index, 1}; }
};

/// Broadcast in one exchange: everyone takes the vector from the root.
///
/// Cost: 2 steps; the root sends (p - 1) S bytes, the others none.
struct direct_broadcast {
  static constexpr bool plain_operations = true;
  static constexpr bool pipelined = true;
  static constexpr bool one_value_a_step = true;
  static constexpr bool sends_partial_values = false;
  static constexpr determinism level = determinism::any_chunking;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks - 1, 1}; }
  TOROID_HOST_DEVICE static constexpr int blocks(problem) noexcept { return 1; }
  TOROID_HOST_DEVICE static constexpr int steps(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    if (step == 0) return p.rank == p.root && p.ranks > 1;
    return p.rank != p.root;
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int) noexcept {
    if (step == 0) return {only(p.rank), place::input, {}, everyone_but(p.rank, p.ranks), place::input};
    return {only(p.root), place::input, {}, only(p.rank), place::delivered};
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem, int index) noexcept { return {index, 1}; }
};

}  // namespace toroid::schedule
