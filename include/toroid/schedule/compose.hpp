// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>
#include <toroid/schedule/concept.hpp>
#include <toroid/schedule/determinism.hpp>
#include <toroid/schedule/direct.hpp>
#include <toroid/schedule/layout.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/schedule/ring.hpp>

/// Schedules made of others.
namespace toroid::schedule {

/// Two schedules one after the other; the last step of the first and the first of the second are one step.
///
/// @tparam First,Second  schedules, asked each about a problem of its own
template <class First, class Second>
struct in_succession {
  TOROID_HOST_DEVICE static constexpr int meeting(problem first) noexcept { return First::steps(first) - 1; }
  TOROID_HOST_DEVICE static constexpr int steps(problem first, problem second) noexcept {
    return meeting(first) + Second::steps(second);
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem first, problem second) noexcept {
    return First::class_count(first) + Second::class_count(second) - 1;
  }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem first, problem second, int index) noexcept {
    if (index < First::class_count(first)) return First::class_at(first, index);
    step_class later = Second::class_at(second, index - First::class_count(first) + 1);
    later.first += meeting(first);
    return later;
  }
};

/// All-reduce as a reduce-scatter followed by an all-gather, with the step where they meet done in one pass: the last
/// reduction writes straight to wherever the gather sends it first.
///
/// @tparam Scatter  a schedule whose last step is one operation that leaves a block of the sum on each rank
/// @tparam Gather   a schedule whose first step is one operation that sends that block from the input
///
/// Cost: steps of both less one, bytes of both.
template <class Scatter, class Gather>
struct scatter_then_gather {
  static constexpr bool plain_operations = has_plain_operations<Scatter>() && has_plain_operations<Gather>();
  static constexpr bool pipelined = Scatter::pipelined && Gather::pipelined;
  static constexpr bool one_value_a_step = Scatter::one_value_a_step && Gather::one_value_a_step;
  static constexpr bool sends_partial_values = Scatter::sends_partial_values || Gather::sends_partial_values;
  static constexpr determinism level = Scatter::level < Gather::level ? Scatter::level : Gather::level;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return Scatter::sent(p) + Gather::sent(p); }
  TOROID_HOST_DEVICE static constexpr int blocks(problem p) noexcept { return Scatter::blocks(p); }
  TOROID_HOST_DEVICE static constexpr int steps(problem p) noexcept { return both_of::steps(p, p); }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem p) noexcept {
    return both_of::meeting(p) + Gather::touching_steps(p);
  }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    const int meeting = both_of::meeting(p);
    return step <= meeting ? Scatter::operations(p, step) : Gather::operations(p, step - meeting);
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    const int meeting = both_of::meeting(p);
    if (step > meeting) return Gather::at(p, step - meeting, index);
    operation op = Scatter::at(p, step, index);
    if (step == meeting) {
      const operation first = Gather::at(p, 0, index);
      op.to = first.to;
      op.at = first.at;
    }
    return op;
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem p) noexcept { return both_of::class_count(p, p); }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem p, int index) noexcept {
    return both_of::class_at(p, p, index);
  }
  // While one piece is on its way down, another may be on its way up: in one slot, one behind the other.
  TOROID_HOST_DEVICE static constexpr int slot_places(problem p) noexcept
      requires(placing<Scatter> || placing<Gather>) {
    return schedule::slot_places<Scatter>(p) + schedule::slot_places<Gather>(p);
  }
  TOROID_HOST_DEVICE static constexpr int slot_place(problem p, int step, int block_index) noexcept
      requires(placing<Scatter> || placing<Gather>) {
    const int meeting = both_of::meeting(p);
    return step < meeting
               ? schedule::slot_place<Scatter>(p, step, block_index)
               : schedule::slot_places<Scatter>(p) + schedule::slot_place<Gather>(p, step - meeting, block_index);
  }

 private:
  using both_of = in_succession<Scatter, Gather>;
};

/// 3 steps, 2 (p - 1)/p S bytes a rank, operands in rank order.
using direct_all_reduce = scatter_then_gather<direct_reduce_scatter, direct_all_gather>;
/// 2 p - 1 steps, 2 (p - 1)/p S bytes a rank, operands in ring order.
using ring_all_reduce = scatter_then_gather<ring_reduce_scatter, ring_all_gather>;

}  // namespace toroid::schedule
