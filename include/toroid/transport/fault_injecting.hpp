// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/transport/futex.hpp>
#include <toroid/transport/mapped_transport.hpp>
#include <toroid/transport/threads.hpp>
#include <toroid/transport/waiting.hpp>

#include <time.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace toroid::transport {

/// What fault_injecting does to a rank, and how often. Zero leaves a kind of fault out.
struct faults {
  std::uint64_t seed = 1;    ///< the same seed gives the same faults, whatever the ranks' speed
  int longest_delay = 200;   ///< microseconds; each delay is drawn from [0, longest_delay)
  int delay_one_in = 8;      ///< of so many places where a rank may be held up, one holds it up
  int interrupt_one_in = 4;  ///< of so many waits, one has all its sleeps cut short, as signals do
};

namespace detail {

inline void pause_for(std::int64_t nanoseconds) noexcept {
  timespec length{};
  length.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000);
  length.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000);
  ::nanosleep(&length, nullptr);
}

/// A sleep that a signal ends early: nobody has rung, time is not over.
inline int interrupted_sleep(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                             std::int64_t nanoseconds) noexcept {
  constexpr std::int64_t until_the_signal = 20'000;
  const int status = futex_wait(word, expected, nanoseconds < until_the_signal ? nanoseconds : until_the_signal);
  return status == ETIMEDOUT ? EINTR : status;
}

}  // namespace detail

/// A transport that makes its rank slow and its sleeps short, at random, to bring out what depends on timing: it holds
/// the rank up before it signals and before and after it waits, and interrupts sleeps. Results must not change.
///
/// @tparam Base  a mapped_transport over mapped_endpoint
///
/// A model of mapped_transport; for tests of programs and of the library. Ranks draw from streams of their own, so one
/// seed serves all of a group.
///
///     using slow = toroid::transport::fault_injecting<toroid::transport::threads>;
///     toroid::communicator<slow> comm(slow(toroid::transport::threads(rank, memory, how), {.seed = 7}), options);
template <mapped_transport Base>
class fault_injecting : public Base {
 public:
  explicit fault_injecting(Base base, const faults& chosen = {})
      : Base(std::move(base)),
        m_faults(chosen),
        m_state(chosen.seed * 0xd6e8feb86659fd93u + static_cast<std::uint64_t>(Base::rank())) {}

  /// As the base's, perhaps late.
  std::uint64_t signal(std::atomic<std::uint64_t>& flag, std::uint64_t value) noexcept {
    maybe_delay();
    return Base::signal(flag, value);
  }

  /// As the base's, perhaps late before or after it, perhaps with interrupted sleeps.
  void wait(int peer, const std::atomic<std::uint64_t>& flag, std::uint64_t value, const wait_context& context) {
    maybe_delay();
    Base::wait_with(chance(m_faults.interrupt_one_in) ? detail::interrupted_sleep : detail::futex_wait, peer, flag,
                    value, context);
    maybe_delay();
  }

 private:
  /// splitmix64
  std::uint64_t draw() noexcept {
    std::uint64_t z = (m_state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  bool chance(int one_in) noexcept { return one_in > 0 && draw() % static_cast<std::uint64_t>(one_in) == 0; }
  void maybe_delay() noexcept {
    if (m_faults.longest_delay <= 0 || !chance(m_faults.delay_one_in)) return;
    detail::pause_for(static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(m_faults.longest_delay)) * 1000);
  }

  faults m_faults;
  std::uint64_t m_state;
};

static_assert(mapped_transport<fault_injecting<threads>>);

}  // namespace toroid::transport
