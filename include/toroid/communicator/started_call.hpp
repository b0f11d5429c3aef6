// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace toroid::detail {

/// How far a started call is to be gone on with.
struct effort {
  enum class extent : std::uint8_t {
    enter,  ///< begin it, so that its peers can go on
    look,   ///< as far as needs no waiting
    wait    ///< to its end, as a blocking call
  };
  extent how = extent::look;
  bool quiet = false;       ///< nothing has been heard for a while
  std::int64_t waited = 0;  ///< nanoseconds that the caller has been asking for it without effect
  const std::atomic<std::int64_t>* asked = nullptr;  ///< as in transport::wait_context
};

enum class movement : std::uint8_t { none, some, complete };

/// A collective that can be left off and gone on with: the schedule, the executor and the position in it.
class started_call {
 public:
  started_call() = default;
  started_call(const started_call&) = delete;
  started_call& operator=(const started_call&) = delete;
  virtual ~started_call() = default;

  /// Goes on. Throws what the collective throws; then it is over.
  virtual movement advance(const effort& how) = 0;
  /// Ends it, because its communicator ends: fails the group, and returns once nobody touches the caller's buffers.
  /// @return the error that the caller gets
  virtual std::exception_ptr give_up() noexcept = 0;
  /// Makes a thread that waits inside advance() come back soon, with an error. From any thread.
  virtual void interrupt() noexcept = 0;
};

/// Holds a started call, with the operator that it needs. Used again and again, since a start is not to allocate.
class call_record {
 public:
  static constexpr std::size_t room = 1024;        ///< bytes for what is derived from started_call
  static constexpr std::size_t functor_room = 64;  ///< bytes for an operator; larger ones are allocated
  enum : std::uint32_t { in_flight, complete, awaited };

  call_record() = default;
  call_record(const call_record&) = delete;
  call_record& operator=(const call_record&) = delete;
  ~call_record() { clear(); }

  /// Keeps a copy of an operator until the record is used again.
  template <class F>
  const void* keep(const F& functor) {
    static_assert(std::is_copy_constructible_v<F>, "toroid: a started call keeps a copy of its operator");
    if constexpr (sizeof(F) <= functor_room && alignof(F) <= alignof(std::max_align_t)) {
      m_functor = new (m_functor_memory) F(functor);
      if constexpr (!std::is_trivially_destructible_v<F>) m_destroy = [](void* f) { static_cast<F*>(f)->~F(); };
    } else {
      m_functor = new F(functor);
      m_destroy = [](void* f) { delete static_cast<F*>(f); };
    }
    return m_functor;
  }

  template <class Call, class... Arguments>
  void emplace(Arguments&&... arguments) {
    static_assert(sizeof(Call) <= room && alignof(Call) <= alignof(std::max_align_t));
    call = new (m_memory) Call(std::forward<Arguments>(arguments)...);
  }

  /// Ends the call, but for its error.
  void end_call() noexcept {
    if (call != nullptr) std::exchange(call, nullptr)->~started_call();
  }
  /// Makes the record fit for the next call.
  void clear() noexcept {
    end_call();
    if (m_destroy != nullptr) std::exchange(m_destroy, nullptr)(m_functor);
    error = nullptr;
    stuck_since = looked_after = 0;
    next = nullptr;
    state.store(in_flight, std::memory_order_relaxed);
  }
  bool is_complete() const noexcept { return state.load(std::memory_order_acquire) == complete; }

  /// complete: stored with release by who has driven the call to its end; pairs with the acquire of who asks for it.
  std::atomic<std::uint32_t> state{in_flight};
  started_call* call = nullptr;
  std::exception_ptr error;
  call_record* next = nullptr;    ///< in the queue, or among the free ones
  std::int64_t stuck_since = 0;   ///< when asking for it first was of no use; 0 after it has moved
  std::int64_t looked_after = 0;  ///< when the peers were last looked after meanwhile

 private:
  void* m_functor = nullptr;
  void (*m_destroy)(void*) = nullptr;
  alignas(std::max_align_t) std::byte m_functor_memory[functor_room];
  alignas(std::max_align_t) std::byte m_memory[room];
};

}  // namespace toroid::detail
