// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/inline_executor.hpp>
#include <toroid/collective/detail/started_on_mapped.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/schedule/walk_position.hpp>

#include <atomic>
#include <cstdint>

namespace toroid::detail {

/// run_inline() that can be left off and gone on with.
template <class Schedule, class Transport>
class started_inline final : public started_on_mapped<Transport> {
  using base = started_on_mapped<Transport>;
  using base::m_call;
  using base::m_session;

 public:
  started_inline(mapped_session<Transport>& session, const collective_call& call) noexcept
      : base(session, call), m_executor(session, m_call, Schedule::blocks(problem())), m_position(problem(), 1) {}

 private:
  movement go_on(const effort& how) override {
    movement moved = movement::none;
    if (!m_open) {
      if (!base::open(how)) return movement::none;
      m_open = true;
      base::guarded(how, [&] {
        while (!m_position.done() && m_position.time() == 0) next();  // puts the message beside the flag, and signals
      });
      moved = movement::some;
    }
    if (how.how == effort::extent::enter && !m_position.done()) return moved;
    transport::awaited_flag missing;
    base::guarded(how, [&] {
      for (; !m_position.done(); next()) {
        if (!base::waits(how) && (missing = find_missing())) return;
        moved = movement::some;
      }
    });
    if (missing) {
      base::examine(missing, how);
      return moved;
    }
    m_session.end(m_call.identity);
    m_session.refuse_flaws(m_call.identity);
    return movement::complete;
  }

  schedule::problem problem() const noexcept { return {base::rank(), base::ranks(), m_call.identity.root}; }

  void next() {
    if (m_position.ends_time())
      m_executor.finish(m_position.time());
    else
      m_executor.perform(m_position.operation(), m_position.step(), m_position.piece(), m_position.time());
    m_position.next();
  }

  /// What the next operation would have to wait for.
  transport::awaited_flag find_missing() const noexcept {
    if (m_position.ends_time()) return {};
    const schedule::operation op = m_position.operation();
    for (int i = 0; i < op.from.count; ++i) {
      const int from = op.from.at(i, base::ranks());
      if (from == base::rank()) continue;
      const std::atomic<std::uint64_t>& flag = m_session.entry_of(from).sequence;
      if (flag.load(std::memory_order_acquire) < m_session.call()) return {from, &flag, m_session.call()};
    }
    return {};
  }

  inline_executor<Transport> m_executor;
  schedule::walk_position<Schedule> m_position;
  bool m_open = false;
};

}  // namespace toroid::detail
