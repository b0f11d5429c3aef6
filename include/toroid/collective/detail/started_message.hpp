// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/collective_call.hpp>
#include <toroid/collective/detail/message_executor.hpp>
#include <toroid/collective/detail/run_mapped.hpp>
#include <toroid/collective/detail/started_on_mapped.hpp>
#include <toroid/communicator/message_session.hpp>
#include <toroid/communicator/started_call.hpp>
#include <toroid/schedule/walk_position.hpp>

#include <exception>
#include <new>

namespace toroid::detail {

/// run_message() that can be left off and gone on with.
template <class Schedule, class Transport>
class started_message final : public started_call {
 public:
  /// @throws usage_error  as run_message(), before anything moves
  started_message(message_session<Transport>& session, const collective_call& call)
      : m_session(session),
        m_call(call),
        m_problem{session.transport().rank(), session.transport().size(), call.identity.root, call.identity.rows},
        m_layout(layout_for<Schedule>(path::staged, m_problem, call.identity.count, call.identity.element_size,
                                      call.identity.segment_bytes, session.region_bytes())) {}
  ~started_message() override {
    if (m_walk != nullptr) m_walk->~walk();
  }

  movement advance(const effort& how) override {
    const counted_deadline counted(m_session.context(), how);
    movement moved = movement::none;
    if (m_walk == nullptr) {
      m_session.open(m_call.identity);
      m_session.guarded([&] { m_walk = new (m_memory) walk(m_session, m_call, m_problem, m_layout); });
      moved = movement::some;
    }
    bool complete = false;
    int missing = -1;
    m_session.guarded([&] {
      complete = go_on(how.how == effort::extent::wait, moved, missing);
      if (!complete && moved == movement::none) m_session.examine(missing, how.waited);
    });
    return complete ? movement::complete : moved;
  }

  std::exception_ptr give_up() noexcept override { return m_session.give_up_started(); }
  void interrupt() noexcept override { m_session.interrupt(); }

 private:
  using executor_type = message_executor<Schedule, Transport>;
  struct walk {
    walk(message_session<Transport>& session, const collective_call& call, const schedule::problem& p,
         const schedule::layout& layout)
        : executor(session, call, p, layout), position(p, executor.pieces()) {}
    executor_type executor;
    schedule::walk_position<Schedule> position;
  };

  bool go_on(bool waits, movement& moved, int& missing) {
    executor_type& executor = m_walk->executor;
    schedule::walk_position<Schedule>& at = m_walk->position;
    for (; !at.done(); at.next()) {
      if (at.ends_time()) {
        if (!waits && !executor.can_finish(at.time(), missing)) return false;
        executor.finish(at.time());
      } else {
        if (!waits && !executor.can_perform(at.operation(), at.piece(), at.time(), missing)) return false;
        executor.perform(at.operation(), at.step(), at.piece(), at.time());
      }
      moved = movement::some;
    }
    if (!waits && !executor.can_leave(missing)) return false;
    executor.leave();
    return true;
  }

  message_session<Transport>& m_session;
  const collective_call m_call;
  const schedule::problem m_problem;
  const schedule::layout m_layout;
  walk* m_walk = nullptr;
  alignas(walk) std::byte m_memory[sizeof(walk)];
};

}  // namespace toroid::detail
