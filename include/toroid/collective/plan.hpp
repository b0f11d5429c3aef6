// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/algorithms.hpp>
#include <toroid/collective/detail/prepare.hpp>
#include <toroid/collective/detail/run.hpp>
#include <toroid/collective/detail/schedules.hpp>
#include <toroid/collective/detail/staged_call.hpp>
#include <toroid/collective/detail/trailing_policies.hpp>
#include <toroid/collective/detail/travelling.hpp>
#include <toroid/collective/policies.hpp>
#include <toroid/communicator/communicator.hpp>
#include <toroid/core/element.hpp>
#include <toroid/schedule/layout.hpp>

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

namespace toroid {

/// What an all-reduce would do, in words and numbers.
struct call_plan {
  std::string algorithm;    ///< "one-shot", "direct", "ring", "halving_doubling", "tree", or "torus_2d" with its grid
  std::string transport;    ///< the transport's name
  std::string wire;         ///< element type that travels
  std::string accumulator;  ///< element type that is combined
  std::size_t bytes = 0;    ///< length of the vector
  std::size_t calls = 1;    ///< one after the other: more where elements go through memory of the communicator
  int steps = 0;            ///< of the schedule, in each
  std::size_t bytes_sent = 0;                                 ///< by one rank, at most
  std::size_t pieces_in_place = 0, piece_bytes_in_place = 0;  ///< where peers can reach all buffers
  std::size_t pieces_staged = 0, piece_bytes_staged = 0;      ///< where one rank's cannot be reached, and of messages
  std::string why;

