// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/sanitizers.hpp"

#include <toroid/toroid.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

// Ranks fork, as programs do whose data are read by child processes. The copy may work, end in any way, or try to use
// what it has inherited: the rank it was copied from goes on, and so do its memory and its peers.

namespace {

using support::demand;

constexpr int ranks = 2, calls = 1000;

/// Forks the caller and tells how its copy ended.
template <class F>
int status_of_a_copy(F f) {
  std::fflush(nullptr);
  std::cout.flush();
  const pid_t copy = ::fork();
  if (copy == 0) {
    ::alarm(support::patience);
    f();
    ::_exit(99);
  }
  demand(copy > 0, "no fork");
  int status = -1;
  ::waitpid(copy, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

template <class Communicator>
void sums_go_on(Communicator& comm, int times) {
  std::vector<int> values;
  for (int i = 0; i < times; ++i) {
    values.assign(i % 50 == 0 ? 20'000 : 3, i);
    if (i == comm.rank() + 1) ::usleep(20'000);  // whoever waits long looks whether its peer has left
    toroid::all_reduce(comm, values);
    demand(values.front() == ranks * i && values.back() == ranks * i, "sum ", i, " is ", values.front());
  }
}

/// What a process that reads data does: work in memory of its own.
int decode() {
  std::vector<int> numbers(50'000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i * 7919 % 50'000);
  std::sort(numbers.begin(), numbers.end());
  return numbers[49'999] == 49'999 && numbers[0] == 0 ? 7 : 1;
}

/// 8 if `call` is refused because the process is a copy.
template <class F>
int refused(F call) {
  try {
    call();
  } catch (const toroid::usage_error& error) {
    return std::string(error.what()).find("forked") != std::string::npos ? 8 : 2;
  } catch (const std::exception&) {
    return 3;
  }
  return 4;
}

/// Objects that outlive main(), so that exit() destroys them: the ranks' communicators and memory from them.
template <class Communicator>
struct kept_until_exit {
  using shared_vector = std::vector<int, toroid::allocator<int>>;
  std::optional<Communicator> comm;
  std::optional<shared_vector> numbers;
};

template <class Communicator>
kept_until_exit<Communicator>& kept(int rank) {
  static std::array<kept_until_exit<Communicator>, ranks> all;
  return all[static_cast<std::size_t>(rank)];
}

void run_both(auto f) {
  support::run_threads(ranks, f);
  support::run_processes(ranks, f);
}

}  // namespace

TEST_CASE("A copy of a rank that only works changes nothing", "[forked]") {
  run_both([](auto& comm) {
    sums_go_on(comm, 1);
    demand(status_of_a_copy([] { ::_exit(decode()); }) == 7, "the copy's work");
    sums_go_on(comm, calls);
  });
}

TEST_CASE("A copy of a rank that calls exit destroys what it has inherited, and nothing of the rank's", "[forked]") {
  const auto f = [](auto& comm) {
    using comm_type = std::remove_reference_t<decltype(comm)>;
    sums_go_on(comm, 1);
    const int rank = comm.rank();
    auto& mine = kept<comm_type>(rank);
    mine.comm.emplace(std::move(comm));
    mine.numbers.emplace(50'000u, toroid::allocator<int>(*mine.comm));
    for (int& number : *mine.numbers) number = rank + 1;
    // No rank forks while another moves its communicator to where exit() will destroy it.
    toroid::barrier(*mine.comm);
    const int status = status_of_a_copy([] {
      std::atexit([] {
        if (decode() != 7) ::_exit(5);
      });
      std::exit(6);
    });
    demand(status == 6, "a copy that calls exit ended with ", status);
    for (const int number : *mine.numbers) demand(number == rank + 1, "the rank's memory has become ", number);
    sums_go_on(*mine.comm, calls);
    toroid::all_reduce(*mine.comm, *mine.numbers);
    for (const int number : *mine.numbers) demand(number == 3, "the sum is ", number);
    mine.numbers.reset();
    comm = std::move(*mine.comm);
    mine.comm.reset();
  };
  if (support::address_sanitizer)
    WARN("skipped for threads: the leak sanitizer cannot look through a copy of a process with threads");
  else
    support::run_threads(ranks, f);
  support::run_processes(ranks, f);
}

TEST_CASE("A copy of a rank is refused every call, and harms nobody by trying", "[forked]") {
  run_both([](auto& comm) {
    sums_go_on(comm, 1);
    const std::span<int> shared = toroid::allocate<int>(comm, 30'000);
    std::fill(shared.begin(), shared.end(), comm.rank() + 1);
    std::vector<int> values(30'000, 1), block(15'000);
    const auto in_a_copy = [&](const char* what, auto call) {
      const int status = status_of_a_copy([&] { ::_exit(refused(call)); });
      demand(status == 8, what, " in a copy ended with ", status);
    };
    in_a_copy("all_reduce", [&] { toroid::all_reduce(comm, values); });
    in_a_copy("short all_reduce", [&] { toroid::all_reduce(comm, std::span<int>(values).first(1)); });
    in_a_copy("all_reduce of shared memory", [&] { toroid::all_reduce(comm, shared); });
    in_a_copy("reduce_scatter", [&] { toroid::reduce_scatter(comm, values, block); });
    in_a_copy("all_gather", [&] { toroid::all_gather(comm, block, values); });
    in_a_copy("broadcast", [&] { toroid::broadcast(comm, values, 0); });
    in_a_copy("barrier", [&] { toroid::barrier(comm); });
    in_a_copy("allocate", [&] { toroid::allocate<int>(comm, 30'000); });
    const int aborted = status_of_a_copy([&] {
      comm.abort();
      ::_exit(refused([&] { toroid::barrier(comm); }));
    });
    demand(aborted == 8, "a copy that aborts ended with ", aborted);
    const int destroyed = status_of_a_copy([&] {
      { const auto gone = std::move(comm); }
      ::_exit(9);
    });
    demand(destroyed == 9, "a copy that destroys ended with ", destroyed);
    const int given_back = status_of_a_copy([&] {
      try {
        toroid::deallocate(comm, shared);
      } catch (const toroid::usage_error&) {
      }
      ::_exit(10);
    });
    demand(given_back == 10, "a copy that gives memory back ended with ", given_back);
    for (const int number : shared) demand(number == comm.rank() + 1, "the rank's memory has become ", number);
    sums_go_on(comm, calls);
    toroid::all_reduce(comm, shared);
    for (const int number : shared) demand(number == 3, "the sum is ", number);
  });
}

TEST_CASE("A rank may fork while another of its threads allocates", "[forked]") {
  if (support::sanitized) {
    WARN("skipped: sanitizers bring an allocator of their own, which may not be usable in a copy");
    return;
  }
  const auto f = [](auto& ends) {
    std::atomic<bool> done{false};
    std::string problem;
    std::thread other([&] {
      try {
        for (std::size_t i = 0; !done; ++i) {
          const std::span<int> memory = toroid::allocate<int>(ends[1], 1 + i % 5000);
          const std::vector<char> own(1 + i * 997 % 200'000);
          toroid::deallocate(ends[1], memory);
        }
      } catch (const std::exception& error) {
        problem = error.what();
      }
    });
    try {
      for (int i = 0; i < 200; ++i) {
        const int status = status_of_a_copy([] {
          std::vector<std::vector<char>> own(50);
          for (std::size_t n = 0; n < own.size(); ++n) own[n].resize(n * 1000 + 1);
          ::_exit(own[49].size() == 49'001 ? 7 : 1);
        });
        demand(status == 7, "copy ", i, " ended with ", status);
        if (i % 20 == 0) sums_go_on(ends[0], 10);
      }
    } catch (...) {
      done = true;
      other.join();
      throw;
    }
    done = true;
    other.join();
    demand(problem.empty(), problem);
  };
  support::run_threads_in_groups(2, ranks, {}, f);
  support::run_processes_in_groups(2, ranks, {}, f);
}
