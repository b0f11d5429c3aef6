// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/collective_call.hpp>
#include <toroid/communicator/mapped_session.hpp>
#include <toroid/communicator/started_call.hpp>
#include <toroid/transport/waiting.hpp>

#include <exception>

namespace toroid::detail {

/// Counts the deadline of what is waited for meanwhile as an effort says.
class counted_deadline {
 public:
  counted_deadline(transport::wait_context& context, const effort& how) noexcept : m_context(context) {
    context.asked = how.asked;
  }
  counted_deadline(const counted_deadline&) = delete;
  counted_deadline& operator=(const counted_deadline&) = delete;
  ~counted_deadline() { m_context.asked = nullptr; }

 private:
  transport::wait_context& m_context;
};

/// What started calls over a mapped transport have in common: entering, and seeing what has become of the group.
template <class Transport>
class started_on_mapped : public started_call {
 public:
  /// A call that has failed is over once its peers are out of the caller's buffers: that is one more thing to wait for,
  /// or not to wait for.
  movement advance(const effort& how) final {
    const counted_deadline counted(m_session.context(), how);
    if (!m_error) {
      try {
        return go_on(how);
      } catch (...) {
        if (!m_session.peers_are_inside()) throw;
        m_error = std::current_exception();
      }
    }
    if (waits(how)) m_session.drain();
    if (m_session.peers_are_inside()) return movement::none;
    std::rethrow_exception(m_error);
  }
  std::exception_ptr give_up() noexcept override {
    if (!m_error) return m_session.give_up_started();
    m_session.drain();
    return m_error;
  }
  void interrupt() noexcept override { m_session.interrupt(); }

 protected:
  virtual movement go_on(const effort& how) = 0;

  started_on_mapped(mapped_session<Transport>& session, const collective_call& call) noexcept
      : m_session(session), m_call(call) {}

  static bool waits(const effort& how) noexcept { return how.how == effort::extent::wait; }
  int rank() const noexcept { return m_session.transport().rank(); }
  int ranks() const noexcept { return m_session.transport().size(); }

  /// Begins the call.
  /// @return whether it could, without waiting where that was not allowed
  bool open(const effort& how) {
    if (!waits(how)) {
      if (const transport::awaited_flag missing = m_session.missing_previous_entry()) {
        transport::wait_context next = m_session.context();
        next.operation = name_of(m_call.identity.collective);
        next.at = m_call.identity.at;
        ++next.call;
        examine(missing, how, next);
        return false;
      }
    }
    m_session.open(m_call.identity);
    m_session.inspect(m_call.input, m_call.input_count(ranks(), rank()), m_call.first_flaw, nullptr);
    return true;
  }

  /// Throws, and breaks the group, where it is in vain to look for a flag again.
  void examine(const transport::awaited_flag& missing, const effort& how) {
    examine(missing, how, m_session.context());
  }
  void examine(const transport::awaited_flag& missing, const effort& how, const transport::wait_context& context) {
    guarded(how, [&] {
      m_session.transport().examine(missing.rank, *missing.flag, missing.value, context, how.waited, how.quiet);
    });
  }

  /// Runs a part of the call. If that throws, the group is broken.
  template <class Body>
  void guarded(const effort& how, Body&& body) {
    if (waits(how))
      m_session.guarded(body);
    else
      m_session.guarded_without_waiting(body);
  }

  mapped_session<Transport>& m_session;
  const collective_call m_call;

 private:
  std::exception_ptr m_error;  ///< peers are still inside
};

}  // namespace toroid::detail
