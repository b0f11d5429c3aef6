// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/collective/start.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// Errors come where a call is waited for; afterwards nobody touches its buffers, which are freed at once. (An address
// sanitizer would see it.)

namespace {

using support::demand;
using clock_type = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds limit(300);
constexpr std::size_t short_length = 3, long_length = 60'000;

template <class Comm>
void warm_up(Comm& comm) {
  toroid::barrier(comm);
  toroid::barrier(comm);
}

/// Buffers on the heap, so that a late touch is seen.
struct buffer_in_flight {
  template <class Comm>
  buffer_in_flight(Comm& comm, std::size_t count)
      : values(std::make_unique<std::vector<int>>(count, comm.rank())),
        pending(toroid::start_all_reduce(comm, *values)) {}
  std::unique_ptr<std::vector<int>> values;
  toroid::pending pending;
};

/// Three ranks, the last of which starts past the deadline.
template <class Comm>
void late(Comm& comm, std::size_t count, bool tests) {
  warm_up(comm);
  if (comm.rank() == 2) ::usleep(2 * 1000 * static_cast<useconds_t>(limit.count()));
  std::vector<buffer_in_flight> calls;
  for (int i = 0; i < 3; ++i) calls.emplace_back(comm, count);
  if (comm.rank() != 2) ::usleep(1000 * static_cast<useconds_t>(limit.count()) / 2);  // does not count
  const auto began = clock_type::now();
  const std::string text = support::text_of<toroid::timeout_error>([&] {
    if (tests)
      while (!calls[2].pending.test()) ::usleep(200);
    else
      calls[2].pending.wait();
  });
  calls[2].values.reset();
  const auto took = clock_type::now() - began;
  if (comm.rank() != 2) demand(took >= limit / 2, "rank ", comm.rank(), " did not wait");
  demand(took < limit + std::chrono::seconds(5), "rank ", comm.rank(), " waited too long");
  support::demand_words(text, "all_reduce (call 3", "no answer within 300 ms", "not yet in this call: rank 2");
  for (int i = 0; i < 2; ++i) {  // all have got it, and get it again
    demand(support::text_of<toroid::timeout_error>([&] { calls[0].pending.wait(); }) == text, "another than ", text);
    demand(support::text_of<toroid::timeout_error>([&] { (void)calls[1].pending.test(); }) == text, "another error");
  }
  calls.clear();
  // Started afterwards, and blocking.
  std::vector<int> more(count);
  toroid::pending next = toroid::start_all_reduce(comm, more);
  demand(support::text_of<toroid::timeout_error>([&] { next.wait(); }) == text, "another than ", text);
  demand(support::text_of<toroid::timeout_error>([&] { toroid::barrier(comm); }) == text, "another than ", text);
}

}  // namespace

TEST_CASE("A late rank gives those that wait a timeout_error, and all that were started later the same", "[pending]") {
  const auto try_both = [](std::size_t count, bool tests) {
    support::run_both(3, [=](auto& comm) { late(comm, count, tests); }, {.timeout = limit});
  };
  try_both(short_length, false);
  try_both(long_length, true);
}

TEST_CASE("A rank killed with five calls in flight is lost to all of them", "[pending]") {
  for (const std::size_t count : {short_length, long_length}) {
    const auto f = [=](auto& comm) {
      warm_up(comm);
      std::vector<buffer_in_flight> calls;
      if (comm.rank() == 1) {
        for (int i = 0; i < 2; ++i) calls.emplace_back(comm, count);
        calls[0].pending.wait();
        ::raise(SIGKILL);
      }
      for (int i = 0; i < 5; ++i) calls.emplace_back(comm, count);
      calls[0].pending.wait();
      const std::string text = support::text_of<toroid::peer_lost>([&] { calls[4].pending.wait(); });
      support::demand_words(text, "rank 1");
      for (int i = 2; i < 5; ++i)
        demand(support::text_of<toroid::peer_lost>([&] { calls[static_cast<std::size_t>(i)].pending.wait(); }) == text,
               "another error than ", text);
    };
    const std::string text = support::text_of<toroid::peer_lost>(
        [&] { support::run_processes(3, f, {.timeout = std::chrono::minutes(1)}); });
    support::demand_words(text, "rank 1 was ended by signal 9");
  }
}

TEST_CASE("Ranks that start different calls get a mismatch_error where they wait", "[pending]") {
  for (const std::size_t count : {short_length, long_length}) {
    support::run_both(3, [=](auto& comm) {
      warm_up(comm);
      std::vector<int> values(count + (comm.rank() == 1 ? 1 : 0)), more(5);
      toroid::pending first = toroid::start_all_reduce(comm, values);
      toroid::pending second = toroid::start_all_reduce(comm, more);
      const std::string text = support::text_of<toroid::mismatch_error>([&] { first.wait(); });
      support::demand_words(text, "pending_errors.cpp");
      demand(support::text_of<toroid::mismatch_error>([&] { second.wait(); }) == text, "another error than ", text);
    });
  }
}

