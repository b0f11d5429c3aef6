// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/toroid.hpp>

#include <climits>
#include <numeric>
#include <span>
#include <vector>

// What a caller can get wrong: each gives a usage_error before any byte moves, and the communicator goes on.

namespace {

using namespace conformance;
using support::demand;

/// Runs `wrong` on a vector that must stay as it is, then a right call.
template <class F>
void refused(group_end& end, const char* words, F wrong) {
  std::vector<element> values(20);
  std::iota(values.begin(), values.end(), element{1});
  const std::vector<element> before = values;
  const std::string text = support::text_of<toroid::usage_error>([&] { wrong(std::span<element>(values)); });
  support::demand_words(text, "toroid: ", words);
  demand(values == before, "a refused call has changed its buffer: ", text);

  std::vector<element> one(1, 1);
  end.all_reduce(one, one, {});
  demand(one[0] == static_cast<element>(end.size()), "after \"", text, "\" the sum is ", one[0]);
}

/// As refused(), by a rank alone: without the right call afterwards.
void refused_by_one(group_end& end) {
  std::vector<element> values(10, 1);
  const std::span<element> v(values);
  support::text_of<toroid::usage_error>([&] { end.all_reduce(v.first(5), v.subspan(3, 5), {}); });
  support::text_of<toroid::usage_error>([&] { end.broadcast(v, end.size(), {}); });
}

}  // namespace

TEST_CASE("Null pointers with elements are refused", "[usage]") {
  on_both(3, {}, [](group_end& end) {
    for (const choice& how : all_choices()) {
      const std::span<element> null(static_cast<element*>(nullptr), 10);
      const std::size_t own = toroid::block_of(10, 3, end.rank()).count;
      refused(end, "all_reduce at", [&](auto v) { end.all_reduce(null, v.first(10), how); });
      refused(end, "null pointer with 10 elements", [&](auto v) { end.all_reduce(v.first(10), null, how); });
      refused(end, "null pointer", [&](auto) { end.all_reduce(null, null, how); });
      refused(end, "reduce_scatter at", [&](auto v) { end.reduce_scatter(null, v.first(own), how); });
      refused(end, "null pointer", [&](auto v) { end.reduce_scatter(v.first(10), null.first(own), how); });
      refused(end, "all_gather at", [&](auto v) { end.all_gather(null.first(own), v.first(10), how); });
      refused(end, "null pointer", [&](auto v) { end.all_gather(v.first(own), null, how); });
      refused(end, "broadcast at", [&](auto) { end.broadcast(null, 0, how); });
    }
  });
}

TEST_CASE("Partly overlapping buffers are refused, touching ones are not", "[usage]") {
  on_both(3, {}, [](group_end& end) {
    for (const choice& how : all_choices()) {
      for (const std::size_t k : {1u, 5u, 9u}) {
        refused(end, "overlap", [&](auto v) { end.all_reduce(v.first(10), v.subspan(k, 10), how); });
        refused(end, "overlap", [&](auto v) { end.all_reduce(v.subspan(k, 10), v.first(10), how); });
      }
      std::vector<element> values(20, 1);
      const std::span<element> v(values);
      end.all_reduce(v.first(10), v.subspan(10), how);
      end.all_reduce(v.first(10), v.first(10), how);
      for (const element sum : values) demand(sum == 3, "touching buffers give ", sum);

      // One block of ten is four elements long, the others three: nowhere but in the own block may the short one lie.
      const toroid::block own = toroid::block_of(10, 3, end.rank());
      const toroid::block other = toroid::block_of(10, 3, (end.rank() + 1) % 3);
      refused(end, "overlap", [&](auto w) { end.all_gather(w.subspan(other.begin, own.count), w.first(10), how); });
      refused(end, "overlap", [&](auto w) { end.reduce_scatter(w.first(10), w.subspan(other.begin, own.count), how); });
      refused(end, "overlap", [&](auto w) { end.all_gather(w.subspan(own.begin + 1, own.count), w.first(10), how); });
      refused(end, "overlap", [&](auto w) { end.reduce_scatter(w.first(10), w.subspan(9, own.count), how); });
    }
  });
}

TEST_CASE("All-gather in place means the own block of the result, and no other place", "[usage]") {
  on_both(3, {}, [](group_end& end) {
    const element r = static_cast<element>(end.rank());
    const std::vector<element> expected{0, 1, 10, 11, 20, 21};
    for (const choice& how : all_choices()) {
      std::vector<element> all(6, 99);
      const std::span<element> v(all), own = v.subspan(2 * r, 2);
      own[0] = 10 * r, own[1] = 10 * r + 1;
      if (r == 1)  // only rank 0 may say "the input is where the result begins"
        support::text_of<toroid::usage_error>([&] { end.all_gather(v.first(2), v, how); });
      end.all_gather(own, v, how);
      demand(all == expected, "all_gather in place on rank ", r, " by ", how.name());
    }
  });
}

