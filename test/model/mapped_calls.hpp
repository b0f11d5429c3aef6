// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/tally.hpp"
#include "schedule/models.hpp"

#include <toroid/collective/detail/mapped_executor.hpp>
#include <toroid/schedule/walk.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

/// Calls on long buffers, explored: the library's own walk(), schedules and mapped_executor, over a policy whose waits,
/// signals and bytes are the model's. Only what run_mapped does around them is written again here.
namespace model {

using toroid::detail::path;
using toroid::schedule::collective_kind;
using toroid::schedule::layout;
using toroid::schedule::problem;

enum class planted {
  nothing,
  relaxed_publish,  ///< progress is published without release
  relaxed_wait,     ///< and waited for without acquire
  publish_first,    ///< progress is published before the data of its step are written
  published_early,  ///< one step too much is published
  no_step_wait,     ///< data are read without waiting for them
  step_wait_early,  ///< ... or a step too early
  no_slot_wait,     ///< a region is used again without waiting
  slot_wait_early,  ///< ... or a step too early
  region_missing,   ///< there is one region less than there should be
  no_entry,         ///< ranks do not wait for each other's entries
  relaxed_entry,    ///< entries are published without release
  no_leave,         ///< in place: the call returns without waiting for its peers
  leave_early,      ///< ... or waits for a step less
};

/// The ranks of one group: mailboxes, and all bytes that ranks write. An element is a byte of `addresses`, which is
/// never looked into: the value stands in the plain variable of the same index.
class mapped_group {
 public:
  struct mailbox {
    mailbox(machine& m, const std::string& rank)
        : sequence{atomic(m, rank + ".entries[0].sequence"), atomic(m, rank + ".entries[1].sequence")},
          buffers{plain(m, rank + ".entries[0].buffers"), plain(m, rank + ".entries[1].buffers")},
          progress(m, rank + ".progress") {}
    atomic sequence[2];
    plain buffers[2];
    atomic progress;
  };

  mapped_group(int n, std::size_t elements, std::size_t region_elements, planted f)
      : ranks(n), fault(f), count(elements), region_size(region_elements) {
    using toroid::transport::region_count;
    for (int r = 0; r < n; ++r) {
      const std::string rank = "rank " + std::to_string(r);
      boxes.emplace_back(m, rank);
      const auto add = [&](const std::string& name, std::size_t length) {
        for (std::size_t i = 0; i < length; ++i)
          values.emplace_back(m, rank + "." + name + "[" + std::to_string(i) + "]");
      };
      add("input", count);
      add("result", count);
      for (int i = 0; i < region_count; ++i) add("regions[" + std::to_string(i) + "]", region_size);
    }
    addresses.resize(values.size());
  }

  std::byte* input(int rank) { return of_rank(rank); }
  std::byte* result(int rank) { return of_rank(rank) + count; }
  std::byte* region(int rank, int index) {
    return of_rank(rank) + 2 * count + static_cast<std::size_t>(index) * region_size;
  }
  plain& at(const std::byte* address) { return values[static_cast<std::size_t>(address - addresses.data())]; }

  machine m;
  int ranks;
  planted fault;
  std::size_t count, region_size;
  std::deque<mailbox> boxes;
  std::deque<plain> values;
  std::vector<std::byte> addresses;

 private:
  std::byte* of_rank(int rank) {
    return addresses.data() + static_cast<std::size_t>(rank) * (addresses.size() / static_cast<std::size_t>(ranks));
  }
};

/// One rank's side of its calls: what toroid::detail::mapped_session remembers, and host_thread's part of
/// mapped_executor's policy.
class mapped_rank {
 public:
  mapped_rank(mapped_group& g, int rank) : m_group(g), m_rank(rank) {}

  // ---- the policy

  const std::byte* own_input() { return input_at(m_rank); }
  std::byte* own_result() { return result_at(m_rank); }
  const std::byte* input_of(int rank) { return read_entry(rank), input_at(rank); }
  std::byte* result_of(int rank) { return read_entry(rank), result_at(rank); }
  std::byte* region_of(int rank, int index) {
    const int regions = toroid::transport::region_count - (is(planted::region_missing) ? 1 : 0);
    return m_group.region(rank, index % regions);
  }
  /// The kernel reads the peer's memory in this rank's name.
  const std::byte* pull_input(int rank, std::size_t offset, std::size_t bytes, std::byte* to) {
    return pull(input_of(rank) + offset, bytes, to);
  }
  const std::byte* pull_result(int rank, std::size_t offset, std::size_t bytes, std::byte* to) {
    return pull(result_of(rank) + offset, bytes, to);
  }
  const std::byte** sources() noexcept {
    m_asks_for_slot = false;
    return m_sources;
  }
  std::byte** destinations() noexcept {
    m_asks_for_slot = true;  // waits from here on are for a free region
    return m_destinations;
  }
  void note_step(int) noexcept {}