  std::string text() const {
    std::string all = algorithm + " over " + transport + ", " + std::to_string(bytes) + " bytes as " + wire +
                      (accumulator != wire ? ", combined as " + accumulator : std::string()) + ": " +
                      (calls != 1 ? std::to_string(calls) + " calls of " : std::string()) + std::to_string(steps) +
                      " steps, " + std::to_string(bytes_sent) + " bytes sent by a rank\n";
    const auto path = [](const char* name, std::size_t pieces, std::size_t piece_bytes) {
      return std::string("  ") + name + ": " + std::to_string(pieces) + (pieces == 1 ? " piece of " : " pieces of ") +
             std::to_string(piece_bytes) + " bytes a block\n";
    };
    if (pieces_in_place != 0) all += path("in place", pieces_in_place, piece_bytes_in_place);
    if (pieces_staged != 0)
      all += path(pieces_in_place != 0 ? "staged  " : "messages", pieces_staged, piece_bytes_staged);
    return all + "  because " + why + "\n";
  }
};

/// Prints a plan to any stream that takes strings.
template <class Stream>
auto operator<<(Stream& stream, const call_plan& plan) -> decltype(stream << std::declval<std::string>()) {
  return stream << plan.text();
}

namespace detail {

/// Why elements travel as another type, through which memory.
template <class T, class Policies>
std::string reason_to_convert() {
  using choice = travel<T, Policies>;
  const std::string as = element_name(travelling_code<typename choice::wire>());
  std::string text;
  if (std::is_void_v<typename Policies::wire>)
    text = std::string("; an average of ") + element_name(element_code<T>()) +
           " by an algorithm with partial results is exact only if it travels as " + as;
  else
    text = "; it is to travel as " + as;
  return text + ", through memory of the communicator that holds " + std::to_string(most_staged_bytes >> 20) + " MiB";
}

/// Elements that the rank which sends most sends in all, at most: blocks count as much as the longest.
template <class Schedule>
std::size_t most_sent(const schedule::problem& p, std::size_t count) {
  const schedule::share sent = Schedule::sent(p);
  const auto of = [&](std::size_t part) { return longest_block(part, sent.parts) * static_cast<std::size_t>(sent.of); };
  if constexpr (schedule::weighted<Schedule>) {
    std::size_t all = 0;
    for (int i = 0; i < Schedule::parts(p); ++i) all += of(schedule::part_of<Schedule>(p, count, i).count);
    return all;
  } else {
    return of(count);
  }
}

}  // namespace detail

/// What all_reduce(comm, count elements of T, policies) would do, and why.
///
/// @tparam T  the element type
/// @param comm   the group
/// @param count  elements of the vector
/// @param policies  that would be given
/// @throws usage_error  where the call would
///
/// Cost: arithmetic. Not collective. Whether a call runs in place is settled in each call, by all ranks together: it
/// does if every rank's buffers can be reached by its peers, and always where elements travel as another type.
///
///     std::cout << toroid::plan(comm, 1000);
template <class T = float, class Transport, policy P0 = detail::not_given, policy P1 = detail::not_given,
          policy P2 = detail::not_given, policy P3 = detail::not_given, policy P4 = detail::not_given>
call_plan plan(communicator<Transport>& comm, std::size_t count, const P0& p0 = {}, const P1& p1 = {},
               const P2& p2 = {}, const P3& p3 = {}, const P4& p4 = {}) {
  using policies = detail::trailing_policies<std::decay_t<P0>, std::decay_t<P1>, std::decay_t<P2>, std::decay_t<P3>,
                                             std::decay_t<P4>>;
  using algorithm_type = typename policies::algorithm;
  using choice = detail::travel<T, policies>;
  detail::check_trailing_policies<T, policies>();
  const algorithm_type how = policies::of(p0, p1, p2, p3, p4).how;
  constexpr std::size_t size = sizeof(typename choice::wire);
  auto& session = detail::access::session(comm);
  constexpr bool by_messages = message_transport<Transport>;
  const std::size_t region_bytes = [&] {
    if constexpr (by_messages)
      return session.region_bytes();
    else
      return session.transport().region_bytes();
  }();
  call_plan p;
  p.transport = Transport::name;
  p.wire = detail::element_name(detail::travelling_code<typename choice::wire>());
  using accumulator =
      std::conditional_t<choice::plain, typename detail::natural_accumulator<T>::type, typename choice::accumulator>;
  p.accumulator = detail::element_name(detail::travelling_code<accumulator>());
  p.bytes = detail::bytes_of(count, sizeof(T), "plan");
  const std::size_t whole = count;
  if constexpr (!choice::as_stored) {
    const std::size_t most = detail::staged_piece(size);
    if (count > most) {
      p.calls = (count + most - 1) / most;
      count = most;
    }
  }
  const std::size_t bytes = count * size;  // of a call
  schedule::problem ranks{comm.rank(), comm.size(), 0};
  const auto pieces = [&]<class Schedule>(Schedule, detail::path path, std::size_t& number, std::size_t& piece_bytes) {
    const schedule::layout layout =
        detail::layout_for<Schedule>(path, ranks, count, size, detail::segment_bytes_of(how), region_bytes);
    number = schedule::pieces_of<Schedule>(ranks, layout);
    piece_bytes = layout.piece * size;
  };
  const auto describe = [&]<class Schedule, class StagedSchedule>(Schedule in_place, StagedSchedule staged) {
    using walked = std::conditional_t<by_messages, StagedSchedule, Schedule>;
    p.steps = walked::steps(ranks);
    if (!by_messages) pieces(in_place, detail::path::in_place, p.pieces_in_place, p.piece_bytes_in_place);
    if (by_messages || choice::as_stored) pieces(staged, detail::path::staged, p.pieces_staged, p.piece_bytes_staged);
    p.bytes_sent = detail::most_sent<walked>(ranks, count) * (p.calls - 1) * size +
                   detail::most_sent<walked>(ranks, whole - (p.calls - 1) * count) * size;
  };
  using carried_out = detail::algorithm_for<algorithm_type, is_commutative<typename policies::operation>>;
  if constexpr (!detail::picks_by_length<algorithm_type>) {
    p.algorithm = detail::name_of(detail::algorithm_of<carried_out>);
    p.why = "it was asked for";
    if constexpr (std::is_same_v<carried_out, tree>)
      p.why += "; with an operator that does not commute it is one tree, in rank order";
    if constexpr (std::is_same_v<carried_out, detail::tree_in_order>)
      p.why += "; it is one tree, since the operator does not commute";
    if constexpr (std::is_same_v<algorithm_type, torus_2d>) {
      const topology::grid grid =
          detail::grid_of(how, comm.size(), {.collective = detail::collective_kind::all_reduce});
      ranks.rows = grid.rows;
      p.algorithm += " of " + std::to_string(grid.rows) + " x " + std::to_string(grid.columns);
    }
    using schedule_type = typename detail::schedules_of<carried_out>::all_reduce;
    describe(schedule_type{}, schedule_type{});
  } else if (bytes <= transport::inline_bytes) {
    p.algorithm = "one-shot";
    p.steps = schedule::one_shot_all_reduce::steps(ranks);
    p.bytes_sent = static_cast<std::size_t>(comm.size() - 1) * bytes;
    p.why = "up to " + std::to_string(transport::inline_bytes) +
            (by_messages ? " bytes are sent whole by everyone to everyone"
                         : " bytes travel beside the flag that announces them");
  } else {
    p.algorithm = "direct";
    p.why =
        std::is_same_v<algorithm_type, direct> ? std::string("it was asked for")
        : by_messages
            ? std::string("it takes fewest steps, and keeps rank order")
            : std::string("ranks map each other's memory, so every operand is read once and every result written once");
    if (comm.size() == 2)
      describe(schedule::direct_all_reduce{}, schedule::one_shot_all_reduce{});
    else
      describe(schedule::direct_all_reduce{}, schedule::direct_all_reduce{});
  }
  if constexpr (!choice::as_stored) p.why += detail::reason_to_convert<T, policies>();
  return p;
}

}  // namespace toroid