TEST_CASE("A pending that is destroyed waits for its call", "[pending]") {
  for (const std::size_t count : {short_length, long_length}) {
    support::run_both(3, [=](auto& comm) {
      for (int i = 0; i < 20; ++i) {
        const auto values = std::make_unique<std::vector<int>>(count, comm.rank() + i);
        {
          const toroid::pending dropped = toroid::start_all_reduce(comm, *values);
          if (comm.rank() == i % 3) ::usleep(300);
        }
        demand(values->back() == 3 + 3 * i, "not complete: ", values->back());
        toroid::pending replaced = toroid::start_all_reduce(comm, *values);
        replaced = toroid::start_barrier(comm);  // waits for what it had
        demand(values->back() == 3 * (3 + 3 * i), "not complete: ", values->back());
      }
    });
  }
}

TEST_CASE("A pending that an exception passes by waits for its call", "[pending]") {
  support::run_both(3, [](auto& comm) {
    std::vector<int> values(long_length, 1);
    try {
      const toroid::pending dropped = toroid::start_all_reduce(comm, values);
      throw std::runtime_error("something else");
    } catch (const std::runtime_error&) {
    }
    demand(values.back() == 3, "not complete: ", values.back());
    toroid::barrier(comm);
  });
}

TEST_CASE("A pending whose call fails is destroyed with the communicator broken", "[pending]") {
  support::run_threads(2,
                       [](auto& comm) {
                         warm_up(comm);
                         if (comm.rank() == 1) {
                           ::usleep(2 * 1000 * static_cast<useconds_t>(limit.count()));
                           return;
                         }
                         {
                           buffer_in_flight dropped(comm, long_length);
                           demand(dropped.pending.valid(), "no call");
                         }
                         (void)support::text_of<toroid::timeout_error>([&] { toroid::barrier(comm); });
                       },
                       {.timeout = limit});
}

TEST_CASE("A communicator that is destroyed first ends the calls in flight with peer_lost", "[pending]") {
  for (const std::size_t count : {short_length, long_length}) {
    support::run_both(3, [=](auto& given) {
      auto comm = std::make_optional(std::move(given));
      warm_up(*comm);
      const int rank = comm->rank();
      if (rank == 2) {
        (void)support::text_of<toroid::peer_lost>([&] {
          for (int i = 0; i < 5; ++i) buffer_in_flight(*comm, count).pending.wait();
        });
        return;
      }
      std::vector<buffer_in_flight> calls;
      for (int i = 0; i < 4; ++i) calls.emplace_back(*comm, count);
      if (rank == 1) ::usleep(1000);
      comm.reset();
      for (std::size_t i = 4; i-- > 0;) {
        calls[i].values.reset();
        (void)support::text_of<toroid::peer_lost>([&] { calls[i].pending.wait(); });
        (void)support::text_of<toroid::peer_lost>([&] { (void)calls[i].pending.test(); });
      }
    });
  }
}

