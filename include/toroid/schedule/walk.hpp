// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>
#include <toroid/schedule/operation.hpp>

#include <cstddef>

namespace toroid::schedule {

#if defined(__CUDACC__)
#pragma nv_exec_check_disable
#endif
/// Runs a schedule: hands its operations to an executor, in order. The one loop for host and device.
///
/// The vector is handled in pieces (the same slice of every block). Time counts the steps of all pieces: piece k of a
/// pipelined schedule is at step s at time k + s, so that handing over one piece runs beside reducing the one before;
/// otherwise pieces follow each other. Either way what is sent at time t is received at time t + 1.
///
/// @tparam Schedule  see schedule/operation.hpp
/// @tparam Executor  has perform(operation, step, piece, time) and finish(time), called once a time
/// @param p       rank and number of ranks
/// @param pieces  at least 1
template <class Schedule, class Executor>
TOROID_HOST_DEVICE constexpr void walk(problem p, std::size_t pieces, Executor& executor) {
  const int steps = Schedule::steps(p);
  if constexpr (Schedule::pipelined) {
    const std::size_t end = pieces + static_cast<std::size_t>(steps) - 1;
    for (std::size_t time = 0; time < end; ++time) {
      // The newest piece first: handing it over gives the peers time to finish theirs, which the older ones wait for.
      const int newest = time < pieces ? 0 : static_cast<int>(time - pieces + 1);
      for (int step = newest; step < steps && static_cast<std::size_t>(step) <= time; ++step) {
        const int operations = Schedule::operations(p, step);
        for (int i = 0; i < operations; ++i)
          executor.perform(Schedule::at(p, step, i), step, time - static_cast<std::size_t>(step), time);
      }
      executor.finish(time);
    }
  } else {
    std::size_t time = 0;
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      for (int step = 0; step < steps; ++step, ++time) {
        const int operations = Schedule::operations(p, step);
        for (int i = 0; i < operations; ++i) executor.perform(Schedule::at(p, step, i), step, piece, time);
        executor.finish(time);
      }
    }
  }
}

/// Number of times that walk() counts.
template <class Schedule>
TOROID_HOST_DEVICE constexpr std::size_t walk_length(problem p, std::size_t pieces) noexcept {
  const std::size_t steps = static_cast<std::size_t>(Schedule::steps(p));
  return Schedule::pipelined ? pieces + steps - 1 : pieces * steps;
}

/// The time after which no rank touches another's buffers any more.
template <class Schedule>
TOROID_HOST_DEVICE constexpr std::size_t touching_length(problem p, std::size_t pieces) noexcept {
  const std::size_t idle = static_cast<std::size_t>(Schedule::steps(p) - Schedule::touching_steps(p));
  return walk_length<Schedule>(p, pieces) - idle;
}

}  // namespace toroid::schedule
