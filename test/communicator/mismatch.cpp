// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/toroid.hpp>

#include <chrono>
#include <functional>
#include <span>
#include <vector>

// Ranks that make different calls. Each learns of it, within seconds, from an error that names two ranks, what both
// called and where.

namespace {

using support::demand;
using namespace toroid;

constexpr call_site here{"here.cpp", 11};
constexpr call_site there{"there.cpp", 22};

/// Makes calls that do not agree, then barriers, since roots may learn of it one call late.
///
/// @param two_calls  of (comm, is_odd): what most ranks call, from `here`, and what rank `odd` calls, from `there`
/// @param words      what the texts must contain besides
template <class TwoCalls, class... Words>
void disagree(TwoCalls two_calls, const Words&... words) {
  for (const int ranks : {2, 3}) {
    for (const int odd : {0, ranks - 1}) {
      support::run_threads(ranks,
                           [&](auto& comm) {
                             const auto began = std::chrono::steady_clock::now();
                             const auto calls = [&] {
                               two_calls(comm, comm.rank() == odd);
                               barrier(comm, here);
                               barrier(comm, here);
                             };
                             const std::string text = support::text_of<mismatch_error>(calls);
                             demand(std::chrono::steady_clock::now() - began < std::chrono::seconds(5),
                                    "it took too long to say ", text);
                             support::demand_words(text, "ranks disagree", "rank " + std::to_string(odd), words...);
                             // The communicator is broken: the same error again, at once.
                             demand(support::text_of<mismatch_error>([&] { barrier(comm); }) == text,
                                    "another error than ", text);
                           },
                           {.timeout = std::chrono::seconds(20)});
    }
  }
}

template <class Comm>
void sum_of(Comm& comm, std::size_t count, const call_site& at) {
  std::vector<int> values(count, 1);
  all_reduce(comm, values, {}, {}, at);
}

}  // namespace