TEST_CASE("Two communicators that wait for a missing rank are aborted in either order", "[pending]") {
  for (const bool first_first : {true, false}) {
    support::run_threads_in_groups(2, 3, {.timeout = std::chrono::minutes(2)}, [=](auto& comms) {
      for (auto& comm : comms) warm_up(comm);
      if (comms[0].rank() == 2) {  // takes no part, and stays until all is over
        for (auto& comm : comms)
          while (!toroid::detail::access::session(comm).transport().broken()) ::usleep(1000);
        return;
      }
      buffer_in_flight a(comms[0], long_length), b(comms[1], short_length);
      const auto began = clock_type::now();
      if (comms[0].rank() == 0) {
        ::usleep(20'000);
        comms[first_first ? 0 : 1].abort();
        comms[first_first ? 1 : 0].abort();
      }
      support::demand_words(support::text_of<toroid::peer_lost>([&] { b.pending.wait(); }), "rank 0 has aborted");
      b.values.reset();
      support::demand_words(support::text_of<toroid::peer_lost>([&] { a.pending.wait(); }), "rank 0 has aborted");
      a.values.reset();
      demand(clock_type::now() - began < std::chrono::seconds(30), "an abort takes its time");
    });
  }
}

TEST_CASE("Ranks that find two groups broken in opposite orders do not wait for each other for ever", "[pending]") {
  for (int i = 0; i < 20; ++i) {
    support::run_threads_in_groups(2, 3, {.timeout = std::chrono::minutes(2)}, [](auto& comms) {
      for (auto& comm : comms) warm_up(comm);
      const int rank = comms[0].rank();
      if (rank == 2) {
        ::usleep(3000);
        for (auto& comm : comms) comm.abort();
        return;
      }
      buffer_in_flight a(comms[0], long_length), b(comms[1], long_length);
      buffer_in_flight* const order[] = {&a, &b};
      for (const int which : {rank, 1 - rank}) {
        (void)support::text_of<toroid::peer_lost>([&] { order[which]->pending.wait(); });
        order[which]->values.reset();
      }
    });
  }
}

TEST_CASE("A pending without a call says so, one that is over returns at once", "[pending]") {
  support::run_threads(2, [](auto& comm) {
    toroid::pending none;
    demand(!none.valid(), "valid without a call");
    support::demand_words(support::text_of<toroid::usage_error>([&] { none.wait(); }), "has no call");
    std::vector<int> values(2000, 1);
    toroid::pending from = toroid::start_all_reduce(comm, values);
    demand(from.valid(), "not valid with a call");
    toroid::pending to = std::move(from);
    support::demand_words(support::text_of<toroid::usage_error>([&] { from.wait(); }), "moved from");
    support::demand_words(support::text_of<toroid::usage_error>([&] { (void)from.test(); }), "moved from");
    to.wait();
    to.wait();
    demand(to.test() && values[1999] == 2, "not over");
    none = std::move(to);
    none.wait();
  });
}

TEST_CASE("A wrong argument is refused by the start, and nothing is recorded", "[pending]") {
  support::run_both(2, [](auto& comm) {
    std::vector<int> values(3000, 1);
    const auto refused = [](auto&& start) { return support::text_of<toroid::usage_error>(start); };
    for (int i = 0; i < 3; ++i) {
      support::demand_words(
          refused([&] { (void)toroid::start_all_reduce(comm, std::span<int>(static_cast<int*>(nullptr), 5)); }),
          "null");
      support::demand_words(refused([&] {
                              (void)toroid::start_all_reduce(comm, std::span<const int>(values).first(100),
                                                             std::span<int>(values).subspan(50, 100));
                            }),
                            "overlap");
      support::demand_words(refused([&] { (void)toroid::start_broadcast(comm, values, 2); }), "root 2");
      support::demand_words(refused([&] { (void)toroid::start_all_reduce(comm, values, toroid::torus_2d{.rows = 7}); }),
                            "torus_2d");
      toroid::start_all_reduce(comm, values, toroid::maximum{}).wait();
    }
    auto moved = std::move(comm);
    support::demand_words(refused([&] { (void)toroid::start_barrier(comm); }), "moved from");
    comm = std::move(moved);
    toroid::start_barrier(comm).wait();
  });
}

TEST_CASE("What the operator throws comes out where its call is waited for", "[pending]") {
  for (const std::size_t count : {short_length, long_length}) {
    support::run_threads(2, [=](auto& comm) {
      warm_up(comm);
      std::vector<int> values(count, comm.rank()), more(3);
      toroid::pending sum = toroid::start_all_reduce(comm, values, [](int a, int b) {
        if (a + b == 1) throw std::runtime_error("one is too much");
        return a + b;
      });
      toroid::pending next = toroid::start_all_reduce(comm, more);
      const auto both = [&](auto& pending) {
        try {
          pending.wait();
        } catch (const toroid::peer_lost&) {  // the other one was first
          return;
        } catch (const std::runtime_error& error) {
          demand(error.what() == std::string("one is too much"), "another error: ", error.what());
          return;
        }
        demand(false, "no error");
      };
      both(sum);
      both(next);
    });
  }
}

TEST_CASE("An input that is not finite is told about where the call is waited for, and breaks nothing", "[pending]") {
  for (const std::size_t count : {short_length, long_length}) {
    support::run_both(3,
                      [=](auto& comm) {
                        std::vector<float> good(count, 1.f), bad(count, 1.f);
                        if (comm.rank() == 1) bad[2] = std::numeric_limits<float>::infinity();
                        toroid::pending first = toroid::start_all_reduce(comm, bad);
                        toroid::pending second = toroid::start_all_reduce(comm, good);
                        second.wait();
                        demand(good[1] == 3.f, "the next sum: ", good[1]);
                        support::demand_words(support::text_of<toroid::usage_error>([&] { first.wait(); }), "rank 1",
                                              "index 2");
                      },
                      {.checking = toroid::check::data});
  }
}

TEST_CASE("A copy forked from a rank with calls in flight does no harm", "[pending]") {
  support::run_processes(2, [](auto& comm) {
    buffer_in_flight call(comm, long_length);
    const pid_t child = ::fork();
    if (child == 0) {
      int status = 0;
      try {
        call.pending.wait();
        status = 1;
      } catch (const toroid::usage_error&) {
      }
      {
        const toroid::pending dropped = std::move(call.pending);
        const auto ended = std::move(comm);
      }
      ::_exit(status);
    }
    int status = -1;
    demand(::waitpid(child, &status, 0) == child && status == 0, "the copy ended with status ", status);
    call.pending.wait();
    demand(call.values->front() == 1, "the sum: ", call.values->front());
  });
}
