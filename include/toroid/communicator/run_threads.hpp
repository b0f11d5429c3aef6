// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/communicator.hpp>
#include <toroid/communicator/options.hpp>
#include <toroid/communicator/split_threads.hpp>
#include <toroid/transport/threads.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace toroid {

namespace detail {

/// The first error of several threads.
class first_error {
 public:
  void note(std::exception_ptr error) noexcept {
    const std::lock_guard lock(m_mutex);
    if (!m_error) m_error = std::move(error);
  }
  void rethrow() const {
    if (m_error) std::rethrow_exception(m_error);
  }

 private:
  std::mutex m_mutex;
  std::exception_ptr m_error;
};

inline std::string what_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace detail

/// Runs a function on ranks that are threads of this process.
///
/// @tparam F  callable with communicator<transport::threads>&; one object for all ranks, called concurrently
/// @param ranks   number of ranks, at least 1; more than there are cores is fine
/// @param f       what each rank does; it may return early, or throw: its peers are told at once
/// @param chosen  options of the communicator
/// @throws usage_error  for a wrong option or number of ranks, before any thread starts; system_error if a thread
///         cannot be started; else the first error that a rank threw, once all ranks have ended
///
/// Cost: a thread a rank, and options.region_bytes times 4 of memory a rank. The calling thread waits.
///
///     toroid::run_threads(4, [](auto& comm) { toroid::barrier(comm); });
template <class F>
void run_threads(int ranks, F&& f, const options& chosen = {}) {
  using comm_type = communicator<transport::threads>;
  static_assert(std::is_invocable_v<F&, comm_type&>, "toroid: run_threads needs a function of a communicator&");
  detail::check_options(ranks, chosen);
  const auto memory =
      std::make_shared<transport::threads::shared_memory>(ranks, detail::region_bytes_of(ranks, chosen));
  detail::first_error first;
  std::vector<std::thread> threads;
  std::vector<comm_type> ends;  // all of them first: once a thread runs, nothing may fail but starting the next
  for (int r = 0; r < ranks; ++r)
    ends.emplace_back(transport::threads(r, memory, detail::waiting_of(ranks, chosen)), chosen);
  try {
    for (int r = 0; r < ranks; ++r) {
      threads.emplace_back([r, &f, &first, comm = std::move(ends[static_cast<std::size_t>(r)])]() mutable noexcept {
        try {
          f(comm);
        } catch (...) {
          first.note(std::current_exception());
          if (detail::access::owns(comm))
            detail::access::session(comm).fail("rank " + std::to_string(r) +
                                               " has failed: " + detail::what_of(std::current_exception()));
        }
        const comm_type ended = std::move(comm);  // peers learn now that this rank has left, not when it is joined
      });
    }
  } catch (const std::exception& e) {
    first.note(std::make_exception_ptr(system_error(
        std::string("toroid: run_threads: thread ") + std::to_string(threads.size()) + " of " + std::to_string(ranks) +
        " could not be started: " + e.what() + "; raise the limit on processes (ulimit -u)")));
    ends.clear();  // those that run find the others gone
  }
  for (std::thread& thread : threads) thread.join();
  first.rethrow();
}

}  // namespace toroid
