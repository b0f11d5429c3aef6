// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/collective_call.hpp>
#include <toroid/collective/detail/run_exchange.hpp>
#include <toroid/collective/detail/run_mapped.hpp>
#include <toroid/collective/detail/run_message.hpp>
#include <toroid/communicator/mapped_session.hpp>
#include <toroid/communicator/message_session.hpp>

/// Where collectives meet the two kinds of transport.
namespace toroid::detail {

/// Runs a collective whose bytes fit transport::inline_bytes along a two-step schedule.
template <class Schedule, class Transport>
void run_short(mapped_session<Transport>& session, const collective_call& call) {
  run_inline<Schedule>(session, call);
}
template <class Schedule, class Transport>
void run_short(message_session<Transport>& session, const collective_call& call) {
  run_message<Schedule>(session, call);
}

/// Runs a collective of any length.
///
/// @tparam Staged  the schedule where peers cannot read buffers where they stand; combines operands in the same order
/// @tparam Pulled  the schedule where peers can read buffers where they stand but not write them; likewise
template <class Schedule, class Staged = Schedule, class Pulled = Schedule, class Transport>
void run_long(mapped_session<Transport>& session, const collective_call& call) {
  run_mapped<Schedule, Staged, Pulled>(session, call);
}
template <class Schedule, class Staged = Schedule, class Pulled = Schedule, class Transport>
void run_long(message_session<Transport>& session, const collective_call& call) {
  run_message<Staged>(session, call);
}

/// Runs a collective on blocks that callers lay out, of any length.
template <class Schedule, class Transport>
void run_blocks(mapped_session<Transport>& session, const exchange_call& call) {
  run_exchange<Schedule>(session, call);
}
template <class Schedule, class Transport>
void run_blocks(message_session<Transport>& session, const exchange_call& call) {
  run_message<Schedule>(session, call);
}

}  // namespace toroid::detail
