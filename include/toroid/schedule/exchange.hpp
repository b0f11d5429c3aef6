// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>
#include <toroid/schedule/determinism.hpp>
#include <toroid/schedule/direct.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/topology/ring.hpp>

#include <concepts>

/// Blocks that callers lay out themselves: they may be of any length, and stand elsewhere in a sender's input than in a
/// receiver's result. Whoever gets a block fetches it, so that nobody has to know another's result.
///
/// Beside what every schedule says, these say where blocks stand in two tables that each rank brings: `outgoing` of its
/// input, `incoming` of its result.
namespace toroid::schedule {

/// A schedule on blocks that callers lay out. An operation whose value is delivered has the length and the place of
/// `incoming`; one that announces those of `outgoing`.
template <class S>
concept mapping = requires(problem p) {
  { S::outgoing_index(p, 0) } -> std::same_as<int>;  // of a block, in the table of each rank that brings it
  { S::incoming_index(p, 0) } -> std::same_as<int>;  // of a block, in the table of the rank that gets it
};

/// Everyone sends something else to everyone: block s p + d goes from rank s to rank d.
///
/// Cost: 2 steps; a rank sends all blocks of its input but its own.
struct direct_exchange {
  static constexpr bool pipelined = true;
  static constexpr bool one_value_a_step = false;
  static constexpr bool sends_partial_values = false;
  static constexpr determinism level = determinism::any_chunking;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks - 1, blocks(p)}; }
  TOROID_HOST_DEVICE static constexpr int blocks(problem p) noexcept { return p.ranks * p.ranks; }
  TOROID_HOST_DEVICE static constexpr int steps(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept { return p.ranks - (step == 0); }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    if (step == 0) {
      const int to = everyone_but(p.rank, p.ranks).at(index, p.ranks);
      return {only(p.rank), place::input, {p.rank * p.ranks + to, 1}, only(to), place::input};
    }
    const int from = topology::wrap(p.rank - index, p.ranks);
    return {only(from), place::input, {from * p.ranks + p.rank, 1}, only(p.rank), place::delivered};
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem, int index) noexcept { return {index, 1}; }
  TOROID_HOST_DEVICE static constexpr int slot_places(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr int slot_place(problem p, int, int block_index) noexcept {
    return block_index % p.ranks;
  }
  TOROID_HOST_DEVICE static constexpr int outgoing_index(problem p, int block_index) noexcept {
    return block_index % p.ranks;
  }
  TOROID_HOST_DEVICE static constexpr int incoming_index(problem p, int block_index) noexcept {
    return block_index / p.ranks;
  }
};

/// Everyone fetches everyone's block; a rank brings one.
///
/// Cost: 2 steps; a rank sends its block to each of the others.
struct fetching_all_gather {
  static constexpr bool pipelined = true;
  static constexpr bool one_value_a_step = true;
  static constexpr bool sends_partial_values = false;
  static constexpr determinism level = determinism::any_chunking;
  TOROID_HOST_DEVICE static constexpr share sent(problem p) noexcept { return {p.ranks - 1, p.ranks}; }
  TOROID_HOST_DEVICE static constexpr int blocks(problem p) noexcept { return p.ranks; }
  TOROID_HOST_DEVICE static constexpr int steps(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr int touching_steps(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr int operations(problem p, int step) noexcept {
    return step == 0 ? p.ranks > 1 : p.ranks;
  }
  TOROID_HOST_DEVICE static constexpr operation at(problem p, int step, int index) noexcept {
    if (step == 0) return {only(p.rank), place::input, {p.rank, 1}, everyone_but(p.rank, p.ranks), place::input};
    const int from = topology::wrap(p.rank - index, p.ranks);
    return {only(from), place::input, {from, 1}, only(p.rank), place::delivered};
  }
  TOROID_HOST_DEVICE static constexpr int class_count(problem) noexcept { return 2; }
  TOROID_HOST_DEVICE static constexpr step_class class_at(problem, int index) noexcept { return {index, 1}; }
  TOROID_HOST_DEVICE static constexpr int outgoing_index(problem, int) noexcept { return 0; }
  TOROID_HOST_DEVICE static constexpr int incoming_index(problem, int block_index) noexcept { return block_index; }
};

/// direct_reduce_scatter on blocks of any length.
struct mapped_reduce_scatter : direct_reduce_scatter {
  static constexpr bool plain_operations = false;
  TOROID_HOST_DEVICE static constexpr int outgoing_index(problem, int block_index) noexcept { return block_index; }
  TOROID_HOST_DEVICE static constexpr int incoming_index(problem, int) noexcept { return 0; }
};

static_assert(mapping<direct_exchange> && mapping<fetching_all_gather> && mapping<mapped_reduce_scatter>);

}  // namespace toroid::schedule
