// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/started_calls.hpp>
#include <toroid/core/error.hpp>
#include <toroid/transport/futex.hpp>

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <string>
#include <thread>

namespace toroid::detail {

/// A thread that drives the calls in flight on one communicator; it sleeps while there are none.
class progress_thread final : public progress_driver {
 public:
  /// @throws system_error  if there is no thread to be had
  explicit progress_thread(started_calls& calls) : m_calls(calls) {
    // Signals are for the program's own threads.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::string refused;
    try {
      m_thread = std::thread([this] { run(); });
    } catch (const std::exception& e) {
      refused = e.what();
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!refused.empty())
      throw system_error("toroid: the thread of options.progress could not be started: " + refused +
                         "; raise the limit on processes (ulimit -u)");
  }
  progress_thread(const progress_thread&) = delete;
  progress_thread& operator=(const progress_thread&) = delete;
  /// @pre  calls in flight end soon
  ~progress_thread() override {
    m_stop.store(true, std::memory_order_release);  // pairs with the acquire in run()
    wake();
    m_thread.join();
  }

  void wake() noexcept override {
    m_bell.fetch_add(1, std::memory_order_release);
    transport::detail::futex_wake(m_bell);
  }

 private:
  void run() noexcept {
    constexpr std::int64_t long_sleep = 1'000'000'000;
    while (true) {
      const std::uint32_t seen = m_bell.load(std::memory_order_acquire);
      if (m_stop.load(std::memory_order_acquire)) return;
      m_calls.drive_all();
      transport::detail::futex_wait(m_bell, seen, long_sleep);
    }
  }

  started_calls& m_calls;
  std::atomic<std::uint32_t> m_bell{0};
  std::atomic<bool> m_stop{false};
  std::thread m_thread;
};

}  // namespace toroid::detail
