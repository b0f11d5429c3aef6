// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/memory.hpp"

#include <toroid/toroid.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
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

TEST_CASE("Buffers may be freed after a timeout, though a peer is still inside the call", "[timeout]") {
  // The last rank stalls at one signal after another, inside a call that reads and writes all ranks' vectors in place.
  for (const bool ring : {false, true}) {
    for (int at = 1; at <= 4; ++at) {
      const auto stall = [at](toroid::transport::threads base) {
        const bool last = base.rank() == 2;
        return stalling<toroid::transport::threads>(std::move(base), last ? at : 0, 4 * milliseconds(50));
      };
      std::atomic<int> failed{0};
      const toroid::options chosen{.timeout = milliseconds(50)};
      const auto f = [&](auto& comm) {
        auto values = std::make_unique<std::vector<int>>(30'000, 1);
        try {
          if (ring)
            toroid::all_reduce(comm, *values, toroid::ring{.segment_bytes = 4096});
          else
            toroid::all_reduce(comm, *values, toroid::direct{.segment_bytes = 4096});
        } catch (const toroid::error&) {
          ++failed;
        }
        values->assign(values->size(), -1);  // whoever still reads or writes it races with this
        values.reset();
      };
      support::run_threads_over(3, chosen, toroid::detail::waiting_of(3, chosen), stall, f);
      CHECK(failed > 0);
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