TEST_CASE("Wrong lengths and roots are refused", "[usage]") {
  on_both(3, {}, [](group_end& end) {
    for (const choice& how : all_choices()) {
      const std::size_t own = toroid::block_of(10, 3, end.rank()).count;
      refused(end, "10 elements, the result 9", [&](auto v) { end.all_reduce(v.first(10), v.subspan(10, 9), how); });
      for (const std::size_t wrong : {own - 1, own + 1, std::size_t{0}, std::size_t{10}}) {
        refused(end, "block_of", [&](auto v) { end.reduce_scatter(v.first(10), v.subspan(10, wrong), how); });
        refused(end, "block_of", [&](auto v) { end.all_gather(v.subspan(10, wrong), v.first(10), how); });
      }
      for (const int root : {-1, 3, INT_MAX, INT_MIN})
        refused(end, "is not one of the 3 ranks", [&](auto v) { end.broadcast(v, root, how); });
    }
  });
}

TEST_CASE("Sizes in bytes that overflow are refused", "[usage]") {
  on_both(2, {}, [](group_end& end) {
    for (const std::size_t count :
         {SIZE_MAX, SIZE_MAX / sizeof(element), SIZE_MAX / sizeof(element) + 2, SIZE_MAX / 2}) {
      const auto long_span = [count](auto v) { return std::span<element>(v.data(), count); };
      refused(end, "more than can be addressed", [&](auto v) { end.all_reduce(long_span(v), long_span(v), {}); });
      refused(end, "more than can be addressed", [&](auto v) { end.reduce_scatter(long_span(v), v, {}); });
      refused(end, "more than can be addressed", [&](auto v) { end.all_gather(v, long_span(v), {}); });
      refused(end, "more than can be addressed", [&](auto v) { end.broadcast(long_span(v), 0, {}); });
    }
  });
  support::run_both(1, [](auto& comm) {
    for (const std::size_t count : {SIZE_MAX, SIZE_MAX / sizeof(double) + 1})
      support::demand_words(support::text_of<toroid::usage_error>([&] { toroid::allocate<double>(comm, count); }),
                            "allocate", "more than can be addressed");
  });
}

TEST_CASE("One rank's wrong call leaves the others waiting for the right one", "[usage]") {
  on_both(3, {}, [](group_end& end) {
    std::vector<element> values(1000, 1);
    for (int turn = 0; turn < 30; ++turn) {
      if (turn % 3 == end.rank()) refused_by_one(end);
      end.all_reduce(values, values, {});
      demand(values.front() == values.back(), "ranks are out of step");
    }
  });
}

TEST_CASE("A communicator that was moved from refuses every call", "[usage]") {
  support::run_threads(2, [](auto& comm) {
    auto other = std::move(comm);
    std::vector<int> values(4, 1), block(2);
    const auto refused_here = [](auto&& call) {
      support::demand_words(support::text_of<toroid::usage_error>(call), "moved from");
    };
    refused_here([&] { toroid::all_reduce(comm, values); });
    refused_here([&] { toroid::reduce_scatter(comm, values, block); });
    refused_here([&] { toroid::all_gather(comm, block, values); });
    refused_here([&] { toroid::all_gather(comm, values); });
    refused_here([&] { toroid::broadcast(comm, values, 0); });
    refused_here([&] { toroid::barrier(comm); });
    refused_here([&] { (void)toroid::plan(comm, 4); });
    refused_here([&] { (void)toroid::allocate<int>(comm, 4); });
    toroid::all_reduce(other, values);
    demand(values[0] == 2, "the communicator that took over sums up to ", values[0]);
  });
}

TEST_CASE("Wrong numbers of ranks and wrong options are refused before anything starts", "[usage]") {
  bool started = false;
  const auto f = [&](auto&) { started = true; };
  const auto refused_by_both = [&](int ranks, const toroid::options& chosen, const char* words) {
    support::demand_words(support::text_of<toroid::usage_error>([&] { support::run_threads(ranks, f, chosen); }),
                          words);
    support::demand_words(support::text_of<toroid::usage_error>([&] { support::run_processes(ranks, f, chosen); }),
                          words);
  };
  for (const int ranks : {0, -1, INT_MIN}) refused_by_both(ranks, {}, "at least one rank");
  refused_by_both(INT_MAX, {}, "ranks are more than");
  refused_by_both(2, {.timeout = std::chrono::nanoseconds(0)}, "options.timeout");
  refused_by_both(2, {.timeout = std::chrono::seconds(-1)}, "options.timeout");
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4095}, SIZE_MAX, SIZE_MAX / 2 + 1, SIZE_MAX / 4 + 8192})
    refused_by_both(2, {.region_bytes = bytes}, "options.region_bytes");
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX / 2 + 1})
    support::demand_words(
        support::text_of<toroid::usage_error>([&] { support::run_processes(2, f, {.shared_bytes = bytes}); }),
        "options.shared_bytes");
  CHECK_FALSE(started);
}