  void wait(int rank, std::uint64_t progress) {
    const machine::inside in(m_group.m, m_leaves ? "leave" : m_asks_for_slot ? "wait_for_slot" : "perform_block");
    const planted skip = m_leaves ? planted::no_leave : m_asks_for_slot ? planted::no_slot_wait : planted::no_step_wait;
    const planted early = m_leaves          ? planted::leave_early
                          : m_asks_for_slot ? planted::slot_wait_early
                                            : planted::step_wait_early;
    if (is(skip)) return;
    box(rank).progress.await(progress - (is(early) ? 1 : 0),
                             is(planted::relaxed_wait) ? order::relaxed : order::acquire);
  }

  void publish(std::uint64_t progress) {
    const machine::inside in(m_group.m, "finish");
    box(m_rank).progress.store(progress + (is(planted::published_early) ? 1 : 0),
                               is(planted::relaxed_publish) ? order::relaxed : order::release);
    write_late();
  }

  void combine(const toroid::detail::reduce_arguments& arguments, bool) {
    const machine::inside in(m_group.m, "combine");
    for (std::size_t i = 0; i < arguments.count; ++i) {
      std::uint64_t value = 0;
      for (int s = 0; s < arguments.source_count; ++s) value += m_group.at(arguments.sources[s] + i).read();
      for (int d = 0; d < arguments.destination_count; ++d) put(arguments.destinations[d] + i, value);
    }
  }

  // ---- the call

  /// toroid::detail::run_mapped and walk_mapped, after the path has been agreed on, between writing the input and
  /// looking at the result; then both buffers are written over, as their owner may.
  /// @param shares  whether the input and the result are the same buffer
  template <path Path, class Schedule>
  void call(Schedule, collective_kind kind, const layout& pieces, bool shares, int root) {
    const problem p{m_rank, m_group.ranks, root};
    m_shares = shares;
    ++m_call;
    fill_input(kind, p);
    enter();

    toroid::detail::mapped_problem problem;
    problem.ranks = p;
    problem.layout = pieces;
    problem.pieces = toroid::schedule::pieces_of<Schedule>(p, pieces);
    problem.base = m_ticks;
    const std::size_t length = toroid::schedule::walk_length<Schedule>(p, problem.pieces);
    problem.touching_end =
        Path == path::in_place ? toroid::schedule::touching_length<Schedule>(p, problem.pieces) : length;
    m_ticks += length + 1;
    m_leaves = false;
    toroid::detail::executor_for<Path, mapped_rank, Schedule> executor(*this, problem);
    toroid::schedule::walk<Schedule>(p, problem.pieces, executor);
    write_late();
    m_leaves = true;
    executor.leave();

    check_result(kind, p);
    for (std::size_t i = 0; i < m_group.count; ++i) {
      m_group.at(input_at(m_rank) + i).write(0);
      if (!shares) m_group.at(result_at(m_rank) + i).write(0);
    }
  }

 private:
  struct order {
    static constexpr auto relaxed = std::memory_order_relaxed;
    static constexpr auto acquire = std::memory_order_acquire;
    static constexpr auto release = std::memory_order_release;
  };

  bool is(planted f) const noexcept { return m_group.fault == f; }
  mapped_group::mailbox& box(int rank) { return m_group.boxes[static_cast<std::size_t>(rank)]; }
  std::byte* input_at(int rank) { return m_shares ? result_at(rank) : m_group.input(rank); }
  std::byte* result_at(int rank) { return m_group.result(rank); }

  /// What run_mapped does from begin() to all_have_entered(): nobody has to wait before, since all waited for all in
  /// the call before.
  void enter() {
    const machine::inside in(m_group.m, "run_mapped");
    mapped_group::mailbox& mine = box(m_rank);
    mine.buffers[m_call & 1].write(m_call);  // stands for the addresses, which only the model knows
    mine.sequence[m_call & 1].store(m_call, is(planted::relaxed_entry) ? order::relaxed : order::release);
    if (is(planted::no_entry)) return;
    for (int r = 0; r < m_group.ranks; ++r) {
      if (r == m_rank) continue;
      box(r).sequence[m_call & 1].await(m_call, order::acquire);
      read_entry(r);
    }
  }

  const std::byte* pull(const std::byte* from, std::size_t bytes, std::byte* to) {
    const machine::inside in(m_group.m, "pull");
    for (std::size_t i = 0; i < bytes; ++i) put(to + i, m_group.at(from + i).read());
    return to;
  }

  void put(std::byte* to, std::uint64_t value) {
    if (is(planted::publish_first))
      m_late.push_back({to, value});
    else
      m_group.at(to).write(value);
  }

