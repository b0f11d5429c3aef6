// SPDX-License-Identifier: Apache-2.0
#include "collective/rooted.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/collective/barrier.hpp>

#include <array>
#include <span>
#include <string>
#include <vector>

// Reduce, gather and scatter over threads and processes, in memory of both kinds.

namespace {

using support::demand;
using support::demand_words;
using support::text_of;

void hold_on(int ranks) {
  const toroid::options small{.region_bytes = 4096};  // many pieces
  support::run_threads(
      ranks, [](auto& comm) { rooted::check(comm, false); }, small);
  support::run_processes(
      ranks,
      [](auto& comm) {
        rooted::check(comm, false);
        rooted::check(comm, true);
        support::prefer_pulling(comm);
        rooted::gathers(comm, 40'000, false, toroid::automatic{});
        rooted::scatters(comm, 40'000, false, toroid::automatic{});
        rooted::reduces(comm, 40'000, false, toroid::automatic{});
      },
      small);
}

}  // namespace

TEST_CASE("Reduce, gather and scatter are right for every root of few ranks", "[rooted]") {
  for (const int ranks : {1, 2, 3, 4}) hold_on(ranks);
}

TEST_CASE("Reduce, gather and scatter are right for every root of five to eight ranks", "[rooted][slow]") {
  for (const int ranks : {5, 6, 7, 8}) hold_on(ranks);
}

TEST_CASE("A reduction keeps the order of ranks, whoever the root is", "[rooted]") {
  for (const int ranks : {1, 2, 5, 6}) support::run_both(ranks, [](auto& comm) { rooted::keeps_order(comm); });
}

TEST_CASE("One rank whose buffer cannot be reached changes nothing in the result", "[rooted]") {
  support::run_processes(3, [](auto& comm) {
    const std::size_t each = 5000, all = 3 * each;
    for (int odd = 0; odd < 3; ++odd) {
      for (int root = 0; root < 3; ++root) {
        const rooted::memory_of small(comm, each, comm.rank() != odd), large(comm, all, true);
        const support::guarded_bytes in(small.bytes(), each * 4, 4, support::placement::aligned, 0),
            out(large.bytes(), all * 4, 4, support::placement::aligned, 0);
        const std::span<rooted::element> input = rooted::elements_of(in), result = rooted::elements_of(out);
        for (std::size_t i = 0; i < each; ++i) input[i] = rooted::value(comm.rank(), i);
        toroid::gather(comm, input, comm.rank() == root ? result : std::span<rooted::element>(), root);
        for (std::size_t i = 0; i < all && comm.rank() == root; ++i)
          demand(result[i] == rooted::value(static_cast<int>(i / each), i % each), "gather: element ", i);
        toroid::reduce(comm, input, comm.rank() == root ? result.first(each) : std::span<rooted::element>(), root);
        for (std::size_t i = 0; i < each && comm.rank() == root; ++i)
          demand(result[i] == rooted::value(0, i) + rooted::value(1, i) + rooted::value(2, i), "reduce: element ", i);
      }
    }
  });
}

TEST_CASE("Rooted calls refuse roots, lengths and buffers that are wrong, by name, and go on", "[rooted]") {
  support::run_both(3, [](auto& comm) {
    std::vector<int> one{comm.rank()}, three(3, 7), six(6, 7);
    const std::span<int> null(static_cast<int*>(nullptr), 3);
    const auto refused = [&](auto f, const auto&... words) { demand_words(text_of<toroid::usage_error>(f), words...); };
    for (const int root : {-1, 3}) {
      refused([&] { toroid::reduce(comm, one, root); }, "reduce", "root", "3 ranks", "rooted_calls.cpp");
      refused([&] { toroid::gather(comm, one, three, root); }, "gather", "root", "3 ranks");
      refused([&] { toroid::scatter(comm, three, one, root); }, "scatter", "root", "3 ranks");
    }
    const int me = comm.rank();  // only the root's buffers are looked at
    refused([&] { toroid::reduce(comm, one, three, me); }, "reduce", "1 elements", "result 3");
    refused([&] { toroid::gather(comm, one, six, me); }, "gather", "1 elements", "6 instead of 3");
    refused([&] { toroid::scatter(comm, six, one, me); }, "scatter", "1 elements", "6 instead of 3");
    refused([&] { toroid::reduce(comm, null, me); }, "reduce", "null", "3 elements");
    refused([&] { toroid::gather(comm, one, null, me); }, "gather", "result", "null");
    refused([&] { toroid::scatter(comm, null, one, me); }, "scatter", "input", "null");
    const std::span<int> all(six);
    refused([&] { toroid::reduce(comm, all.first(3), all.subspan(1, 3), me); }, "reduce", "overlap");
    refused([&] { toroid::gather(comm, all.subspan(static_cast<std::size_t>((me + 1) % 3), 1), all.first(3), me); },
            "gather", "overlap");
    refused([&] { toroid::scatter(comm, all.first(3), all.subspan(static_cast<std::size_t>((me + 1) % 3), 1), me); },
            "scatter", "overlap");
    demand(six == std::vector<int>(6, 7), "a refused call has written");
    toroid::barrier(comm);
    const std::span<int> empty;  // a null pointer, and nothing there
    for (int root = 0; root < 3; ++root) {
      toroid::reduce(comm, empty, root);
      toroid::gather(comm, empty, empty, root);
      toroid::scatter(comm, empty, empty, root);
    }
    toroid::gather(comm, one, three, 2);
    demand(three == (comm.rank() == 2 ? std::vector<int>{0, 1, 2} : std::vector<int>(3, 7)), "gather after refusals");
  });
}

TEST_CASE("Ranks that disagree about a rooted call are told both calls", "[rooted]") {
  const auto found = [](auto call, auto... words) {
    const auto f = [=](auto& comm) {
      const std::string text = text_of<toroid::mismatch_error>([&] {
        call(comm);
        toroid::barrier(comm);
      });
      demand_words(text, words...);
    };
    support::run_threads(2, f);
    support::run_processes(2, f);
  };
  found(
      [](auto& comm) {
        std::vector<int> v(2);
        toroid::reduce(comm, v, comm.rank());
      },
      "reduce of 2", "root 0", "root 1");
  found(
      [](auto& comm) {
        std::vector<int> mine(comm.rank() == 0 ? 2 : 3), all(4);
        toroid::gather(comm, mine, all, 0);
      },
      "gather of 4", "gather of 6", "root 0");
  found(
      [](auto& comm) {
        std::vector<int> v(3);
        if (comm.rank() == 0)
          toroid::reduce(comm, v, 0, toroid::sum{});
        else
          toroid::reduce(comm, v, 0, toroid::maximum{});
      },
      "sum", "maximum");
  found(
      [](auto& comm) {
        std::vector<int> all(4);
        std::vector<float> floats(2);
        if (comm.rank() == 0)
          toroid::scatter(comm, all, std::span<int>(all).first(2), 0);
        else
          toroid::scatter(comm, std::span<float>(), floats, 0);
      },
      "scatter of 4", "float");
}
