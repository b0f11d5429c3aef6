// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "support/watchdog.hpp"

#include <toroid/communicator/run_processes.hpp>
#include <toroid/communicator/run_threads.hpp>

#include <sys/mman.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

/// Launchers of groups for tests: those of the library under a watchdog, and the same for a transport that wraps one.
namespace support {

/// Seconds after which a group that still runs is hopeless; far beyond what any needs, sanitizers included.
inline constexpr unsigned patience = 240;

/// What a transport shares between ranks, and one rank's end of it, for each of the two transports.
using threads_memory = std::shared_ptr<toroid::transport::threads::shared_memory>;
using shm_memory = std::shared_ptr<toroid::transport::shm::segments>;

/// Runs f(communicator&) on threads, over the transports that `make` makes.
///
/// @param make  called as make(threads(rank, memory, how)); returns the transport of that rank
/// @param how   how to wait
template <class Make, class F>
void run_threads_over(int ranks, const toroid::options& chosen, const toroid::transport::waiting& how, Make make, F f) {
  using transport_type = std::invoke_result_t<Make&, toroid::transport::threads>;
  using comm_type = toroid::communicator<transport_type>;
  const watchdog guard(patience);
  const auto memory = std::make_shared<toroid::transport::threads::shared_memory>(
      ranks, toroid::detail::region_bytes_of(ranks, chosen));
  toroid::detail::first_error first;
  std::vector<comm_type> ends;
  for (int r = 0; r < ranks; ++r) ends.emplace_back(make(toroid::transport::threads(r, memory, how)), chosen);
  std::vector<std::thread> threads;
  for (comm_type& end : ends) {
    threads.emplace_back([&] {
      comm_type comm = std::move(end);
      try {
        f(comm);
      } catch (const std::exception& error) {
        first.note(std::current_exception());
        toroid::detail::access::session(comm).fail("rank " + std::to_string(comm.rank()) +
                                                   " has failed: " + error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  first.rethrow();
}

/// The same on forked processes, over transports made from shm.
template <class Make, class F>
void run_processes_over(int ranks, const toroid::options& chosen, const toroid::transport::waiting& how, Make make,
                        F f) {
  using transport_type = std::invoke_result_t<Make&, toroid::transport::shm>;
  const watchdog guard(patience);
  toroid::detail::forked_group group(ranks, chosen);
  for (int r = 0; r < ranks; ++r) {
    group.start(r, [&](shm_memory memory) {
      toroid::communicator<transport_type> comm(make(toroid::transport::shm(r, std::move(memory), how)), chosen);
      try {
        f(comm);
      } catch (const std::exception& error) {
        group.report(r, std::current_exception());
        toroid::detail::access::session(comm).fail("rank " + std::to_string(r) + " has failed: " + error.what());
        throw;
      }
    });
  }
  group.join();
}

/// toroid::run_threads under a watchdog.
template <class F>
void run_threads(int ranks, F f, const toroid::options& chosen = {}, unsigned seconds = patience) {
  const watchdog guard(seconds);
  toroid::run_threads(ranks, f, chosen);
}

/// toroid::run_processes under a watchdog.
template <class F>
auto run_processes(int ranks, F f, const toroid::options& chosen = {}, unsigned seconds = patience) {
  const watchdog guard(seconds);
  return toroid::run_processes(ranks, f, chosen);
}

/// Runs f(communicator&) on threads, then on processes.
template <class F>
void run_both(int ranks, F f, const toroid::options& chosen = {}) {
  support::run_threads(ranks, f, chosen);
  support::run_processes(ranks, f, chosen);
}

/// Runs f(ends) on ranks that are threads and hold `groups` communicators each: ends[g] is the rank's end of group g.
///
/// @param seconds  after which the groups are hopeless
template <class F>
void run_threads_in_groups(int groups, int ranks, const toroid::options& chosen, F f, unsigned seconds = patience) {
  const watchdog guard(seconds);
  const toroid::transport::waiting how = toroid::detail::waiting_of(ranks, chosen);
  std::vector<std::vector<toroid::communicator<toroid::transport::threads>>> ends(static_cast<std::size_t>(ranks));
  for (int g = 0; g < groups; ++g) {
    const auto memory = std::make_shared<toroid::transport::threads::shared_memory>(
        ranks, toroid::detail::region_bytes_of(ranks, chosen));
    for (int r = 0; r < ranks; ++r)
      ends[static_cast<std::size_t>(r)].emplace_back(toroid::transport::threads(r, memory, how), chosen);
  }
  toroid::detail::first_error first;
  std::vector<std::thread> threads;
  for (auto& mine : ends) {
    threads.emplace_back([&f, &first, mine = std::move(mine)]() mutable {
      try {
        f(mine);
      } catch (...) {
        first.note(std::current_exception());
      }
      mine.clear();
    });
  }
  for (std::thread& thread : threads) thread.join();
  first.rethrow();
}

/// The same on forked processes.
template <class F>
void run_processes_in_groups(int groups, int ranks, const toroid::options& chosen, F f, unsigned seconds = patience) {
  const watchdog guard(seconds);
  const toroid::transport::waiting how = toroid::detail::waiting_of(ranks, chosen);
  std::vector<shm_memory> memories;
  for (int g = 0; g < groups; ++g)
    memories.push_back(std::make_shared<toroid::transport::shm::segments>(
        ranks, toroid::detail::region_bytes_of(ranks, chosen), std::size_t{1} << 20, chosen.directory));
  toroid::detail::forked_group watched(ranks, chosen);
  for (int r = 0; r < ranks; ++r) {
    watched.start(r, [&](const shm_memory&) {
      std::vector<toroid::communicator<toroid::transport::shm>> mine;
      for (shm_memory& memory : memories) mine.emplace_back(toroid::transport::shm(r, std::move(memory), how), chosen);
      f(mine);
    });
  }
  memories.clear();
  watched.join();
}

/// Which ways to a peer's buffers a transport admits.
enum class ways { all, through_regions };

/// A transport that may hide some of its ways.
template <class Base>
class restricted : public Base {
 public:
  restricted(Base base, ways admitted) : Base(std::move(base)), m_hides(admitted == ways::through_regions) {}
  bool reachable(const void* pointer, std::size_t bytes) const noexcept {
    return !m_hides && Base::reachable(pointer, bytes);
  }
  bool can_pull() noexcept requires toroid::pulling_transport<Base> { return !m_hides && Base::can_pull(); }

 private:
  bool m_hides;
};

/// Makes a rank prefer that peers' ordinary memory is copied from where it stands. All ranks follow rank 0.
template <class Communicator>
void prefer_pulling(Communicator& comm) {
  auto& chooser = toroid::detail::access::session(comm).chooser();
  using way = toroid::detail::path_chooser::way;
  for (std::size_t bytes = 1; bytes < std::size_t{1} << 40; bytes *= 2) {
    for (int i = 0; i < 64; ++i) (void)chooser.choose(bytes);  // past its trials
    chooser.note(bytes, way::staged, std::int64_t{1} << 60);
    chooser.note(bytes, way::pulled, 1);
  }
}

/// Zeroed objects that ranks share, whether they are threads or forked later.
template <class T>
class shared_by_all {
 public:
  explicit shared_by_all(std::size_t count = 1)
      : m_memory(count * sizeof(T)), m_objects(new (m_memory.data()) T[count]{}) {}
  T& operator[](std::size_t index) const noexcept { return m_objects[index]; }
  T& operator*() const noexcept { return *m_objects; }
  T* operator->() const noexcept { return m_objects; }

 private:
  toroid::detail::forked_memory m_memory;
  T* m_objects;
};

}  // namespace support
