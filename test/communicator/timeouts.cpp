// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/memory.hpp"
#include "support/process_state.hpp"

#include <toroid/toroid.hpp>

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

// A rank that comes late. The others get a timeout_error that says what was missing, and free their buffers at once;
// the late one must not touch them. (An address sanitizer would see it.)

namespace {

using namespace conformance;
using support::demand;
using clock_type = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds limit(300);

/// Calls on three ranks, the last of which sleeps past the deadline.
template <class Call>
void late(group_end& end, const char* operation, Call call) {
  std::vector<element> warm_up(1);
  end.all_reduce(warm_up, warm_up, {});
  end.all_reduce(warm_up, warm_up, {});
  if (end.rank() == 2) ::usleep(2 * 1000 * static_cast<useconds_t>(limit.count()));
  const auto began = clock_type::now();
  const std::string text = support::text_of<toroid::timeout_error>([&] { call(); });
  const auto took = clock_type::now() - began;
  demand(took < limit + std::chrono::seconds(5), "rank ", end.rank(), " waited too long");
  if (end.rank() != 2) demand(took >= limit / 2, "rank ", end.rank(), " did not wait");
  support::demand_words(text, std::string(operation) + " (call 3", "no answer within 300 ms", "in step ", " bytes",
                        "not yet in this call: rank 2");
  // Broken: every further call gives the same error at once.
  const auto again = clock_type::now();
  demand(support::text_of<toroid::timeout_error>([&] { end.barrier(); }) == text, "another error than ", text);
  std::vector<element> more(100'000);
  demand(support::text_of<toroid::timeout_error>([&] { end.all_reduce(more, more, {}); }) == text,
         "another error than ", text);
  demand(clock_type::now() - again < limit, "a broken communicator makes its caller wait");
}

/// Stalls once for a while, at a chosen signal.
template <class Base>
class stalling : public Base {
 public:
  stalling(Base base, int at, milliseconds length) : Base(std::move(base)), m_left(at), m_length(length) {}
  std::uint64_t signal(std::atomic<std::uint64_t>& flag, std::uint64_t value) noexcept {
    if (--m_left == 0) ::usleep(static_cast<useconds_t>(1000 * m_length.count()));
    return Base::signal(flag, value);
  }

 private:
  int m_left;
  milliseconds m_length;
};

}  // namespace

TEST_CASE("A late rank gives its peers a timeout_error that says what is missing", "[timeout]") {
  for (const choice& how : {choice{choice::kind::automatic, 0}, choice{choice::kind::ring, 0}}) {
    for (const std::size_t count : {std::size_t{3}, std::size_t{60'000}}) {
      on_both(3, {.timeout = limit}, [&](group_end& end) {
        late(end, "all_reduce", [&] {
          std::vector<element> values(count, 1);
          end.all_reduce(values, values, how);
        });
      });
    }
  }
  on_both(3, {.timeout = limit}, [](group_end& end) { late(end, "barrier", [&] { end.barrier(); }); });
  on_both(3, {.timeout = limit}, [](group_end& end) {
    late(end, "reduce_scatter", [&] {
      std::vector<element> values(3000, 1), block(1000);
      end.reduce_scatter(values, block, {});
    });
  });
  on_both(3, {.timeout = limit}, [](group_end& end) {
    late(end, "broadcast", [&] {
      std::vector<element> values(30'000, 1);
      end.broadcast(values, 2, {});
    });
  });
}

TEST_CASE("A late rank makes its peers time out in memory that all can reach", "[timeout]") {
  on_processes(3, {.timeout = limit}, [](group_end& end) {
    const std::span<std::byte> memory = end.allocate(60'000 * sizeof(element));
    late(end, "all_reduce", [&] {
      const std::span<element> values(reinterpret_cast<element*>(memory.data()), 60'000);
      end.all_reduce(values, values, {});
    });
  });
}

namespace {

/// How a vector travels among threads.
enum class travel {
  in_place,      ///< peers read and write it where it stands
  staged,        ///< through hand-over regions
  with_the_flag  ///< short, beside the flag
};

/// The last of three ranks stalls at its signal number `at` until long after the others have given up and freed what
/// they had passed in, and then goes on inside the call.
void free_while_one_stalls(travel how, bool ring, bool same_buffer, int at) {
  constexpr milliseconds short_limit(50), stall(200);
  const auto make = [=](toroid::transport::threads base) {
    const bool last = base.rank() == 2;
    support::restricted<toroid::transport::threads> admitted(
        std::move(base), how == travel::staged ? support::ways::through_regions : support::ways::all);
    return stalling<decltype(admitted)>(std::move(admitted), last ? at : 0, stall);
  };
  std::atomic<int> failed{0};
  const toroid::options chosen{.timeout = short_limit};
  const auto f = [&](auto& comm) {
    const std::size_t count = how == travel::with_the_flag ? 500 : 30'000;
    auto input = std::make_unique<std::vector<int>>(count, 1);
    auto result = same_buffer ? nullptr : std::make_unique<std::vector<int>>(count);
    std::vector<int>& out = same_buffer ? *input : *result;
    try {
      if (ring)
        toroid::all_reduce(comm, *input, out, toroid::ring{.segment_bytes = 4096});
      else
        toroid::all_reduce(comm, *input, out, toroid::direct{.segment_bytes = 4096});
    } catch (const toroid::error&) {
      ++failed;
    }
    // Whoever still reads or writes it races with this (a thread sanitizer sees that), or comes after the end of its
    // life (an address sanitizer).
    input->assign(count, -1);
    out.assign(count, -1);
    input.reset();
    result.reset();
  };
  toroid::transport::waiting how_to_wait = toroid::detail::waiting_of(3, chosen);
  how_to_wait.spins = 100;  // on a busy machine, yields outlast the stall
  how_to_wait.yields = 0;
  support::run_threads_over(3, chosen, how_to_wait, make, f);
  CHECK(failed > 0);
}

}  // namespace

TEST_CASE("Buffers may be freed after a timeout, though a peer is still inside the call", "[timeout]") {
  for (const bool ring : {false, true})
    for (const bool same_buffer : {true, false})
      for (int at = 1; at <= 6; ++at) free_while_one_stalls(travel::in_place, ring, same_buffer, at);
}

TEST_CASE("Staged buffers may be freed after a timeout, though a peer is still inside the call", "[timeout]") {
  for (const bool ring : {false, true})
    for (int at = 1; at <= 6; ++at) free_while_one_stalls(travel::staged, ring, at % 2 == 0, at);
}

TEST_CASE("Short buffers may be freed after a timeout, though a peer is still inside the call", "[timeout]") {
  for (const bool same_buffer : {true, false}) free_while_one_stalls(travel::with_the_flag, false, same_buffer, 1);
}

TEST_CASE("A thread that comes past the deadline touches nothing that its peers have freed", "[timeout]") {
  for (const bool ring : {false, true}) {
    for (const std::size_t count : {std::size_t{500}, std::size_t{30'000}}) {
      std::atomic<int> freed{0}, failed{0};
      const auto f = [&](auto& comm) {
        auto values = std::make_unique<std::vector<int>>(count, 1);
        if (comm.rank() == 2)
          while (freed < 2) ::usleep(1000);
        try {
          if (ring)
            toroid::all_reduce(comm, *values, toroid::ring{});
          else
            toroid::all_reduce(comm, *values, toroid::direct{});
        } catch (const toroid::timeout_error&) {
          ++failed;
        }
        values->assign(count, -1);
        values.reset();
        ++freed;
      };
      support::run_threads(3, f, {.timeout = milliseconds(50)});
      CHECK(failed == 3);
    }
  }
}

TEST_CASE("A peer that still reads freed memory of another process gets the group's error", "[timeout]") {
  // Rank 0 times out and unmaps its buffer while the last rank, which stalls, has still to copy from it.
  const auto stall = [](toroid::transport::shm base) {
    const bool last = base.rank() == 1;
    return stalling<toroid::transport::shm>(std::move(base), last ? 5 : 0, milliseconds(600));
  };
  const toroid::options chosen{.timeout = milliseconds(100)};
  const support::shared_by_all<std::atomic<int>> timed_out;
  support::run_processes_over(2, chosen, toroid::detail::waiting_of(2, chosen), stall, [&](auto& comm) {
    support::prefer_pulling(comm);
    toroid::barrier(comm);
    auto memory = std::make_unique<support::fenced_memory>(std::size_t{1} << 20);
    const std::span<int> values(reinterpret_cast<int*>(memory->bytes().data()), memory->bytes().size() / sizeof(int));
    const std::string text = support::text_of<toroid::timeout_error>(
        [&] { toroid::all_reduce(comm, values, toroid::direct{.segment_bytes = 4096}); });
    memory.reset();
    ++*timed_out;
    support::demand_words(text, "no answer within 100 ms");
  });
  CHECK(*timed_out == 2);
}

TEST_CASE("A rank that is stopped for less than the limit is not given up", "[timeout]") {
  on_both(3, {.timeout = std::chrono::seconds(20)}, [](group_end& end) {
    std::vector<element> values(50'000, 1);
    for (int i = 0; i < 3; ++i) {
      if (end.rank() == i) ::usleep(150'000);
      end.all_reduce(values, values, {});
    }
    demand(values.back() == 27, "the sum is ", values.back());
  });
}

TEST_CASE("A deadline holds where other work keeps the cores busy", "[timeout]") {
  const support::ending how = support::in_a_copy([]() -> std::string {
    cpu_set_t all, one;
    CPU_ZERO(&one);
    demand(::sched_getaffinity(0, sizeof all, &all) == 0, "no affinity");
    for (std::size_t core = 0; CPU_COUNT(&one) == 0; ++core)
      if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
    demand(::sched_setaffinity(0, sizeof one, &one) == 0, "no affinity");
    std::atomic<bool> done{false};
    std::vector<std::thread> busy;
    for (int i = 0; i < 12; ++i)
      busy.emplace_back([&] {
        while (!done) {
        }
      });
    std::string text;
    try {
      support::run_threads(2,
                           [&](auto& comm) {
                             if (comm.rank() == 1) {
                               while (!done) ::usleep(10'000);
                               return;
                             }
                             const auto began = clock_type::now();
                             text = support::text_of<toroid::timeout_error>([&] { toroid::barrier(comm); });
                             done = true;
                             // The core's other users may take what they want; a rank that gives way to them for each
                             // of many looks at its flag would take several seconds.
                             demand(clock_type::now() - began < std::chrono::seconds(3), "waited too long");
                           },
                           {.timeout = milliseconds(200)});
    } catch (const std::exception& error) {
      text = error.what();
    }
    done = true;
    for (std::thread& thread : busy) thread.join();
    return text;
  });
  CHECK(how.status == 0);
  INFO(how.text);
  CHECK(how.text.find("no answer within 200 ms") != std::string::npos);
}
