// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>
#include <toroid/topology/grid.hpp>

#include <cstdint>

/// What moves when: pure index arithmetic, without transports, element types or memory.
///
/// A schedule is an empty type with constexpr functions of a problem:
///
///   blocks(problem)                 into how many blocks the buffer is split (by toroid::block_of)
///   steps(problem)                  number of steps; the same on every rank
///   operations(problem, step)       number of operations of this rank in a step, possibly none
///   at(problem, step, index)        one of them
///   touching_steps(problem)         after this many steps no rank touches another rank's buffers any more
///   class_count(problem), class_at(problem, index)   runs of steps of the same shape
///   pipelined                       whether step s of one piece may run beside step s + 1 of the piece before
///   one_value_a_step                whether a rank sends at most one block in a step, so that a slot holds just that
///   sends_partial_values            whether some operation sends what it has computed to a `slot`
///   level                           how strongly results are fixed (schedule/determinism.hpp)
///   sent(problem)                   the share of the vector that the rank which sends most sends in all
///
/// and, where the defaults will not do (schedule/layout.hpp has them),
///
///   parts(problem), weight(problem, part)   parts of the vector, by weight, each split into equally many blocks
///   slot_places(problem), slot_place(problem, step, block)   where in a slot the value of a block stands in a step
///   ranks_differ                    ranks are not alike up to rank arithmetic, so that whoever counts has to walk all
///   plain_operations                the own operand is always the own input, no value is for oneself but the own
///                                   result, no rank stands after a sequence, ranges of blocks do not wrap around, and
///                                   a block has one place in all slots: an executor may leave out the rest
///
/// One rule orders everything: what is sent in step s is received in step s + 1, never earlier or later. Besides:
/// operations of one step on one rank have no order among themselves; a delivered value is final, comes from one source
/// and is kept by its receiver; an announcement (`at` input) is for peers, never for the rank itself; values that stand
/// in a slot at one time have places of their own; and what a step waits for has been sent within touching_steps.
/// verify() refuses what breaks these rules.
namespace toroid::schedule {

/// What a schedule is asked about.
struct problem {
  int rank = 0;   ///< the rank whose operations are asked for, in [0, ranks)
  int ranks = 1;  ///< number of ranks, at least 1
  int root = 0;   ///< of rooted collectives, in [0, ranks)
  int rows = 1;   ///< of the grid that the ranks form, row after row; divides ranks

  TOROID_HOST_DEVICE constexpr topology::grid grid() const noexcept { return {rows, ranks / rows}; }
};

/// A set of ranks as an arithmetic sequence modulo the number of ranks: first, first + step, ... (count of them). One
/// more may stand at the end.
struct peers {
  int first = 0;
  int step = 1;
  int count = 0;   ///< of all, the one at the end too
  int extra = -1;  ///< the one at the end, if not negative

  TOROID_HOST_DEVICE constexpr int at(int index, int ranks) const noexcept {
    if (extra >= 0 && index == count - 1) return extra;
    const long long position = first + static_cast<long long>(index) * step;
    if (position >= 0 && position < ranks) return static_cast<int>(position);  // mostly; a division takes longer
    const int remainder = static_cast<int>(position % ranks);
    return remainder < 0 ? remainder + ranks : remainder;
  }
  TOROID_HOST_DEVICE constexpr bool contains(int rank, int ranks) const noexcept {
    for (int i = 0; i < count; ++i)
      if (at(i, ranks) == rank) return true;
    return false;
  }
  /// The same with `rank` at the end, which has nobody there yet.
  TOROID_HOST_DEVICE constexpr peers with(int rank) const noexcept {
    return count == 0 ? peers{rank, 1, 1} : peers{first, step, count + 1, rank};
  }
};

/// The set of all ranks, in rank order.
TOROID_HOST_DEVICE constexpr peers everyone(int ranks) noexcept { return {0, 1, ranks}; }
/// All ranks but `rank`, beginning with the one after it.
TOROID_HOST_DEVICE constexpr peers everyone_but(int rank, int ranks) noexcept { return {rank + 1, 1, ranks - 1}; }
/// One rank.
TOROID_HOST_DEVICE constexpr peers only(int rank) noexcept { return {rank, 1, 1}; }
/// Two ranks, in this order.
TOROID_HOST_DEVICE constexpr peers both(int first, int second) noexcept { return {first, second - first, 2}; }
TOROID_HOST_DEVICE constexpr peers nobody() noexcept { return {0, 1, 0}; }

/// Where a value stands.
enum class place : std::uint8_t {
  input,      ///< in its owner's input buffer, untouched since the call began
  slot,       ///< computed for its receivers: they read it from a slot of the sender, or receive it as a message
  delivered,  ///< in the receiver's own result, where the sender has put it (through a slot where it cannot)
};

/// A run of consecutive blocks; block 0 follows the last one.
struct block_range {
  int first = 0;
  int count = 1;

  /// The index-th of them, of `blocks` in all.
  TOROID_HOST_DEVICE constexpr int at(int index, int blocks) const noexcept {
    const int block = first + index;
    return block < blocks ? block : block - blocks;
  }
};

/// One pass over one range of blocks: combine what stands at `from`, in that order, and put the value at `to`.
///
/// * `from` may contain the rank itself: its operand stands at `own`: in its own input, in its own slot, where it has
///   put it in the step before, or (`delivered`) in its own result. The other operands stand at `theirs`. One operand
///   is a copy, several are a reduction, from left to right in the order of the set.
/// * Those in `to` get the value `at`: `delivered` means that it is final there, `slot` that it is an operand of their
///   next step, and `input` that their next step may as well read it where it already stands, in this rank's input (so
///   the operation is a mere announcement, and moves bytes only where memory cannot be read across ranks). `to` may
///   contain the rank itself: then its own result gets the value, or its own slot.
struct operation {
  peers from{};
  place theirs = place::slot;
  block_range blocks{};
  peers to{};
  place at = place::slot;
  bool completes = false;  ///< the value holds all contributions: `average` divides here
  place own = place::input;

  TOROID_HOST_DEVICE constexpr bool reduces() const noexcept { return from.count > 1; }
};

/// A run of steps in which every rank does the same thing up to rank arithmetic.
struct step_class {
  int first = 0;
  int count = 0;
};

}  // namespace toroid::schedule