  void read_entry(int rank) {
    if (is(planted::no_entry)) return;
    m_group.m.require(box(rank).buffers[m_call & 1].read() == m_call, "wrong value in an entry");
  }

  std::uint64_t contribution(int rank, std::size_t i) const noexcept {
    return 1'000'000 * m_call + 1000 * i + (std::uint64_t{1} << rank);
  }

  void fill_input(collective_kind kind, const problem& p) {
    if (kind == collective_kind::broadcast && p.rank != p.root) return;
    for (std::size_t i = 0; i < m_group.count; ++i) {
      const bool has = kind != collective_kind::all_gather || in_block(i, p.rank);
      if (has) m_group.at(input_at(m_rank) + i).write(contribution(m_rank, i));
    }
  }

  void check_result(collective_kind kind, const problem& p) {
    for (std::size_t i = 0; i < m_group.count; ++i) {
      if (kind == collective_kind::reduce_scatter && !in_block(i, p.rank)) continue;
      std::uint64_t expected = 0;
      for (int r = 0; r < p.ranks; ++r) {
        const bool adds = kind == collective_kind::broadcast    ? r == p.root
                          : kind == collective_kind::all_gather ? in_block(i, r)
                                                                : true;
        if (adds) expected += contribution(r, i);
      }
      m_group.m.require(m_group.at(result_at(m_rank) + i).read() == expected, "wrong value");
    }
  }

  bool in_block(std::size_t i, int rank) const noexcept {
    const toroid::block b = toroid::block_of(m_group.count, m_group.ranks, rank);
    return i >= b.begin && i < b.begin + b.count;
  }

  void write_late() {
    for (const auto& [to, value] : m_late) m_group.at(to).write(value);
    m_late.clear();
  }

  mapped_group& m_group;
  int m_rank;
  std::uint64_t m_call = 0, m_ticks = 0;
  bool m_shares = false, m_leaves = false, m_asks_for_slot = false;
  const std::byte* m_sources[max_threads + 1] = {};
  std::byte* m_destinations[max_threads + 1] = {};
  std::vector<std::pair<std::byte*, std::uint64_t>> m_late;
};

/// Whether to explore a schedule takes seconds: on a torus many steps of many blocks are under way at once.
template <class Schedule>
constexpr bool takes_long(Schedule, int ranks) {
  return std::is_same_v<Schedule, toroid::schedule::torus_2d_all_reduce> && ranks > 2;
}

/// One of the calls that ranks make one after the other.
struct planned_call {
  std::function<void(mapped_rank&)> make;
  std::size_t region_elements = 0;  ///< that it needs
};

/// A call on `count` elements in pieces of one.
template <path Path, class Schedule>
planned_call plan(Schedule schedule, collective_kind kind, int ranks, std::size_t count, bool shares, int root = 0) {
  layout how;
  how.count = count;
  how.blocks = Schedule::blocks({0, ranks, root});
  how.compact = Schedule::one_value_a_step && Path != path::pulled;
  const problem p{0, ranks, root};
  // Pulled operands of a piece lie side by side.
  const int places = Path == path::pulled ? std::max(how.blocks, ranks) : toroid::schedule::slot_places<Schedule>(p);
  return {[=](mapped_rank& rank) { rank.template call<Path>(schedule, kind, how, shares, root); },
          static_cast<std::size_t>(places)};
}

/// All ranks make these calls on buffers of `count` elements, and write their buffers over after each.
inline report explore_calls(tally& told, int ranks, std::size_t count, const std::vector<planned_call>& calls,
                            planted fault = planted::nothing) {
  std::size_t region_elements = 0;
  for (const planned_call& call : calls) region_elements = std::max(region_elements, call.region_elements);
  mapped_group g(ranks, count, region_elements, fault);
  for (int r = 0; r < ranks; ++r)
    g.m.add_thread("rank " + std::to_string(r), [&g, &calls, r] {
      mapped_rank rank(g, r);
      for (const planned_call& call : calls) call.make(rank);
      return std::uint64_t{0};
    });
  return told.explore(g.m);
}

/// The same with calls of one schedule from these roots, and so many pieces that a rank comes back to its first
/// hand-over region and goes on from there.
template <path Path, class Schedule>
report explore_calls(tally& told, Schedule schedule, collective_kind kind, int ranks, const std::vector<int>& roots,
                     bool shares, planted fault = planted::nothing) {
  const problem p{0, ranks, 0};
  std::size_t pieces = 1;
  while (toroid::schedule::walk_length<Schedule>(p, pieces) < 2 * toroid::transport::region_count) ++pieces;
  const std::size_t count = pieces * static_cast<std::size_t>(Schedule::blocks(p));
  std::vector<planned_call> calls;
  for (const int root : roots) calls.push_back(plan<Path>(schedule, kind, ranks, count, shares, root));
  return explore_calls(told, ranks, count, calls, fault);
}

}  // namespace model
