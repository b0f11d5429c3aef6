// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>
#include <toroid/schedule/compose.hpp>
#include <toroid/schedule/determinism.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/topology/powers.hpp>
#include <toroid/topology/ring.hpp>

/// Each round halves what is still to be combined, or doubles what has been gathered, for any number of ranks: a rank
/// sends to the one a power of two further on and receives from the one as far behind.
///
/// Blocks are counted from the own rank on: block i of rank r is block r + i of the vector, modulo p.
///
/// Source: J. L. Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", arXiv 2410.14234; with skips
/// that are powers of two, so that only the first round is uneven.
namespace toroid::schedule {

/// Reduce-scatter in ceil(log2 p) rounds. Before the round with skip k a rank has partial sums of its blocks 0 to
/// 2 k - 1; it gives the upper half away, and adds to the lower half what it is given. Blocks are combined in no order
/// of ranks, so the operator must commute.
///
/// Cost: ceil(log2 p) + 1 steps, (p - 1)/p S bytes a rank.
struct halving_reduce_scatter {
  static constexpr bool pipelined = false;
  static constexpr bool one_value_a_step = false;
  static constexpr bool sends_partial_values = true;
  static constexpr determinism level = determinism::run_to_run;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks - 1, p.ranks}; }
  TOROID_HOST_DEVICE static constexpr int blocks(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr int steps(problem p) noexcept { return topology::ceil_log2(p.ranks) + 1; }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem p) noexcept {
    return p.ranks > 3 ? steps(p) - 1 : steps(p);  // with so few ranks the last step reads an input
  }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    if (step == 0) return 1;
    int count = 0;
    for (int i = 0; i < most_parts; ++i) count += part(p, step, i).count > 0;
    return count;
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    if (p.ranks == 1) return {only(0), place::input, {0, 1}, only(0), place::delivered, true};
    const int half = 1 << (steps(p) - 2);
    if (step == 0) {
      const int to = topology::wrap(p.rank + half - p.ranks, p.ranks);
      return {only(p.rank), place::input, {to, p.ranks - half}, only(to), place::input};
    }
    int i = 0;
    while (part(p, step, i).count == 0 || index-- > 0) ++i;
    return part(p, step, i).as_operation(p, step);
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem p) noexcept { return steps(p); }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem, int index) noexcept { return {index, 1}; }

 private:
  static constexpr int most_parts = 3;

  /// Blocks that a step treats alike.
  struct part_of_step {
    int first;
    int count;
    bool received;      ///< something is added to them
    bool kept;          ///< not sent on yet
    bool theirs_input;  ///< what is received is an input of the sender
    bool own_input;     ///< they have not been added to before

    TOROID_HOST_DEVICE constexpr operation as_operation(problem p, int step) const noexcept {
      const int last = steps(p) - 1;
      const int behind = 1 << (last - step), ahead = behind / 2;
      const int from = topology::wrap(p.rank - behind, p.ranks);
      operation op;
      op.from = received ? both(from, p.rank) : only(p.rank);
      op.theirs = theirs_input ? place::input : place::slot;
      op.own = own_input ? place::input : place::slot;
      op.blocks = {topology::wrap(p.rank + first - p.ranks, p.ranks), count};
      op.to = only(kept ? p.rank : topology::wrap(p.rank + ahead - p.ranks, p.ranks));
      op.at = step == last ? place::delivered : received ? place::slot : place::input;
      op.completes = step == last;
      return op;
    }
  };

  /// The index-th part of what a rank of two or more does in a step after the first; it may be empty.
  ///
  /// A step deals with blocks 0 to live - 1, of which it sends those from `keep` on. In the first round only some are
  /// received; the next one finds the others untouched, at both ends.
  TOROID_HOST_DEVICE static constexpr part_of_step part(problem p, int step, int index) noexcept {
    const int last = steps(p) - 1;
    const int half = 1 << (last - 1), uneven = p.ranks - half;  // received in the first round: as many as it sends
    const int live = 1 << (last - step), keep = step == last ? live : live / 2;
    int other = live;  // where parts differ for another reason than `keep`
    if (step == 1) other = uneven;
    if (step == 2) other = uneven > live ? uneven - live : uneven;
    const int low = keep < other ? keep : other, high = keep < other ? other : keep;
    const int begin = index == 0 ? 0 : index == 1 ? low : high;
    const int end = index == 0 ? low : index == 1 ? high : live;
    part_of_step found{begin, end - begin, true, begin < keep, false, false};
    if (step == 1) {
      found.theirs_input = found.own_input = true;
      found.received = begin < uneven;
      if (found.kept && !found.received) found.count = 0;  // stays where it is
    }
    if (step == 2) {
      found.theirs_input = begin + live >= uneven;
      found.own_input = begin >= uneven;
    }
    return found;
  }
};

