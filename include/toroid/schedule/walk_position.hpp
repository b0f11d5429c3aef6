// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/schedule/walk.hpp>

#include <cstddef>

namespace toroid::schedule {

/// walk() that can be left off and gone on with: where it stands, and what comes next. The order is that of walk().
///
///     for (walk_position<S> at(p, pieces); !at.done(); at.next())
///       at.ends_time() ? executor.finish(at.time())
///                      : executor.perform(at.operation(), at.step(), at.piece(), at.time());
///
/// @tparam Schedule  see schedule/operation.hpp
template <class Schedule>
class walk_position {
 public:
  constexpr walk_position(const problem& p, std::size_t pieces) noexcept
      : m_problem(p), m_pieces(pieces), m_length(walk_length<Schedule>(p, pieces)), m_steps(Schedule::steps(p)) {
    enter_time(0);
  }

  constexpr bool done() const noexcept { return m_time >= m_length; }
  /// Whether finish(time()) comes next, rather than an operation.
  constexpr bool ends_time() const noexcept { return m_step >= m_end; }
  constexpr std::size_t time() const noexcept { return m_time; }
  constexpr int step() const noexcept { return m_step; }
  constexpr std::size_t piece() const noexcept {
    return Schedule::pipelined ? m_time - static_cast<std::size_t>(m_step) : m_piece;
  }
  constexpr schedule::operation operation() const noexcept { return Schedule::at(m_problem, m_step, m_index); }

  constexpr void next() noexcept {
    if (ends_time()) return enter_time(m_time + 1);
    ++m_index;
    skip_empty_steps();
  }

 private:
  constexpr void enter_time(std::size_t time) noexcept {
    m_time = time;
    m_index = 0;
    if constexpr (Schedule::pipelined) {
      m_step = time < m_pieces ? 0 : static_cast<int>(time - m_pieces + 1);
      m_end = time < static_cast<std::size_t>(m_steps) ? static_cast<int>(time) + 1 : m_steps;
    } else {
      if (time != 0 && ++m_next_step == m_steps) {
        m_next_step = 0;
        ++m_piece;
      }
      m_step = m_next_step;
      m_end = m_step + 1;
    }
    skip_empty_steps();
  }
  constexpr void skip_empty_steps() noexcept {
    while (m_step < m_end && m_index >= Schedule::operations(m_problem, m_step)) {
      ++m_step;
      m_index = 0;
    }
  }

  problem m_problem;
  std::size_t m_pieces, m_length, m_time = 0, m_piece = 0;
  int m_steps, m_step = 0, m_end = 0, m_index = 0;
  int m_next_step = 0;  ///< of the time, where pieces follow each other
};

}  // namespace toroid::schedule
