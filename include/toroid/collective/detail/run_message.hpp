// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/collective_call.hpp>
#include <toroid/collective/detail/message_executor.hpp>
#include <toroid/collective/detail/run_mapped.hpp>
#include <toroid/communicator/message_session.hpp>
#include <toroid/schedule/walk.hpp>

namespace toroid::detail {

/// Runs a collective over messages: the schedule that mapped transports walk where everything goes through hand-over
/// regions, so that results have the same bits.
template <class Schedule, class Transport>
void run_message(message_session<Transport>& session, const collective_call& call) {
  const schedule::problem p{session.transport().rank(), session.transport().size(), call.identity.root,
                            call.identity.rows};
  // May refuse, and does so before anything moves.
  const schedule::layout layout = layout_for<Schedule>(path::staged, p, call.identity.count, call.identity.element_size,
                                                       call.identity.segment_bytes, session.region_bytes());
  session.begin(call.identity);
  session.guarded([&] {
    message_executor<Schedule, Transport> executor(session, call, p, layout);
    schedule::walk<Schedule>(p, executor.pieces(), executor);
    executor.leave();
  });
}

}  // namespace toroid::detail
