// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/schedule/concept.hpp>
#include <toroid/schedule/cost.hpp>
#include <toroid/schedule/detail/classes.hpp>
#include <toroid/schedule/detail/dataflow.hpp>
#include <toroid/schedule/detail/execution.hpp>
#include <toroid/schedule/detail/text.hpp>
#include <toroid/schedule/detail/unrolled.hpp>
#include <toroid/schedule/verification.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

/// Proves a schedule for a number of ranks, without transports and without memory.
namespace toroid::schedule {

namespace detail {

/// What every rank has to answer alike.
template <schedule_type S>
std::optional<violation> check_agreement(S, int ranks, collective_kind kind, int root, int rows) {
  const problem zero{0, ranks, root, rows};
  const int steps = S::steps(zero), touching = S::touching_steps(zero), blocks = S::blocks(zero);
  if (steps < 1) return violation{-1, -1, -1, "has no steps"};
  if (blocks < 1) return violation{-1, -1, -1, "has no blocks"};
  if (touching < 0 || touching > steps)
    return violation{-1, -1, -1, joined("touching_steps is ", touching, " of ", steps)};
  const bool by_rank = kind == collective_kind::reduce_scatter || kind == collective_kind::all_gather ||
                       kind == collective_kind::gather || kind == collective_kind::scatter;
  if (kind == collective_kind::all_to_all && blocks != ranks * ranks)
    return violation{-1, -1, -1, joined("has ", blocks, " blocks where each rank has one for each")};
  if (rows < 1 || ranks % rows != 0) return violation{-1, -1, -1, joined(ranks, " ranks do not form ", rows, " rows")};
  if (by_rank && blocks != ranks)
    return violation{-1, -1, -1, joined("has ", blocks, " blocks where each rank owns one")};
  for (int rank = 1; rank < ranks; ++rank) {
    const problem p{rank, ranks, root, rows};
    bool same = S::steps(p) == steps && S::touching_steps(p) == touching && S::blocks(p) == blocks &&
                S::class_count(p) == S::class_count(zero);
    for (int c = 0; same && c < S::class_count(zero); ++c)
      same = S::class_at(p, c).first == S::class_at(zero, c).first &&
             S::class_at(p, c).count == S::class_at(zero, c).count;
    if (!same) return violation{rank, -1, -1, "disagrees with rank 0 about steps, touching_steps, blocks or classes"};
  }
  return {};
}

/// Ways to run that an executor may choose, with as many pieces as it takes to use each slot again. Few slots are hard
/// on waiting, many on the order of accesses; so all depths are run, and what does not depend on slots at the ends
/// only.
inline std::optional<violation> check_executions(const unrolled& u, const dataflow& flow, collective_kind kind,
                                                 const verify_options& o) {
  for (int depth = o.least_depth; depth <= o.most_depth; ++depth) {
    const bool at_an_end = depth == o.least_depth || depth == o.most_depth;
    for (const value_path path : {value_path::staged, value_path::direct}) {
      for (const bool in_place : {false, true}) {
        if (!in_place && kind == collective_kind::broadcast) continue;
        if (in_place && kind == collective_kind::all_to_all) continue;  // blocks have another place then
        if (!at_an_end && (path == value_path::direct || (in_place && kind != collective_kind::broadcast))) continue;
        if (in_place && path == value_path::direct && !o.direct_in_place && kind != collective_kind::broadcast)
          continue;
        const int pieces = u.pipelined ? depth + 2 : 2;
        if (auto found = execution(u, flow, kind, {path, in_place, depth, pieces}).run()) return found;
      }
    }
  }
  return {};
}

}  // namespace detail

/// Runs all ranks of a schedule symbolically and looks for a reason why it would not do what it should.
///
/// If it finds none, these hold for this number of ranks, whatever the timing, element type and count:
///
/// * each block that a rank sends in a step is received by exactly one operation in the next, at the same place, and
///   nothing is received that was not sent;
/// * every block of every rank's result ends with each contribution that belongs there exactly once, combined in the
///   same order and grouping on all ranks; `completes` is set where a value becomes complete, nowhere else;
/// * ranks never wait for each other in a circle, even if a rank has only a few slots;
/// * also where peers read and write each other's buffers, no two accesses of which one writes are left without an
///   order, no operand is overwritten before it is read, and none comes after `touching_steps`; both with separate
///   buffers and in place. What waits for what is written at detail::execution;
/// * no two values that stand in a slot at one time share a place there;
/// * step classes are what they claim to be, and all ranks do the same up to rank arithmetic, or say that they do not.
///
/// @param ranks  at least 1
/// @param root   of a broadcast, a reduction to one rank, a gather or a scatter, in [0, ranks)
///
/// Cost: for 64 ranks at most a tenth of a second, a few seconds for a torus; grows with ranks^2 times steps. Pure.
///
/// Example: `verify(ring_all_reduce{}, 8, collective_kind::all_reduce).proved()`
template <schedule_type S>
verification verify(S schedule, int ranks, collective_kind kind, int root = 0, verify_options o = {}) {
  if (auto found = detail::check_agreement(schedule, ranks, kind, root, o.rows)) return {std::move(found), {}};
  const detail::unrolled u = detail::unroll(schedule, ranks, root, o.rows);
  detail::dataflow flow(u, kind, o.in_rank_order);
  if (auto found = flow.run()) return {std::move(found), {}};
  if (auto found = detail::check_executions(u, flow, kind, o)) return {std::move(found), {}};
  if (auto found = detail::check_classes(u)) return {std::move(found), {}};
  if (!ranks_differ<S>())
    if (auto found = detail::check_symmetry(schedule, u)) return {std::move(found), {}};
  verification proof;
  for (int b = 0; b < u.blocks; ++b) {
    if (kind == collective_kind::all_to_all) {
      proof.expressions.push_back(flow.values().text(flow.result_of(b % ranks, b)));
      continue;
    }
    const bool to_root = kind == collective_kind::reduce || kind == collective_kind::gather;
    const bool by_rank = kind == collective_kind::reduce_scatter || kind == collective_kind::scatter;
    const int keeper = by_rank ? b : to_root ? root : 0;
    proof.expressions.push_back(flow.values().text(flow.result_of(keeper, b)));
  }
  return proof;
}

/// Counts what every rank moves, and compares it with formulas.
///
/// @param count     elements of the whole vector, whether the blocks divide it or not
/// @param sent      sent(problem) -> std::size_t: elements a rank should send
/// @param received  received(problem) -> std::size_t: elements a rank should receive
template <schedule_type S, class Sent, class Received>
verification verify_traffic(S schedule, int ranks, std::size_t count, Sent sent, Received received, int root = 0,
                            int rows = 1) {
  std::size_t under_way = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const problem p{rank, ranks, root, rows};
    const traffic found = traffic_of(schedule, p, count);
    const auto complaint = [&](const char* verb, std::size_t is, std::size_t should) {
      return verification{violation{rank, -1, -1, detail::joined(verb, " ", is, " elements instead of ", should)}, {}};
    };
    if (found.sent != sent(p)) return complaint("sends", found.sent, sent(p));
    if (found.received != received(p)) return complaint("receives", found.received, received(p));
    under_way += found.sent - found.received;  // modulo 2^64, which comes out right in the end
  }
  if (under_way != 0) return {violation{-1, -1, -1, "more is sent than received, or less"}, {}};
  return {};
}

}  // namespace toroid::schedule