/// All-gather in ceil(log2 p) rounds, the other way round: before the round with skip k a rank has its blocks 0 to k -
/// 1, and gets as many more from the rank k further on.
///
/// Cost: ceil(log2 p) + 1 steps, (p - 1)/p S bytes a rank.
struct doubling_all_gather {
  static constexpr bool pipelined = false;
  static constexpr bool one_value_a_step = false;
  static constexpr bool sends_partial_values = false;
  static constexpr determinism level = determinism::any_chunking;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks - 1, p.ranks}; }
  TOROID_HOST_DEVICE static constexpr int blocks(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr int steps(problem p) noexcept { return topology::ceil_log2(p.ranks) + 1; }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem p) noexcept { return p.ranks > 1 ? steps(p) - 1 : 1; }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    int count = 0;
    for (int i = 0; i < most_parts; ++i) count += part(p, step, i).count > 0;
    return count;
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    int i = 0;
    while (part(p, step, i).count == 0 || index-- > 0) ++i;
    const block_range blocks = part(p, step, i);
    const int have = step == 0 ? 0 : 1 << (step - 1), next = 1 << step;
    const bool sends = blocks.first<sent_after(p, step), received = step> 0 && blocks.first >= have;
    const int to = topology::wrap(p.rank - next, p.ranks);
    operation op;
    op.from = only(received ? topology::wrap(p.rank + have - p.ranks, p.ranks) : p.rank);
    op.theirs = op.at = place::delivered;
    op.own = step == 0 ? place::input : place::delivered;
    op.blocks = {topology::wrap(p.rank + blocks.first - p.ranks, p.ranks), blocks.count};
    op.to = !sends ? only(p.rank) : received || step == 0 ? both(p.rank, to) : only(to);
    return op;
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem p) noexcept { return steps(p); }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem, int index) noexcept { return {index, 1}; }

 private:
  static constexpr int most_parts = 3;

  /// How many blocks a rank sends in a step: all that it has, if the receiver lacks as many.
  TOROID_HOST_DEVICE static constexpr int sent_after(problem p, int step) noexcept {
    if (step == steps(p) - 1) return 0;
    const int have = 1 << step;
    return have < p.ranks - have ? have : p.ranks - have;
  }
  /// Blocks that a step treats alike: it receives those from half of `have` on, and sends the first ones.
  TOROID_HOST_DEVICE static constexpr block_range part(problem p, int step, int index) noexcept {
    if (step == 0) return {0, index == 0};
    const int before = 1 << (step - 1), have = 2 * before < p.ranks ? 2 * before : p.ranks;
    const int sends = sent_after(p, step);
    const int low = sends < before ? sends : before, high = sends < before ? before : sends;
    if (index == 0) return {0, low};                 // sent, from the own result
    if (index == 1) return {before, high - before};  // received and sent
    return {high, have - high};                      // received
  }
};

/// 2 ceil(log2 p) + 1 steps, 2 (p - 1)/p S bytes a rank.
using halving_doubling_all_reduce = scatter_then_gather<halving_reduce_scatter, doubling_all_gather>;

}  // namespace toroid::schedule