TEST_CASE("Ranks that reduce different counts learn of it", "[mismatch]") {
  for (const auto& [most, odd] : {std::pair<std::size_t, std::size_t>{10, 9}, {4096, 4095}, {1, 0}, {100'000, 3}})
    disagree([most = most, odd = odd](auto& comm,
                                      bool is_odd) { is_odd ? sum_of(comm, odd, there) : sum_of(comm, most, here); },
             "all_reduce of " + std::to_string(most), "all_reduce of " + std::to_string(odd), "here.cpp:11",
             "there.cpp:22");
}

TEST_CASE("Ranks that pass different operators or types learn of it", "[mismatch]") {
  disagree(
      [](auto& comm, bool is_odd) {
        std::vector<int> values(1000, 1);
        is_odd ? all_reduce(comm, values, product{}, {}, there) : all_reduce(comm, values, sum{}, {}, here);
      },
      "product", "sum", "here.cpp:11", "there.cpp:22");
  disagree(
      [](auto& comm, bool is_odd) {
        std::vector<int> values(1000, 1);
        std::vector<float> others(1000, 1);
        is_odd ? all_reduce(comm, others, {}, {}, there) : all_reduce(comm, values, {}, {}, here);
      },
      "int32", "float", "here.cpp:11", "there.cpp:22");
}

TEST_CASE("Ranks that choose different algorithms or segments learn of it", "[mismatch]") {
  disagree(
      [](auto& comm, bool is_odd) {
        std::vector<int> values(1000, 1);
        is_odd ? all_reduce(comm, values, ring{}, {}, there) : all_reduce(comm, values, direct{}, {}, here);
      },
      "ring", "direct", "here.cpp:11", "there.cpp:22");
  disagree(
      [](auto& comm, bool is_odd) {
        std::vector<int> values(1000, 1);
        all_reduce(comm, values, ring{.segment_bytes = is_odd ? 512u : 256u}, {}, is_odd ? there : here);
      },
      "segments of 512 bytes", "segments of 256 bytes", "here.cpp:11", "there.cpp:22");
  // Whether an operator commutes decides which tree it is.
  disagree(
      [](auto& comm, bool is_odd) {
        std::vector<int> values(1000, 1);
        const auto add = [](int a, int b) { return a + b; };
        is_odd ? all_reduce(comm, values, add, tree{}, there)
               : all_reduce(comm, values, commutative(add), tree{}, here);
      },
      "tree in order", "a functor, tree at", "here.cpp:11", "there.cpp:22");
}

TEST_CASE("Ranks that name different roots learn of it", "[mismatch]") {
  for (const std::size_t count : {1u, 10'000u})
    disagree(
        [count](auto& comm, bool is_odd) {
          std::vector<int> values(count, 1);
          broadcast(comm, values, is_odd ? 1 : 0, {}, is_odd ? there : here);
        },
        "broadcast", "cpp:");
}

TEST_CASE("Ranks that call different collectives learn of it", "[mismatch]") {
  disagree([](auto& comm, bool is_odd) { is_odd ? barrier(comm, there) : sum_of(comm, 10, here); },
           "barrier at there.cpp:22", "all_reduce of 10", "here.cpp:11");
  for (const std::size_t count : {6u, 6000u})
    disagree(
        [count](auto& comm, bool is_odd) {
          std::vector<int> values(count, 1);
          std::vector<int> block(block_of(values.size(), comm.size(), comm.rank()).count);
          is_odd ? all_gather(comm, block, values, {}, there) : reduce_scatter(comm, values, block, {}, {}, here);
        },
        "all_gather", "reduce_scatter", "here.cpp:11", "there.cpp:22");
}

TEST_CASE("Ranks that scatter different counts learn of it", "[mismatch]") {
  disagree(
      [](auto& comm, bool is_odd) {
        std::vector<int> values(is_odd ? 6001 : 6000, 1);
        std::vector<int> block(block_of(values.size(), comm.size(), comm.rank()).count);
        reduce_scatter(comm, values, block, {}, {}, is_odd ? there : here);
      },
      "6001", "6000", "here.cpp:11", "there.cpp:22");
}

TEST_CASE("Functors and call sites are not compared", "[mismatch]") {
  support::run_threads(2, [](auto& comm) {
    std::vector<int> values(10, 2);
    if (comm.rank() == 0)
      all_reduce(
          comm, values, [](int a, int b) { return a + b; }, {}, here);
    else
      all_reduce(
          comm, values, [](int a, int b) { return b + a; }, {}, there);
    demand(values[9] == 4, "the sum is ", values[9]);
  });
}

TEST_CASE("Without checking, ranks that disagree are not told", "[mismatch]") {
  support::run_threads(2,
                       [](auto& comm) {
                         std::vector<int> values(1000, 3);
                         if (comm.rank() == 0)
                           all_reduce(comm, values, sum{});
                         else
                           all_reduce(comm, values, product{});
                         barrier(comm);
                       },
                       {.checking = check::none});
}

TEST_CASE("Processes that disagree learn of it like threads", "[mismatch]") {
  using namespace conformance;
  const auto disagreeing = [](group_end& end, const std::function<void(bool)>& call, const char* words) {
    const auto calls = [&] {
      call(end.rank() == 1);
      end.barrier();
      end.barrier();
    };
    support::demand_words(support::text_of<mismatch_error>(calls), "ranks disagree", "rank 1", words);
  };
  for (const std::size_t count : {10u, 50'000u}) {
    on_processes(3, {}, [&](group_end& end) {
      std::vector<conformance::element> values(count, 1);
      const std::span<conformance::element> v(values);
      disagreeing(
          end, [&](bool odd) { end.all_reduce(v.first(count - odd), v.first(count - odd), {}); }, "all_reduce of");
    });
    on_processes(3, {}, [&](group_end& end) {
      std::vector<conformance::element> values(count, 1);
      disagreeing(
          end, [&](bool odd) { end.broadcast(values, odd ? 2 : 0, {}); }, "root 2");
    });
    on_processes(3, {}, [&](group_end& end) {
      std::vector<conformance::element> values(count, 1);
      disagreeing(
          end, [&](bool odd) { odd ? end.broadcast(values, 0, {}) : end.all_reduce(values, values, {}); }, "broadcast");
    });
  }
}
