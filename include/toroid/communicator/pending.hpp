// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/started_calls.hpp>
#include <toroid/core/error.hpp>

#include <exception>
#include <utility>

namespace toroid {

namespace detail {
struct pending_access;
}

/// A collective that has been started: the caller's end of it.
///
/// Move-only. Calls on one communicator begin in the order in which they were started, each when the one before is
/// complete; a blocking call begins when all are. They can be waited for in any order, from any thread, by one thread
/// at a time per communicator.
///
/// The call's buffers belong to the call until wait() has returned or test() has returned true (or the error has been
/// thrown): an input must not be changed, a result not be looked at, and neither freed. The operator has been copied.
///
/// A started call gets on while some thread waits: inside wait() and test(), for this call or another one, and inside
/// blocking collectives, for all that the thread has started on any communicator. options.progress can ask for a thread
/// of its own instead.
///
///     toroid::pending sum = toroid::start_all_reduce(comm, gradient);
///     prepare_the_next_batch();
///     sum.wait();
class [[nodiscard]] pending {
 public:
  /// Has no call.
  pending() noexcept = default;
  pending(pending&& other) noexcept
      : m_calls(std::move(other.m_calls)),
        m_record(std::exchange(other.m_record, nullptr)),
        m_over(std::exchange(other.m_over, false)) {}
  /// Waits for the call that it had, as the destructor does.
  pending& operator=(pending&& other) noexcept {
    pending moved(std::move(other));
    std::swap(m_calls, moved.m_calls);
    std::swap(m_record, moved.m_record);
    std::swap(m_over, moved.m_over);
    return *this;
  }
  /// Waits for the call, at most until the deadline of its communicator. An error is not thrown: the next call on the
  /// communicator throws it.
  ~pending() {
    if (m_record == nullptr) return;
    try {
      m_calls->finish(*m_record);
    } catch (...) {
      return;  // a copy forked from the rank: the record is the rank's
    }
    m_calls->give_back(*m_record);
  }

  /// Returns once the call is complete: the result is there, the buffers are the caller's again. Again, it returns at
  /// once.
  ///
  /// @throws mismatch_error, timeout_error, peer_lost, system_error  as the blocking call; the communicator is broken
  ///         then, and all calls that were started after this one get the same error. The deadline counts from when the
  ///         caller waits, not from the start. Again, it throws the same.
  /// @throws peer_lost    also if the communicator has been destroyed with the call in flight
  /// @throws usage_error  if it has no call, because it was moved from; in a copy forked from the rank; with
  ///         check::data, for an input that is not finite
  /// @throws what the operator has thrown
  void wait() {
    if (m_record == nullptr) return check_over();
    m_calls->finish(*m_record);
    settle();
  }

  /// Whether the call is complete; goes on with it, as far as needs no waiting, but with options.progress = thread.
  ///
  /// @throws as wait(); a timeout_error if nothing has moved since test() was first of no use, for as long as the
  ///         deadline
  bool test() {
    if (m_record == nullptr) {
      check_over();
      return true;
    }
    if (!m_calls->look(*m_record)) return false;
    settle();
    return true;
  }

  /// Whether it has a call that has not been found complete yet.
  bool valid() const noexcept { return m_record != nullptr; }

 private:
  friend struct detail::pending_access;

  pending(detail::started_calls_holder calls, detail::call_record& record) noexcept
      : m_calls(std::move(calls)), m_record(&record) {}

  void check_over() const {
    if (!m_over) throw usage_error("toroid: this pending has no call: it has been moved from, or never had one");
  }
  /// The call is complete: throws its error, or forgets it.
  void settle() {
    if (m_record->error) std::rethrow_exception(m_record->error);
    m_calls->give_back(*std::exchange(m_record, nullptr));
    m_over = true;
  }

  detail::started_calls_holder m_calls;
  detail::call_record* m_record = nullptr;
  bool m_over = false;  ///< it had one, which is complete
};

namespace detail {

/// How a started call gets its end for the caller.
struct pending_access {
  static pending make(started_calls_holder calls, call_record& record) noexcept { return {std::move(calls), record}; }
};

}  // namespace detail

}  // namespace toroid
