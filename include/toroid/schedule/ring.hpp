// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>
#include <toroid/schedule/determinism.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/topology/ring.hpp>

/// Each rank receives from its left neighbour and sends to its right one; blocks travel round the ring.
namespace toroid::schedule {

/// Reduce-scatter on a ring: the partial sum of block j starts on rank j + 1, gains one operand on every rank it
/// passes and ends on rank j. Operands meet in ring order, so the operator must commute.
///
/// Cost: p steps, (p - 1)/p S bytes a rank. Source: P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms
/// for clusters of workstations", J. Parallel Distrib. Comput. 69 (2009).
struct ring_reduce_scatter {
  static constexpr bool plain_operations = true;
  static constexpr bool pipelined = false;
  static constexpr bool one_value_a_step = true;
  static constexpr bool sends_partial_values = true;
  static constexpr determinism level = determinism::run_to_run;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks - 1, p.ranks}; }
  TOROID_HOST_DEVICE static constexpr int blocks(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr int steps(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem p) noexcept {
    return p.ranks > 2 ? p.ranks - 1 : p.ranks;  // the last step reads a slot, and with two ranks an input
  }
  TOROID_HOST_DEVICE static constexpr int operations(problem, int) noexcept { return 1; }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int) noexcept {
    const int left = topology::left_of(p.rank, p.ranks);
    const int right = topology::right_of(p.rank, p.ranks);
    const block_range travelling{topology::wrap(p.rank - 1 - step, p.ranks), 1};
    if (p.ranks == 1) return {only(p.rank), place::input, travelling, only(p.rank), place::delivered, true};
    if (step == 0) return {only(p.rank), place::input, travelling, only(right), place::input};
    const peers operands{left, 1, 2};  // what has come so far, then the own contribution
    const place theirs = step == 1 ? place::input : place::slot;
    if (step < p.ranks - 1) return {operands, theirs, travelling, only(right), place::slot};
    return {operands, theirs, travelling, only(p.rank), place::delivered, true};
  }
  // The first step announces, the second reads inputs, the last keeps the block; those between are alike.
  TOROID_HOST_DEVICE static constexpr int class_count(problem p) noexcept { return p.ranks < 4 ? p.ranks : 4; }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem p, int index) noexcept {
    if (p.ranks < 4) return {index, 1};
    return index < 2 ? step_class{index, 1} : index == 2 ? step_class{2, p.ranks - 3} : step_class{p.ranks - 1, 1};
  }
};

/// All-gather on a ring: every block goes once round.
///
/// Cost: p steps, (p - 1)/p S bytes a rank.
struct ring_all_gather {
  static constexpr bool plain_operations = true;
  static constexpr bool pipelined = false;
  static constexpr bool one_value_a_step = true;
  static constexpr bool sends_partial_values = false;
  static constexpr determinism level = determinism::any_chunking;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks - 1, p.ranks}; }
  TOROID_HOST_DEVICE static constexpr int blocks(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr int steps(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem p) noexcept { return p.ranks > 1 ? p.ranks - 1 : 1; }
  TOROID_HOST_DEVICE static constexpr int operations(problem, int) noexcept { return 1; }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int) noexcept {
    const int left = topology::left_of(p.rank, p.ranks);
    const block_range travelling{topology::wrap(p.rank - step, p.ranks), 1};
    const peers onward = step < p.ranks - 1 ? peers{p.rank, 1, 2} : only(p.rank);  // keep it, and pass it on
    if (step == 0) return {only(p.rank), place::input, travelling, onward, place::delivered};
    return {only(left), place::delivered, travelling, onward, place::delivered};
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem p) noexcept { return p.ranks < 3 ? p.ranks : 3; }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem p, int index) noexcept {
    if (p.ranks < 3) return {index, 1};
    return index == 0 ? step_class{0, 1} : index == 1 ? step_class{1, p.ranks - 2} : step_class{p.ranks - 1, 1};
  }
};

/// Broadcast along a chain from the root round the ring, piece after piece, so that all links are busy at once.
///
/// Cost: p steps a piece, and a piece behind the other; every rank but the last sends S bytes.
struct ring_broadcast {
  static constexpr bool plain_operations = true;
  static constexpr bool pipelined = true;
  static constexpr bool one_value_a_step = true;
  static constexpr bool sends_partial_values = false;
  static constexpr determinism level = determinism::any_chunking;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks > 1, 1}; }
  TOROID_HOST_DEVICE static constexpr int blocks(problem) noexcept { return 1; }
  TOROID_HOST_DEVICE static constexpr int steps(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem p) noexcept { return p.ranks > 1 ? p.ranks - 1 : 1; }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    return p.ranks > 1 && step == topology::wrap(p.rank - p.root, p.ranks);
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int) noexcept {
    const peers next = only(topology::right_of(p.rank, p.ranks));
    if (step == 0) return {only(p.rank), place::input, {}, next, place::delivered};
    const peers onward = step < p.ranks - 1 ? peers{p.rank, 1, 2} : only(p.rank);
    return {only(topology::left_of(p.rank, p.ranks)), place::delivered, {}, onward, place::delivered};
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem, int index) noexcept { return {index, 1}; }
};

}  // namespace toroid::schedule
