// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/collective_call.hpp>
#include <toroid/collective/detail/host_thread.hpp>
#include <toroid/collective/detail/inline_executor.hpp>
#include <toroid/collective/detail/mapped_executor.hpp>
#include <toroid/communicator/mapped_session.hpp>
#include <toroid/core/error.hpp>
#include <toroid/schedule/layout.hpp>
#include <toroid/schedule/walk.hpp>

#include <cstddef>
#include <string>

namespace toroid::detail {

/// Bytes of a piece where nothing else was asked for: short enough to stay in a core's own cache until it is read.
inline constexpr std::size_t default_piece_bytes = std::size_t{64} << 10;

/// How a schedule's pieces are cut for a path.
///
/// @throws usage_error  if not even one element of each block fits a hand-over region
template <class Schedule>
schedule::layout layout_for(path how, const schedule::problem& p, std::size_t count, std::size_t element_size,
                            std::size_t segment_bytes, std::size_t region_bytes) {
  schedule::layout plan;
  plan.count = count;
  plan.blocks = Schedule::blocks(p);
  plan.compact = Schedule::one_value_a_step && how != path::pulled;  // pulled operands lie side by side
  const int places = how == path::pulled ? plan.blocks : schedule::slot_places<Schedule>(p);
  const bool uses_regions = how != path::in_place || Schedule::sends_partial_values;
  std::size_t bytes = segment_bytes;
  if (uses_regions) {
    const std::size_t room = region_bytes / static_cast<std::size_t>(places);
    if (bytes == 0) bytes = default_piece_bytes;
    if (bytes > room) bytes = room;
    if (element_size > room)
      throw usage_error("toroid: an element of " + std::to_string(element_size) +
                        " bytes does not fit a hand-over slot of " + std::to_string(room) +
                        " bytes; raise options.region_bytes");
  }
  if (bytes == 0) {
    plan.piece = schedule::longest_of<Schedule>(p, count);
  } else {
    plan.piece = bytes / element_size;
    if (plan.piece > 64) plan.piece -= plan.piece % 64;  // pieces of one block begin at like alignments
  }
  if (plan.piece == 0) plan.piece = 1;
  return plan;
}

/// Runs a two-step schedule with the message beside the flag.
/// @pre  the call's bytes fit transport::inline_bytes
template <class Schedule, class Transport>
void run_inline(mapped_session<Transport>& session, const collective_call& call) {
  const schedule::problem p{session.transport().rank(), session.transport().size(), call.identity.root};
  const auto mark = session.begin(call.identity);
  session.inspect(call.input, call.input_count(p.ranks, p.rank), call.first_flaw, call.identity.details);
  session.guarded([&] {
    inline_executor<Transport> executor(session, call, Schedule::blocks(p));
    schedule::walk<Schedule>(p, 1, executor);
  });
  session.end(call.identity);
  session.refuse_flaws(call.identity);
}

/// Whether receivers may fetch what a schedule delivers from where its sender has it.
template <class Schedule>
inline constexpr bool may_fetch = requires {
  requires Schedule::fetches;
};
/// Messages shorter than this are not fetched: waiting until they are there costs more than it could save.
inline constexpr std::size_t least_fetched_bytes = std::size_t{16} << 10;

/// Messages of ordinary memory shorter than this are always staged: a system call costs more than it could save.
inline constexpr std::size_t least_pulled_bytes = std::size_t{32} << 10;

/// What walking a schedule along a path takes; from now on the session counts its steps as those of this call.
template <class Schedule, path Path, class Transport>
mapped_problem begin_walk(mapped_session<Transport>& session, const collective_call& call, const schedule::problem& p,
                          const schedule::layout& layout) {
  const std::size_t pieces = schedule::pieces_of<Schedule>(p, layout);
  const std::size_t length = schedule::walk_length<Schedule>(p, pieces);
  mapped_problem problem;
  problem.ranks = p;
  problem.layout = layout;
  problem.pieces = pieces;
  problem.element_size = call.identity.element_size;
  problem.base = session.base();
  problem.touching_end = Path == path::in_place ? schedule::touching_length<Schedule>(p, pieces) : length;
  problem.non_temporal = call.bytes() >= session.non_temporal_bytes();
  session.advance(length + 1);
  session.touching_ends_at(problem.base + 1 + problem.touching_end);
  return problem;
}

/// Walks one schedule along one path, after all ranks have entered.
template <class Schedule, path Path, class Transport>
void walk_mapped(mapped_session<Transport>& session, const collective_call& call, const schedule::problem& p,
                 const schedule::layout& layout) {
  const mapped_problem problem = begin_walk<Schedule, Path>(session, call, p, layout);
  host_thread<Transport> policy(session, call);
  executor_for<Path, host_thread<Transport>, Schedule> executor(policy, problem);
  schedule::walk<Schedule>(p, problem.pieces, executor);
  executor.leave();
}

/// How ranks enter a call on buffers of any length, and what they agree on then.
template <class PulledSchedule, class Transport>
struct mapped_entrance {
  using ways = transport::buffer_addresses;
  static constexpr bool may_pull = pulling_transport<Transport> && !PulledSchedule::sends_partial_values;
  std::uint64_t agreed = 0;  ///< ways that all ranks can go
  bool pulls = false;

