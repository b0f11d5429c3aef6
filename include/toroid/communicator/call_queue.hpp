// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/started_call.hpp>

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace toroid::detail {

/// What is happening on a communicator just now. Stored with release by who ends it; pairs with the acquire of who
/// begins the next call.
enum class activity : std::uint8_t {
  none,
  blocking_call,  ///< a thread is inside one
  started_calls   ///< some are in flight
};

/// A lock for a few instructions.
class brief_lock {
 public:
  explicit brief_lock(std::atomic<bool>& flag) noexcept : m_flag(flag) {
    while (m_flag.exchange(true, std::memory_order_acquire))  // pairs with the release below
      sched_yield();
  }
  brief_lock(const brief_lock&) = delete;
  brief_lock& operator=(const brief_lock&) = delete;
  ~brief_lock() { m_flag.store(false, std::memory_order_release); }

 private:
  std::atomic<bool>& m_flag;
};

/// The calls in flight on one communicator, oldest first, and the records that wait to be used again. From any thread.
class call_queue {
 public:
  /// @param busy  what is happening on the communicator; kept up to date
  explicit call_queue(std::atomic<activity>& busy) noexcept : m_busy(&busy) {}

  /// A record that is not in use.
  call_record& take() {
    {
      const brief_lock lock(m_lock);
      if (call_record* const found = m_free; found != nullptr) {
        m_free = found->next;
        found->next = nullptr;
        return *found;
      }
    }
    auto made = std::make_unique<call_record>();
    const brief_lock lock(m_lock);
    m_records.push_back(std::move(made));
    return *m_records.back();
  }
  void give_back(call_record& record) noexcept {
    record.clear();
    const brief_lock lock(m_lock);
    record.next = std::exchange(m_free, &record);
  }

  /// Bytes of all records.
  std::size_t bytes() const noexcept {
    const brief_lock lock(m_lock);
    return m_records.size() * sizeof(call_record);
  }

  void push(call_record& record) noexcept {
    const brief_lock lock(m_lock);
    if (call_record* const last = std::exchange(m_last, &record); last != nullptr)
      last->next = &record;
    else
      m_front.store(&record, std::memory_order_release);
    m_busy->store(activity::started_calls, std::memory_order_release);
  }
  /// The oldest call. Pairs with the release of who has put it there.
  call_record* front() const noexcept { return m_front.load(std::memory_order_acquire); }
  /// Takes the oldest call out. With the last one the communicator may end, or begin a blocking call.
  void pop(call_record& head) noexcept {
    const brief_lock lock(m_lock);
    m_front.store(head.next, std::memory_order_release);
    if (head.next != nullptr) return;
    m_last = nullptr;
    m_busy->store(activity::none, std::memory_order_release);
  }
  /// Makes who waits inside the oldest call come back: it lives as long as it is in the queue.
  void interrupt() noexcept {
    const brief_lock lock(m_lock);
    if (call_record* const head = front(); head != nullptr) head->call->interrupt();
  }

  /// In a process forked from the rank: threads that hold the lock are not there.
  void end_all_of_copy(const std::exception_ptr& error) noexcept {
    for (call_record* head = front(); head != nullptr; head = head->next) {
      head->error = error;
      head->state.store(call_record::complete, std::memory_order_release);
    }
    m_front.store(nullptr, std::memory_order_release);
    m_last = nullptr;
    m_lock.store(false, std::memory_order_release);
  }

 private:
  std::atomic<activity>* m_busy;
  mutable std::atomic<bool> m_lock{false};
  std::atomic<call_record*> m_front{nullptr};
  call_record* m_last = nullptr;
  call_record* m_free = nullptr;
  std::vector<std::unique_ptr<call_record>> m_records;
};

}  // namespace toroid::detail
