// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>

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
///
/// One rule orders everything: what is sent in step s is received in step s + 1, never earlier or later. Besides:
/// operations of one step on one rank have no order among themselves; a delivered value is final, comes from one source
/// and is kept by its receiver; an announcement (`at` input) is for peers, never for the rank itself; and what a step
/// waits for has been sent within touching_steps. verify() refuses what breaks these rules.
namespace toroid::schedule {

/// What a schedule is asked about.
struct problem {
  int rank = 0;   ///< the rank whose operations are asked for, in [0, ranks)
  int ranks = 1;  ///< number of ranks, at least 1
  int root = 0;   ///< of rooted collectives, in [0, ranks)
};

/// A set of ranks as an arithmetic sequence modulo the number of ranks: first, first + step, ... (count of them).
struct peers {
  int first = 0;
  int step = 1;
  int count = 0;

  TOROID_HOST_DEVICE constexpr int at(int index, int ranks) const noexcept {
    const long long position = first + static_cast<long long>(index) * step;
    const int remainder = static_cast<int>(position % ranks);
    return remainder < 0 ? remainder + ranks : remainder;
  }
  TOROID_HOST_DEVICE constexpr bool contains(int rank, int ranks) const noexcept {
    for (int i = 0; i < count; ++i)
      if (at(i, ranks) == rank) return true;
    return false;
  }
};

/// The set of all ranks, in rank order.
TOROID_HOST_DEVICE constexpr peers everyone(int ranks) noexcept { return {0, 1, ranks}; }
/// All ranks but `rank`, beginning with the one after it.
TOROID_HOST_DEVICE constexpr peers everyone_but(int rank, int ranks) noexcept { return {rank + 1, 1, ranks - 1}; }
/// One rank.
TOROID_HOST_DEVICE constexpr peers only(int rank) noexcept { return {rank, 1, 1}; }
TOROID_HOST_DEVICE constexpr peers nobody() noexcept { return {0, 1, 0}; }

/// Where a value stands.
enum class place : std::uint8_t {
  input,      ///< in its owner's input buffer, untouched since the call began
  slot,       ///< computed for its receivers: they read it from a slot of the sender, or receive it as a message
  delivered,  ///< in the receiver's own result, where the sender has put it (through a slot where it cannot)
};

/// A run of consecutive blocks, without wrap-around.
struct block_range {
  int first = 0;
  int count = 1;
};

/// One pass over one range of blocks: combine what stands at `from`, in that order, and put the value at `to`.
///
/// * `from` may contain the rank itself: its operand stands in its own input. The other operands stand at `theirs`.
///   One operand is a copy, several are a reduction, from left to right in the order of the sequence.
/// * `to` may contain the rank itself: its own result gets the value. The other ranks get it `at`: `delivered` means
///   that it is final there, `slot` that it is an operand of their next step, and `input` that their next step may
///   as well read it where it already stands, in this rank's input (so the operation is a mere announcement, and
///   moves bytes only where memory cannot be read across ranks).
struct operation {
  peers from{};
  place theirs = place::slot;
  block_range blocks{};
  peers to{};
  place at = place::slot;
  bool completes = false;  ///< the value holds all contributions: `average` divides here

  TOROID_HOST_DEVICE constexpr bool reduces() const noexcept { return from.count > 1; }
};

/// A run of steps in which every rank does the same thing up to rank arithmetic.
struct step_class {
  int first = 0;
  int count = 0;
};

}  // namespace toroid::schedule