  /// Tells the others where this rank's buffers are.
  /// @param learns  whether this call's time will be noted, so that rank 0 may try the way that it knows less of
  void publish(mapped_session<Transport>& session, const collective_call& call, const schedule::problem& p,
               bool learns) {
    Transport& transport = session.transport();
    const std::size_t size = call.identity.element_size;
    const auto reachable = [&](const std::byte* memory, std::size_t elements) {
      return elements == 0 || transport.reachable(memory, elements * size);  // nobody asks where nothing stands
    };
    if (reachable(call.input, call.input_count(p.ranks, p.rank)) &&
        reachable(call.result, call.result_count(p.ranks, p.rank)))
      agreed |= ways::reachable;
    if constexpr (may_pull) {
      // Pulled operands lie side by side in a region, so there is less room for each than staged ones have.
      const bool fits = size <= transport.region_bytes() / static_cast<std::size_t>(PulledSchedule::blocks(p));
      if (fits && call.bytes() >= least_pulled_bytes && p.ranks > 1 && transport.can_pull()) agreed |= ways::can_pull;
      if (p.rank == 0 && agreed == ways::can_pull)
        pulls = (learns ? session.chooser().choose(call.bytes()) : session.chooser().better(call.bytes())) ==
                path_chooser::pulled;
    }
    // Storing to lines that a peer has in its cache costs more than reading them there; past the caches it does not.
    if (call.bytes() >= least_fetched_bytes && call.bytes() < session.non_temporal_bytes()) agreed |= ways::may_fetch;
    session.own_entry().buffers = {transport.address_of(call.input), transport.address_of(call.result),
                                   reinterpret_cast<std::uintptr_t>(call.input),
                                   reinterpret_cast<std::uintptr_t>(call.result),
                                   pulls ? agreed | ways::prefers_pull : agreed};
    if ((agreed & ways::reachable) != 0) session.lends_buffers();
    session.publish_entry();
  }

  /// Waits for the others.
  void hear(mapped_session<Transport>& session, const collective_call& call, const schedule::problem& p) {
    for (int r = 0; r < p.ranks; ++r) {
      if (r == p.rank) continue;
      const std::uint64_t theirs = session.wait_for_entry(r, call.identity).buffers.ways;
      agreed &= theirs;
      if (r == 0) pulls = (theirs & ways::prefers_pull) != 0;
    }
    session.all_have_entered();
  }

  /// To be asked when all have been heard.
  bool fetches() const noexcept { return (agreed & ways::may_fetch) != 0; }
};

/// Runs a collective on buffers of any length: along one schedule where buffers are read where they stand, along
/// another, or the same, where they go through hand-over regions, along a third, or the first, where nobody can write a
/// peer's memory, but all can read it. All must combine operands in the same order.
template <class Schedule, class StagedSchedule = Schedule, class PulledSchedule = Schedule, class Transport>
void run_mapped(mapped_session<Transport>& session, const collective_call& call) {
  using entrance = mapped_entrance<PulledSchedule, Transport>;
  using ways = typename entrance::ways;
  Transport& transport = session.transport();
  const schedule::problem p{transport.rank(), transport.size(), call.identity.root, call.identity.rows};
  // Both may refuse, and do so before anything moves.
  const auto plan_for = [&]<class S>(S, path how) {
    return layout_for<S>(how, p, call.identity.count, call.identity.element_size, call.identity.segment_bytes,
                         transport.region_bytes());
  };
  const schedule::layout direct_layout = plan_for(Schedule{}, path::in_place);
  const schedule::layout staged_layout = plan_for(StagedSchedule{}, path::staged);
  const auto mark = session.begin(call.identity);
  session.inspect(call.input, call.input_count(p.ranks, p.rank), call.first_flaw, call.identity.details);
  entrance agreed_on;
  session.guarded([&] {
    agreed_on.publish(session, call, p, true);
    agreed_on.hear(session, call, p);
  });
  session.refuse_flaws(call.identity);
  session.guarded([&] {
    if ((agreed_on.agreed & ways::reachable) != 0) {
      if constexpr (may_fetch<Schedule>)
        if (agreed_on.fetches()) return walk_mapped<Schedule, path::fetched>(session, call, p, direct_layout);
      return walk_mapped<Schedule, path::in_place>(session, call, p, direct_layout);
    }
    if constexpr (entrance::may_pull) {
      if ((agreed_on.agreed & ways::can_pull) != 0) {
        const std::int64_t began = p.rank == 0 ? transport::detail::monotonic_nanoseconds() : 0;
        if (agreed_on.pulls)
          walk_mapped<PulledSchedule, path::pulled>(session, call, p, plan_for(PulledSchedule{}, path::pulled));
        else
          walk_mapped<StagedSchedule, path::staged>(session, call, p, staged_layout);
        if (p.rank == 0)
          session.chooser().note(call.bytes(), agreed_on.pulls ? path_chooser::pulled : path_chooser::staged,
                                 transport::detail::monotonic_nanoseconds() - began);
        return;
      }
    }
    walk_mapped<StagedSchedule, path::staged>(session, call, p, staged_layout);
  });
}

}  // namespace toroid::detail
