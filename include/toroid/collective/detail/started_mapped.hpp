// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/probing_thread.hpp>
#include <toroid/collective/detail/run_mapped.hpp>
#include <toroid/collective/detail/started_on_mapped.hpp>
#include <toroid/schedule/walk_position.hpp>

#include <cstddef>
#include <new>
#include <type_traits>

namespace toroid::detail {

/// walk_mapped() that can be left off and gone on with, whatever the schedule and the path.
class mapped_walk {
 public:
  /// @return complete, or how it has moved until something was missing
  virtual movement advance(bool waits, transport::awaited_flag& missing) = 0;

 protected:
  ~mapped_walk() = default;
};

template <class Schedule, path Path, class Transport>
class mapped_walk_along final : public mapped_walk {
 public:
  mapped_walk_along(mapped_session<Transport>& session, const collective_call& call, const schedule::problem& p,
                    const schedule::layout& layout)
      : m_session(session),
        m_call(call),
        m_problem(begin_walk<Schedule, Path>(session, call, p, layout)),
        m_policy(session, call),
        m_executor(m_policy, m_problem),
        m_position(p, m_problem.pieces) {}

  movement advance(bool waits, transport::awaited_flag& missing) override {
    movement moved = movement::none;
    for (; !m_position.done(); m_position.next()) {
      if (m_position.ends_time()) {
        m_executor.finish(m_position.time());
        continue;
      }
      const auto perform = [this](auto& executor) {
        executor.perform(m_position.operation(), m_position.step(), m_position.piece(), m_position.time());
      };
      if (!waits && !probe(perform, missing)) return moved;
      perform(m_executor);
      moved = movement::some;
    }
    const auto leave = [](auto& executor) { executor.leave(); };
    if (!waits && !probe(leave, missing)) return moved;
    leave(m_executor);
    return movement::complete;
  }

 private:
  template <class Do>
  bool probe(Do&& act, transport::awaited_flag& missing) {
    probing_thread<Transport> policy(m_session, m_call);
    executor_for<Path, probing_thread<Transport>, Schedule> executor(policy, m_problem);
    act(executor);
    missing = policy.missing();
    return !missing;
  }

  mapped_session<Transport>& m_session;
  const collective_call& m_call;
  const mapped_problem m_problem;
  host_thread<Transport> m_policy;
  executor_for<Path, host_thread<Transport>, Schedule> m_executor;
  schedule::walk_position<Schedule> m_position;
};

/// run_mapped() that can be left off and gone on with.
template <class Schedule, class StagedSchedule, class PulledSchedule, class Transport>
class started_mapped final : public started_on_mapped<Transport> {
  using base = started_on_mapped<Transport>;
  using base::m_call;
  using base::m_session;
  using entrance = mapped_entrance<PulledSchedule, Transport>;

 public:
  /// @throws usage_error  as run_mapped(), before anything moves
  started_mapped(mapped_session<Transport>& session, const collective_call& call)
      : base(session, call),
        m_problem{base::rank(), base::ranks(), call.identity.root, call.identity.rows},
        m_direct(plan_for<Schedule>(path::in_place)),
        m_staged(plan_for<StagedSchedule>(path::staged)) {}

 private:
  movement go_on(const effort& how) override {
    movement moved = movement::none;
    if (m_phase == phase::queued) {
      if (!base::open(how)) return movement::none;
      base::guarded(how, [&] { m_entrance.publish(m_session, m_call, m_problem, false); });
      m_phase = phase::entered;
      moved = movement::some;
    }
    if (how.how == effort::extent::enter) return moved;
    if (m_phase == phase::entered) {
      if (!base::waits(how)) {
        if (const transport::awaited_flag missing = m_session.missing_entry()) {
          base::examine(missing, how);
          return moved;
        }
      }
      base::guarded(how, [&] { m_entrance.hear(m_session, m_call, m_problem); });
      m_session.refuse_flaws(m_call.identity);
      base::guarded(how, [&] { begin(); });
      m_phase = phase::walking;
      moved = movement::some;
    }
    transport::awaited_flag missing;
    movement walked = movement::none;
    base::guarded(how, [&] { walked = m_walk->advance(base::waits(how), missing); });
    if (walked == movement::complete) return walked;
    if (walked == movement::none) base::examine(missing, how);
    return walked == movement::some ? walked : moved;
  }

  enum class phase { queued, entered, walking };

  template <class S>
  schedule::layout plan_for(path how) const {
    return layout_for<S>(how, m_problem, m_call.identity.count, m_call.identity.element_size,
                         m_call.identity.segment_bytes, m_session.transport().region_bytes());
  }

  void begin() {
    using ways = typename entrance::ways;
    if ((m_entrance.agreed & ways::reachable) != 0) {
      if constexpr (may_fetch<Schedule>)
        if (m_entrance.fetches()) return walk_along<Schedule, path::fetched>(m_direct);
      return walk_along<Schedule, path::in_place>(m_direct);
    }
    if constexpr (entrance::may_pull) {
      if ((m_entrance.agreed & ways::can_pull) != 0 && m_entrance.pulls)
        return walk_along<PulledSchedule, path::pulled>(plan_for<PulledSchedule>(path::pulled));
    }
    walk_along<StagedSchedule, path::staged>(m_staged);
  }
  template <class S, path Path>
  void walk_along(const schedule::layout& layout) {
    using walk = mapped_walk_along<S, Path, Transport>;
    static_assert(sizeof(walk) <= sizeof m_walk_memory && alignof(walk) <= alignof(std::max_align_t));
    static_assert(std::is_trivially_destructible_v<walk>);
    m_walk = new (m_walk_memory) walk(m_session, m_call, m_problem, layout);
  }

  const schedule::problem m_problem;
  const schedule::layout m_direct, m_staged;
  entrance m_entrance;
  phase m_phase = phase::queued;
  mapped_walk* m_walk = nullptr;
  alignas(std::max_align_t) std::byte m_walk_memory[448];
};

}  // namespace toroid::detail
