// SPDX-License-Identifier: Apache-2.0
// What goes wrong becomes an error on every rank, before the deadline: each kind once, and what a survivor does.
//
//   usage_error     a wrong argument: nothing has moved, the communicator goes on
//   mismatch_error  ranks disagree about a call
//   timeout_error   a rank was not heard from within options.timeout
//   peer_lost       a rank has died, left or thrown
//   system_error    the system refused something: the text says what, and the remedy
//
// After the three in the middle the communicator is broken, on all ranks: each further call throws the same at once.
#include <toroid/toroid.hpp>

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

/// The text of the error of type E that a call must end with.
template <class E, class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  throw std::logic_error("no error");
}

/// Whether a text says all of this. Texts name files and lines, which differ from machine to machine.
const char* says(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words)
    if (text.find(word) == std::string::npos) return "NO";
  return "yes";
}

void wrong_arguments() {
  toroid::run_threads(2, [](auto& comm) {
    std::vector<int> in(10, 1), out(9);
    const std::string text = error_of<toroid::usage_error>([&] { toroid::all_reduce(comm, in, out); });
    toroid::all_reduce(comm, in);  // goes on
    if (comm.rank() == 0)
      std::printf("usage_error: names the lengths: %s; the next sum is %d\n",
                  says(text, {"10 elements", "the result 9", "07_errors.cpp:"}), in[9]);
  });
}

void not_finite() {
  toroid::run_threads(3,
                      [](auto& comm) {
                        std::vector<float> gradient(8, 1);
                        if (comm.rank() == 1) gradient[5] = std::numeric_limits<float>::quiet_NaN();
                        const std::string text =
                            error_of<toroid::usage_error>([&] { toroid::all_reduce(comm, gradient); });
                        if (comm.rank() == 2)  // all ranks are told the same
                          std::printf("usage_error by check::data: names rank and index: %s\n",
                                      says(text, {"the input of rank 1 is not finite at index 5"}));
                      },
                      {.checking = toroid::check::data});
}

void different_calls() {
  toroid::run_threads(2, [](auto& comm) {
    const std::string text = error_of<toroid::mismatch_error>([&] {
      std::vector<float> values(100);
      if (comm.rank() == 0)
        toroid::all_reduce(comm, values, toroid::maximum{});
      else
        toroid::broadcast(comm, values, 0);
      toroid::barrier(comm);  // a broadcast's root may learn of it one call late
    });
    if (comm.rank() == 1)
      std::printf(
          "mismatch_error: names both ranks and what they called: %s\n",
          says(text, {"rank 0", "all_reduce of 100", "maximum", "rank 1", "broadcast of 100", "07_errors.cpp:"}));
  });
}

void too_late() {
  std::atomic<bool> given_up{false};
  toroid::run_threads(
      2,
      [&](auto& comm) {
        while (comm.rank() == 1 && !given_up)
          std::this_thread::sleep_for(1ms);  // rank 1 is late, however long it takes
        const std::string text = error_of<toroid::timeout_error>([&] { toroid::barrier(comm); });
        given_up = true;
        const std::string again = error_of<toroid::timeout_error>([&] { toroid::barrier(comm); });
        if (comm.rank() == 0)
          std::printf("timeout_error: names the deadline and who is missing: %s; the next call gives the same: %s\n",
                      says(text, {"barrier (call 1", "within 200 ms", "not yet in this call: rank 1"}),
                      again == text ? "yes" : "NO");
      },
      {.timeout = 200ms});
}

void dead_process() {
  const std::string text = error_of<toroid::peer_lost>([] {
    toroid::run_processes(3, [](auto& comm) {
      if (comm.rank() == 1) ::_exit(1);
      toroid::barrier(comm);  // on ranks 0 and 2 the same error
    });
  });
  std::printf("peer_lost: names the process that ended: %s\n", says(text, {"rank 1", "ended"}));
}

void refused_memory() {
  toroid::run_processes(2,
                        [](auto& comm) {
                          const std::string text =
                              error_of<toroid::system_error>([&] { toroid::allocate<char>(comm, 64 << 20); });
                          toroid::barrier(comm);  // goes on
                          if (comm.rank() == 0)
                            std::printf("system_error: names what was asked for and the remedy: %s\n",
                                        says(text, {"67108864 bytes", "shared_bytes"}));
                          std::fflush(stdout);
                        },
                        {.shared_bytes = 1 << 20});
}

/// Adds up 12 numbers ten times, shared out among the ranks. One of three ranks fails on the way; the others go on from
/// what they have saved.
constexpr int steps = 10, samples = 12;

struct saved {
  int steps = 0;
  long sum = 0;
};

template <class Communicator>
void work(Communicator& comm, saved& state, bool fails) {
  long sum = state.sum;
  for (int step = state.steps; step < steps; ++step) {
    if (fails && step == 5) throw std::runtime_error("the disk is full");
    const toroid::block own = toroid::block_of(samples, comm.size(), comm.rank());
    long part = 0;
    for (std::size_t i = own.begin; i < own.end(); ++i) part += static_cast<long>(i);
    toroid::all_reduce(comm, std::span(&part, 1));
    sum += part;
    if (step % 2 == 1)
      state = {step + 1, sum};  // a rank that ends this step and begins the next knows that all have it
  }
}

void survivors() {
  std::array<saved, 3> states{};
  std::array<std::string, 3> told{};
  try {
    toroid::run_threads(3, [&](auto& comm) {
      const std::size_t rank = static_cast<std::size_t>(comm.rank());
      try {
        work(comm, states[rank], rank == 2);
      } catch (const toroid::peer_lost& lost) {
        told[rank] = lost.what();  // time to save what only this rank has
        throw;
      }
    });
  } catch (const std::runtime_error& first) {
    std::printf("the launcher throws what rank 2 threw: %s; ranks 0 and 1 know of it: %s, %s\n", first.what(),
                says(told[0], {"rank 2", "the disk is full"}), says(told[1], {"rank 2", "the disk is full"}));
  }
  std::printf("saved after step %d and %d\n", states[0].steps, states[1].steps);
  // Those that are left make a new group, and go on.
  toroid::run_threads(2, [&](auto& comm) { work(comm, states[static_cast<std::size_t>(comm.rank())], false); });
  std::printf("after step %d: %ld, as without the failure\n", states[0].steps, states[1].sum);
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // processes that are forked later inherit no lines
  wrong_arguments();
  not_finite();
  different_calls();
  too_late();
  dead_process();
  refused_memory();
  survivors();
}
