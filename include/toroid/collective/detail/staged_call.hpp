// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/collective_call.hpp>
#include <toroid/core/detail/converting_loops.hpp>
#include <toroid/topology/block.hpp>

#include <cstddef>
#include <cstring>
#include <span>

/// Calls whose elements go through memory of the communicator, which peers can read: those that travel as another type,
/// and those of several buffers. Longer ones go piece by piece, each a call of its own.
namespace toroid::detail {

/// Elements of the caller's that stand side by side: a buffer, or one of several.
struct element_run {
  const std::byte* input = nullptr;
  std::byte* result = nullptr;
  std::size_t count = 0;
};

/// How elements get into that memory, and results out of it.
struct staging_plan {
  std::size_t stored_size = 1, staged_size = 1;
  convert_function in = nullptr, out = nullptr;  ///< null: as they are
};

/// What a communicator holds for this at most, but for elements that are longer.
inline constexpr std::size_t most_staged_bytes = std::size_t{4} << 20;

/// Elements of a piece of a vector.
constexpr std::size_t staged_piece(std::size_t staged_size) noexcept {
  return staged_size < most_staged_bytes ? most_staged_bytes / staged_size : 1;
}

inline void stage_in(const staging_plan& plan, const std::byte* from, std::byte* to, std::size_t count) {
  if (count == 0) return;
  if (plan.in != nullptr)
    plan.in(from, to, count);
  else
    std::memcpy(to, from, count * plan.stored_size);
}
inline void stage_out(const staging_plan& plan, const std::byte* from, std::byte* to, std::size_t count) {
  if (count == 0) return;
  if (plan.out != nullptr)
    plan.out(from, to, count);
  else
    std::memcpy(to, from, count * plan.stored_size);
}

/// Calls f(run, first element of it, elements, elements of all runs before those) for what lies in [begin, begin +
/// count) of the vector that the runs make up.
template <class F>
void for_runs(std::span<const element_run> runs, std::size_t begin, std::size_t count, F f) {
  std::size_t before = 0;
  for (const element_run& run : runs) {
    const std::size_t from = begin > before ? begin - before : 0;
    const std::size_t to = begin + count < before + run.count ? begin + count - before : run.count;
    if (begin + count > before && from < to) f(run, from, to - from, before + from - begin);
    before += run.count;
  }
}

/// An all-reduce of a vector that is made up of runs.
///
/// @param call  says everything but count and buffers
/// @param details  what call.identity.details points to: later pieces look for no flaws
/// @param run   called as run(call) for each piece
template <class Session, class Run>
void all_reduce_staged(Session& session, collective_call& call, call_details& details, const staging_plan& plan,
                       std::span<const element_run> runs, Run run) {
  std::size_t whole = 0, begin = 0;
  for (const element_run& r : runs) whole += r.count;
  const std::size_t most = staged_piece(plan.staged_size);
  do {
    const std::size_t count = whole - begin < most ? whole - begin : most;
    std::byte* const memory = session.staging(count * plan.staged_size);
    for_runs(runs, begin, count, [&](const element_run& r, std::size_t first, std::size_t n, std::size_t at) {
      stage_in(plan, r.input + first * plan.stored_size, memory + at * plan.staged_size, n);
    });
    call.identity.count = count;
    call.input = call.result = memory;
    run(call);
    for_runs(runs, begin, count, [&](const element_run& r, std::size_t first, std::size_t n, std::size_t at) {
      stage_out(plan, memory + at * plan.staged_size, r.result + first * plan.stored_size, n);
    });
    details.inspected_runs = 0;
    begin += count;
  } while (begin < whole);
}

/// A reduce-scatter. Its pieces are made of as many elements of each block.
///
/// @param result  of the own block
template <class Session, class Run>
void reduce_scatter_staged(Session& session, collective_call& call, call_details& details, const staging_plan& plan,
                           const std::byte* input, std::byte* result, std::size_t whole, Run run) {
  const int ranks = session.transport().size(), rank = session.transport().rank();
  const std::size_t longest = longest_block(whole, ranks);
  const std::size_t room = staged_piece(plan.staged_size) / static_cast<std::size_t>(ranks);
  const std::size_t most = room > 0 ? room : 1;
  std::size_t begin = 0;  // in each block
  do {
    const auto part_of = [&](int r) {
      const block all = block_of(whole, ranks, r);
      const std::size_t left = all.count > begin ? all.count - begin : 0;
      return block{all.begin + begin, left < most ? left : most};
    };
    // The first blocks of a vector are the longer ones, and so are the first parts of a piece: it has their blocks.
    std::size_t count = 0;
    for (int r = 0; r < ranks; ++r) count += part_of(r).count;
    std::byte* const memory = session.staging(count * plan.staged_size);
    for (int r = 0; r < ranks; ++r) {
      const block part = part_of(r);
      stage_in(plan, input + part.begin * plan.stored_size, memory + block_of(count, ranks, r).begin * plan.staged_size,
               part.count);
    }
    std::byte* const own = memory + block_of(count, ranks, rank).begin * plan.staged_size;
    call.identity.count = count;
    call.input = memory;
    call.result = own;
    run(call);
    stage_out(plan, own, result + begin * plan.stored_size, part_of(rank).count);
    details.inspected_runs = 0;
    begin += most;
  } while (begin < longest);
}

}  // namespace toroid::detail
