// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/collective_call.hpp>
#include <toroid/collective/detail/prepare.hpp>
#include <toroid/collective/detail/started_inline.hpp>
#include <toroid/collective/detail/started_mapped.hpp>
#include <toroid/collective/detail/started_message.hpp>
#include <toroid/communicator/communicator.hpp>
#include <toroid/communicator/mapped_session.hpp>
#include <toroid/communicator/message_session.hpp>
#include <toroid/communicator/options.hpp>
#include <toroid/communicator/pending.hpp>
#include <toroid/communicator/progress_thread.hpp>

#include <memory>
#include <type_traits>
#include <utility>

/// Where collectives are started instead of run: the same functions check and prepare the call, on something that
/// stands in for the communicator.
namespace toroid::detail {

/// Says which reduction loops to take, as instruction_set does, and that the call must keep its operator.
struct keeping_instructions {
  instruction_set set;
  call_record* record;
  operator instruction_set() const noexcept { return set; }
};

/// erase() for a call that outlives its caller's operator.
template <class T, class Operation>
void erase(collective_call& call, const keeping_instructions& instructions, const Operation* operation) {
  erase<T>(call, instructions.set, operation);
  if constexpr (!std::is_void_v<Operation>) call.functor = instructions.record->keep(*operation);
}

/// Stands in for a communicator and its session: run_short() and run_long() start what they would run.
template <class Session>
class starter {
 public:
  using stands_in_for_session = starter;

  explicit starter(Session& session) : m_session(session), m_calls(session.started()) {
    if (session.chosen().progress == progress::thread && !m_calls.has_driver()) [[unlikely]]
      m_calls.progress_by(std::make_unique<progress_thread>(m_calls));
    m_record = &m_calls.take();
  }
  starter(const starter&) = delete;
  starter& operator=(const starter&) = delete;
  ~starter() {
    if (m_record != nullptr) m_calls.give_back(*m_record);  // it was refused
  }

  int rank() const noexcept { return m_session.transport().rank(); }
  int size() const noexcept { return m_session.transport().size(); }
  auto& transport() noexcept { return m_session.transport(); }
  Session& session() noexcept { return m_session; }
  keeping_instructions instructions() const noexcept { return {m_session.instructions(), m_record}; }

  template <class Call>
  void start(const collective_call& call) {
    m_record->emplace<Call>(m_session, call);
    m_calls.start(*m_record);
  }
  pending end() noexcept { return pending_access::make(m_session.hold_started(), *std::exchange(m_record, nullptr)); }

 private:
  Session& m_session;
  started_calls& m_calls;
  call_record* m_record = nullptr;
};

template <class Session>
inline constexpr bool is_communicator<starter<Session>> = true;
template <class Session>
inline constexpr bool runs_to_its_end<starter<Session>> = false;

template <class Schedule, class Transport>
void run_short(starter<mapped_session<Transport>>& start, const collective_call& call) {
  start.template start<started_inline<Schedule, Transport>>(call);
}
template <class Schedule, class Transport>
void run_short(starter<message_session<Transport>>& start, const collective_call& call) {
  start.template start<started_message<Schedule, Transport>>(call);
}
template <class Schedule, class Staged = Schedule, class Pulled = Schedule, class Transport>
void run_long(starter<mapped_session<Transport>>& start, const collective_call& call) {
  start.template start<started_mapped<Schedule, Staged, Pulled, Transport>>(call);
}
template <class Schedule, class Staged = Schedule, class Pulled = Schedule, class Transport>
void run_long(starter<message_session<Transport>>& start, const collective_call& call) {
  start.template start<started_message<Staged, Transport>>(call);
}

/// Starts what `call` would run on the communicator that it is given.
template <class Transport, class Call>
pending start(communicator<Transport>& comm, Call&& call) {
  starter<session_for<Transport>> stand_in(access::session(comm));
  call(stand_in);
  return stand_in.end();
}

/// An input has to live as long as the call.
template <class I>
constexpr void check_lives_on() noexcept {
  static_assert(std::ranges::borrowed_range<I>,
                "toroid: the input is a temporary and would be gone before the call is complete: pass a variable or a "
                "span");
}

}  // namespace toroid::detail
