// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>
#include <toroid/schedule/determinism.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/topology/ring.hpp>

/// To one rank, or from one: reduce, gather and scatter without a tree.
namespace toroid::schedule {

/// Reduction in one exchange: the root combines the whole vectors of all, in rank order.
///
/// Cost: 2 steps; all but the root send S bytes. For messages so short that latency is all.
struct one_shot_reduce {
  static constexpr bool plain_operations = true;
  static constexpr bool pipelined = true;
  static constexpr bool one_value_a_step = true;
  static constexpr bool sends_partial_values = false;
  static constexpr determinism level = determinism::any_chunking;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks > 1, 1}; }
  TOROID_HOST_DEVICE static constexpr int blocks(problem) noexcept { return 1; }
  TOROID_HOST_DEVICE static constexpr int steps(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    return (step == 0) != (p.rank == p.root);
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int) noexcept {
    if (step == 0) return {only(p.rank), place::input, {}, only(p.root), place::input};
    return {everyone(p.ranks), place::input, {}, only(p.root), place::delivered, true};
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem, int index) noexcept { return {index, 1}; }
};

/// The same on p blocks: where the root fetches operands, there is room for p of them beside each other.
struct fetching_reduce : one_shot_reduce {
  static constexpr bool one_value_a_step = false;
  TOROID_HOST_DEVICE static constexpr int blocks(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    operation op = one_shot_reduce::at(p, step, index);
    op.blocks = {0, p.ranks};
    return op;
  }
};

/// Reduction in two exchanges: block j of every rank meets on rank j, which hands the sum to the root. Operands in rank
/// order.
///
/// Cost: 3 steps; every rank but the root sends S bytes, the root (p - 1)/p S.
struct direct_reduce {
  static constexpr bool plain_operations = true;
  static constexpr bool pipelined = true;
  static constexpr bool one_value_a_step = false;
  static constexpr bool sends_partial_values = false;
  static constexpr determinism level = determinism::any_chunking;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks > 1, 1}; }
  TOROID_HOST_DEVICE static constexpr int blocks(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr int steps(problem) noexcept { return 3; }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    return step == 1 ? 1 : step == 0 || p.rank == p.root ? p.ranks - 1 : 0;
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    if (step == 1) return {everyone(p.ranks), place::input, {p.rank, 1}, only(p.root), place::delivered, true};
    const int other = everyone_but(p.rank, p.ranks).at(index, p.ranks);
    if (step == 0) return {only(p.rank), place::input, {other, 1}, only(other), place::input};
    return {only(other), place::delivered, {other, 1}, only(p.rank), place::delivered};
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem) noexcept { return 3; }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem, int index) noexcept { return {index, 1}; }
};

/// Reduction along a chain that begins after the root and ends there, piece after piece. Operands meet in ring order,
/// so the operator must commute.
///
/// Cost: p steps a piece, and a piece behind the other; every rank but the root sends S bytes.
struct ring_reduce {
  static constexpr bool plain_operations = true;
  static constexpr bool pipelined = true;
  static constexpr bool one_value_a_step = true;
  static constexpr bool sends_partial_values = true;
  static constexpr determinism level = determinism::run_to_run;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks > 1, 1}; }
  TOROID_HOST_DEVICE static constexpr int blocks(problem) noexcept { return 1; }
  TOROID_HOST_DEVICE static constexpr int steps(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem p) noexcept {
    return p.ranks > 2 ? p.ranks - 1 : p.ranks;  // the last step reads a slot, and with two ranks an input
  }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    return step == topology::wrap(p.rank - p.root - 1, p.ranks);
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int) noexcept {
    const bool last = step == p.ranks - 1;
    if (p.ranks == 1) return {only(p.rank), place::input, {}, only(p.rank), place::delivered, true};
    const peers next = only(topology::right_of(p.rank, p.ranks));
    if (step == 0) return {only(p.rank), place::input, {}, next, place::input};
    const peers operands{topology::left_of(p.rank, p.ranks), 1, 2};  // what has come so far, then the own contribution
    const place theirs = step == 1 ? place::input : place::slot;
    if (!last) return {operands, theirs, {}, next, place::slot};
    return {operands, theirs, {}, only(p.rank), place::delivered, true};
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem, int index) noexcept { return {index, 1}; }
};

/// Gather in one exchange: each rank puts its block into the root's result.
///
/// Cost: 2 steps; every rank but the root sends its block.
struct direct_gather {
  static constexpr bool plain_operations = true;
  static constexpr bool pipelined = true;
  static constexpr bool one_value_a_step = true;
  static constexpr bool sends_partial_values = false;
  static constexpr determinism level = determinism::any_chunking;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks > 1, p.ranks}; }
  TOROID_HOST_DEVICE static constexpr int blocks(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr int steps(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem) noexcept { return 1; }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    return step == 0 ? 1 : p.rank == p.root ? p.ranks - 1 : 0;
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    if (step == 0) return {only(p.rank), place::input, {p.rank, 1}, only(p.root), place::delivered};
    const int owner = everyone_but(p.rank, p.ranks).at(index, p.ranks);
    return {only(owner), place::delivered, {owner, 1}, only(p.rank), place::delivered};
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem, int index) noexcept { return {index, 1}; }
};

/// The same where nobody can write the root's memory: the root fetches each block from where it stands.
struct fetching_gather : direct_gather {
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    return step == 0 ? p.rank != p.root : p.rank == p.root ? p.ranks : 0;
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    if (step == 0) return {only(p.rank), place::input, {p.rank, 1}, only(p.root), place::input};
    const int owner = topology::wrap(p.rank + index - p.ranks, p.ranks);
    return {only(owner), place::input, {owner, 1}, only(p.rank), place::delivered};
  }
};

/// Scatter in one exchange: each rank takes its block from the root.
///
/// Cost: 2 steps; the root sends (p - 1)/p S bytes, the others none.
struct direct_scatter {
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
    return step == 1 ? 1 : p.rank == p.root ? p.ranks - 1 : 0;
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    if (step == 1) return {only(p.root), place::input, {p.rank, 1}, only(p.rank), place::delivered};
    const int owner = everyone_but(p.rank, p.ranks).at(index, p.ranks);
    return {only(p.rank), place::input, {owner, 1}, only(owner), place::input};
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem, int index) noexcept { return {index, 1}; }
};

}  // namespace toroid::schedule
