// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/call_queue.hpp>
#include <toroid/communicator/fork_guard.hpp>
#include <toroid/communicator/started_call.hpp>
#include <toroid/core/error.hpp>
#include <toroid/transport/background.hpp>
#include <toroid/transport/futex.hpp>

#include <sched.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

namespace toroid::detail {

/// Drives started calls in the caller's place: options.progress.
class progress_driver {
 public:
  virtual ~progress_driver() = default;
  virtual void wake() noexcept = 0;
};

/// The calls in flight on one communicator, in the order in which they were started, which is the order in which they
/// run: each begins when the one before is complete.
///
/// Whoever asks for a call drives those before it, too. One thread at a time drives; others may start, ask and wait
/// meanwhile. The communicator and each pending share this object, so that either may end first.
class started_calls final : public transport::background_task {
 public:
  started_calls(std::atomic<activity>& busy, const fork_guard& guard) noexcept : m_guard(&guard), m_queue(busy) {}
  started_calls(const started_calls&) = delete;
  started_calls& operator=(const started_calls&) = delete;

  void hold() noexcept { m_holders.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (m_holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  /// From now on a thread of its own drives.
  void progress_by(std::unique_ptr<progress_driver> driver) noexcept { m_driver = std::move(driver); }
  bool has_driver() const noexcept { return m_driver != nullptr; }

  /// A record for a call that is about to be started.
  call_record& take() { return m_queue.take(); }
  void give_back(call_record& record) noexcept {
    if (is_copy()) return;  // the record is the rank's
    m_queue.give_back(record);
  }

  /// Bytes that are held.
  std::size_t bytes() const noexcept { return sizeof *this + m_queue.bytes(); }

  /// Puts a call behind those in flight, and begins it if there are none.
  void start(call_record& record) {
    if (m_driver == nullptr) {
      transport::background& mine = transport::background::of_this_thread();
      if (m_listed_by.load(std::memory_order_relaxed) != &mine) mine.add(*this);
    }
    m_queue.push(record);
    while (front() == &record) {
      if (!take_wheel()) {
        sched_yield();  // somebody is about to let it go, or to begin this call
        if (m_driver != nullptr) break;
        continue;
      }
      drive({.how = effort::extent::enter}, nullptr);
      leave_wheel();
      break;
    }
    if (m_driver != nullptr) m_driver->wake();
  }

  /// Returns once the call is complete.
  /// @throws usage_error  in a copy forked from the rank
  void finish(call_record& record) {
    for (int naps = 0; !record.is_complete();) {
      refuse_copy();
      if (m_driver == nullptr && take_wheel()) {
        drive({.how = effort::extent::wait}, &record);
        leave_wheel();
      } else {
        wait_for_others(record, naps);
      }
    }
  }

  /// Goes on as far as needs no waiting, here and with all that the thread has in flight elsewhere.
  /// @return whether the call is complete
  /// @throws usage_error  in a copy forked from the rank
  bool look(call_record& record) {
    if (record.is_complete()) return true;
    refuse_copy();
    if (m_driver != nullptr) {
      ask();
    } else if (take_wheel()) {
      const movement moved = drive(effort_of(record), nullptr);
      if (moved != movement::none)
        record.stuck_since = 0;
      else if (record.stuck_since == 0)
        record.stuck_since = record.looked_after = transport::detail::monotonic_nanoseconds();
      transport::background::of_this_thread().advance();
      leave_wheel();
    }
    return record.is_complete();
  }

  /// Returns once all are complete: a blocking call is to begin.
  void finish_all() noexcept {
    for (int rounds = 0; front() != nullptr; ++rounds) {
      if (m_driver == nullptr && take_wheel()) {
        drive({.how = effort::extent::wait}, nullptr);
        leave_wheel();
        continue;
      }
      ask();
      transport::background::of_this_thread().advance();
      const timespec nap{0, 50'000};
      rounds < 100 ? static_cast<void>(sched_yield()) : static_cast<void>(::nanosleep(&nap, nullptr));
    }
  }

  /// The communicator ends: so do all calls in flight, with an error.
  void close() noexcept {
    if (!m_guard->original()) return close_copy();
    m_closing.store(true, std::memory_order_release);  // pairs with drive_all()
    if (m_driver != nullptr) {
      m_queue.interrupt();
      m_driver.reset();
    }
    while (!take_wheel()) sched_yield();
    std::exception_ptr error;
    while (call_record* const head = front()) {
      if (!error) error = head->call->give_up();
      head->error = error;
      complete(*head);
    }
    leave_wheel();
  }

  /// For the driver's thread: drives until nothing is in flight.
  void drive_all() {
    while (front() != nullptr && !m_closing.load(std::memory_order_acquire)) {
      if (take_wheel()) {
        drive({.how = effort::extent::wait, .asked = &m_asked}, nullptr);
        leave_wheel();
      } else {
        sched_yield();
      }
    }
  }

  outcome advance_in_background() noexcept override {
    if (front() == nullptr) return outcome::over;
    if (!take_wheel()) return outcome::idle;
    const movement moved = drive({}, nullptr);
    leave_wheel();
    return moved == movement::none ? outcome::stuck : outcome::moved;
  }
  void listed(const void* list) noexcept override {
    hold();
    m_listed_by.store(list, std::memory_order_relaxed);
  }
  void dropped(const void* list) noexcept override {
    m_listed_by.compare_exchange_strong(list, nullptr, std::memory_order_relaxed);
    release();
  }

 private:
  ~started_calls() = default;

  call_record* front() const noexcept { return m_queue.front(); }
  /// Whether this thread drives now: pairs with the release of who did before.
  bool take_wheel() noexcept { return !m_driven.exchange(true, std::memory_order_acquire); }
  void leave_wheel() noexcept { m_driven.store(false, std::memory_order_release); }

  /// Goes on with the oldest call, and with those behind it as they become that.
  ///
  /// @param target  where to stop waiting, once it is complete
  movement drive(effort how, const call_record* target) noexcept {
    movement all = movement::none;
    while (call_record* const head = front()) {
      if (!m_guard->original()) return all;  // a copy forked from the rank must not speak for it
      movement one;
      try {
        one = head->call->advance(how);
      } catch (...) {
        head->error = std::current_exception();
        one = movement::complete;
      }
      if (one != movement::complete) return one == movement::some ? one : all;
      all = movement::some;
      if (head == target) how.how = effort::extent::enter;
      complete(*head);
      if (m_closing.load(std::memory_order_relaxed)) break;
    }
    return all;
  }

  /// Takes the oldest call out; from then on it is its pending's alone.
  void complete(call_record& head) noexcept {
    m_queue.pop(head);
    head.end_call();
    m_asked.store(0, std::memory_order_relaxed);  // for the next call it counts anew
    if (head.state.exchange(call_record::complete, std::memory_order_acq_rel) == call_record::awaited)
      transport::detail::futex_wake(head.state);
  }

  /// Another thread drives: waits for it a while.
  void wait_for_others(call_record& record, int& naps) noexcept {
    constexpr int spins = 2000, yields = 50;
    if (m_driver != nullptr) ask();
    if (naps == 0)
      for (int i = 0; i < spins && !record.is_complete(); ++i) transport::detail::spin_pause();
    transport::background::of_this_thread().advance();
    if (++naps < yields) {
      sched_yield();
      return;
    }
    std::uint32_t seen = call_record::in_flight;
    record.state.compare_exchange_strong(seen, call_record::awaited, std::memory_order_acq_rel);
    constexpr std::int64_t while_driven = 10'000'000, otherwise = 1'000'000;
    if (seen != call_record::complete)
      transport::detail::futex_wait(record.state, call_record::awaited, m_driver != nullptr ? while_driven : otherwise);
  }

  /// The driver's deadlines count from now, unless they do already.
  void ask() noexcept {
    if (m_asked.load(std::memory_order_relaxed) == 0)
      m_asked.store(transport::detail::monotonic_nanoseconds(), std::memory_order_relaxed);
  }

  /// How hard to look for a call that may have been looked for in vain.
  static effort effort_of(call_record& record) noexcept {
    effort how;
    if (record.stuck_since == 0) return how;
    constexpr std::int64_t long_quiet = 100'000'000;
    const std::int64_t now = transport::detail::monotonic_nanoseconds();
    how.waited = now - record.stuck_since;
    how.quiet = now - record.looked_after >= long_quiet;
    if (how.quiet) record.looked_after = now;
    return how;
  }

  /// Whether this is a process forked from the rank. (After close() the guard is gone, and nothing left to ask.)
  bool is_copy() const noexcept { return !m_closing.load(std::memory_order_relaxed) && !m_guard->original(); }
  void refuse_copy() const {
    if (is_copy()) [[unlikely]]
      throw usage_error("toroid: this process was forked from a rank and cannot speak for it");
  }

  /// In a copy forked from the rank the threads that hold locks, or drive, are not there.
  void close_copy() noexcept {
    static_cast<void>(m_driver.release());
    const std::exception_ptr error =
        std::make_exception_ptr(usage_error("toroid: this process was forked from a rank and cannot speak for it"));
    m_queue.end_all_of_copy(error);
    m_closing.store(true, std::memory_order_relaxed);
  }

  const fork_guard* m_guard;
  std::unique_ptr<progress_driver> m_driver;
  std::atomic<int> m_holders{1};
  std::atomic<const void*> m_listed_by{nullptr};
  std::atomic<bool> m_driven{false};  ///< a thread drives
  std::atomic<bool> m_closing{false};
  std::atomic<std::int64_t> m_asked{0};  ///< since when a caller waits for the driver; 0 if none does
  call_queue m_queue;
};

/// One holder of the calls in flight on a communicator.
class started_calls_holder {
 public:
  started_calls_holder() = default;
  /// Takes over one hold.
  explicit started_calls_holder(started_calls* calls) noexcept : m_calls(calls) {}
  started_calls_holder(started_calls_holder&& other) noexcept : m_calls(std::exchange(other.m_calls, nullptr)) {}
  started_calls_holder& operator=(started_calls_holder&& other) noexcept {
    std::swap(m_calls, other.m_calls);
    return *this;
  }
  ~started_calls_holder() {
    if (m_calls != nullptr) m_calls->release();
  }
  started_calls_holder another() const noexcept {
    m_calls->hold();
    return started_calls_holder(m_calls);
  }
  started_calls* operator->() const noexcept { return m_calls; }
  started_calls& operator*() const noexcept { return *m_calls; }
  explicit operator bool() const noexcept { return m_calls != nullptr; }

 private:
  started_calls* m_calls = nullptr;
};

}  // namespace toroid::detail
