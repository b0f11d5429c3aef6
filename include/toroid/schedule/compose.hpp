// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>
#include <toroid/schedule/direct.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/schedule/ring.hpp>

namespace toroid::schedule {

/// All-reduce as a reduce-scatter followed by an all-gather, with the step where they meet done in one pass: the last
/// reduction writes straight to wherever the gather sends it first.
///
/// @tparam Scatter  a schedule whose last step is one operation that leaves block r of the sum on rank r
/// @tparam Gather   a schedule whose first step is one operation that sends block r from rank r's input
///
/// Cost: steps of both less one, bytes of both.
template <class Scatter, class Gather>
struct scatter_then_gather {
  static constexpr bool pipelined = Scatter::pipelined && Gather::pipelined;
  static constexpr bool one_value_a_step = Scatter::one_value_a_step && Gather::one_value_a_step;
  static constexpr bool sends_partial_values = Scatter::sends_partial_values || Gather::sends_partial_values;
  TOROID_HOST_DEVICE static constexpr int blocks(problem p) noexcept { return Scatter::blocks(p); }
  TOROID_HOST_DEVICE static constexpr int steps(problem p) noexcept { return meeting(p) + Gather::steps(p); }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem p) noexcept {
    return meeting(p) + Gather::touching_steps(p);
  }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    return step <= meeting(p) ? Scatter::operations(p, step) : Gather::operations(p, step - meeting(p));
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    if (step > meeting(p)) return Gather::at(p, step - meeting(p), index);
    operation op = Scatter::at(p, step, index);
    if (step == meeting(p)) {
      const operation first = Gather::at(p, 0, 0);
      op.to = first.to;
      op.at = first.at;
    }
    return op;
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem p) noexcept {
    return Scatter::class_count(p) + Gather::class_count(p) - 1;
  }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem p, int index) noexcept {
    if (index < Scatter::class_count(p)) return Scatter::class_at(p, index);
    step_class later = Gather::class_at(p, index - Scatter::class_count(p) + 1);
    later.first += meeting(p);
    return later;
  }

 private:
  TOROID_HOST_DEVICE static constexpr int meeting(problem p) noexcept { return Scatter::steps(p) - 1; }
};

/// 3 steps, 2 (p - 1)/p S bytes a rank, operands in rank order.
using direct_all_reduce = scatter_then_gather<direct_reduce_scatter, direct_all_gather>;
/// 2 p - 1 steps, 2 (p - 1)/p S bytes a rank, operands in ring order.
using ring_all_reduce = scatter_then_gather<ring_reduce_scatter, ring_all_gather>;

}  // namespace toroid::schedule
