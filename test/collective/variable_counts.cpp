// SPDX-License-Identifier: Apache-2.0
#include "collective/exchange.hpp"
#include "support/catch.hpp"
#include "support/launch.hpp"

#include <toroid/collective/barrier.hpp>

#include <array>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

// Blocks of any length, with gaps between them.

namespace {

using support::demand;
using support::demand_words;
using support::text_of;

void hold_on(int ranks) {
  const toroid::options small{.region_bytes = 4096};  // many pieces
  support::run_threads(
      ranks, [](auto& comm) { exchange::check_v(comm, false); }, small);
  support::run_processes(
      ranks,
      [](auto& comm) {
        exchange::check_v(comm, false);
        exchange::check_v(comm, true);
      },
      small);
  support::run_processes_over(
      ranks, small, toroid::detail::waiting_of(ranks, small),
      [](auto transport) { return support::restricted(std::move(transport), support::ways::through_regions); },
      [](auto& comm) { exchange::check_v(comm, false); });
}

}  // namespace

TEST_CASE("Blocks of any length are right on few ranks", "[counts]") {
  for (const int ranks : {1, 2, 3, 4}) hold_on(ranks);
}

TEST_CASE("Blocks of any length are right on five to eight ranks", "[counts][slow]") {
  for (const int ranks : {5, 6, 7, 8}) hold_on(ranks);
}

TEST_CASE("Displacements leave gaps alone, and say how long a result has to be", "[counts]") {
  support::run_both(3, [](auto& comm) {
    const std::array<int, 3> counts{2, 1, 3}, displacements{4, 0, 7};
    const std::vector<int> mine(static_cast<std::size_t>(counts[static_cast<std::size_t>(comm.rank())]), comm.rank());
    const std::vector<int> expected{1, -1, -1, -1, 0, 0, -1, 2, 2, 2};
    std::vector<int> all(10, -1), nine(9, -1);
    demand_words(text_of<toroid::usage_error>([&] { toroid::all_gather_v(comm, mine, nine, counts, displacements); }),
                 "all_gather_v", "need 10 elements", "has 9");
    demand(nine == std::vector<int>(9, -1), "a refused call has written");
    toroid::all_gather_v(comm, mine, all, counts, displacements);
    demand(all == expected, "all_gather_v");
    all.assign(10, -1);
    toroid::gather_v(comm, mine, all, counts, displacements, 1);
    demand(comm.rank() == 1 ? all == expected : all == std::vector<int>(10, -1), "gather_v");
    std::vector<int> back(mine.size());
    toroid::scatter_v(comm, expected, back, counts, displacements, 2);
    demand(back == mine, "scatter_v");
  });
}

TEST_CASE("A reduction into blocks of any length keeps the order of ranks", "[counts]") {
  support::run_both(3, [](auto& comm) {
    const std::array<int, 3> counts{5, 0, 3};
    std::vector<rooted::map> in, mine(static_cast<std::size_t>(counts[static_cast<std::size_t>(comm.rank())]));
    const auto of = [](int r, unsigned i) { return rooted::map{2U * static_cast<unsigned>(r) + 3, i}; };
    for (unsigned i = 0; i < 8; ++i) in.push_back(of(comm.rank(), i));
    toroid::reduce_scatter_v(comm, in, mine, counts, rooted::compose);
    const unsigned begin = comm.rank() == 2 ? 5 : 0;
    for (unsigned i = 0; i < mine.size(); ++i)
      demand(mine[i] == rooted::compose(rooted::compose(of(0, begin + i), of(1, begin + i)), of(2, begin + i)),
             "element ", i, " not in rank order");
  });
}

TEST_CASE("Counts, displacements and buffers that are wrong are refused by name", "[counts]") {
  support::run_both(2, [](auto& comm) {
    std::vector<int> one{7}, four(4, -1);
    const auto refused = [&](auto f, const auto&... words) { demand_words(text_of<toroid::usage_error>(f), words...); };
    const std::array<int, 2> ones{1, 1};
    const std::array<int, 3> three{1, 1, 1};
    const std::array<int, 2> negative{1, -1}, same{1, 1}, unequal{2, 2};
    refused([&] { toroid::all_gather_v(comm, one, four, three); }, "all_gather_v", "3 counts", "2 ranks");
    refused([&] { toroid::all_gather_v(comm, one, four, negative); }, "count", "rank 1 is -1");
    refused([&] { toroid::all_gather_v(comm, one, four, ones, negative); }, "displacement", "rank 1 is -1");
    refused([&] { toroid::all_gather_v(comm, one, four, ones, same); }, "ranks 0 and 1 overlap");
    refused([&] { toroid::all_gather_v(comm, one, four, unequal); }, "own block", "1 elements", "says 2");
    refused([&] { toroid::gather_v(comm, one, four, ones, 2); }, "gather_v", "root 2");
    refused([&] { toroid::scatter_v(comm, one, one, ones, comm.rank()); }, "scatter_v", "need 2 elements", "has 1");
    refused([&] { toroid::reduce_scatter_v(comm, one, one, ones); }, "reduce_scatter_v", "need 2 elements");
    refused([&] { toroid::all_to_all_v(comm, four, ones, four, ones); }, "all_to_all_v", "apart");
    const std::array<std::size_t, 2> huge{~std::size_t{0}, 2};
    refused([&] { toroid::all_gather_v(comm, one, four, huge); }, "beyond any memory");
    demand(four == std::vector<int>(4, -1), "a refused call has written");
    toroid::all_gather_v(comm, one, four, ones);
    demand(four == std::vector<int>{7, 7, -1, -1}, "all_gather_v after refusals");
    const std::array<int, 2> none{0, 0};
    const std::span<int> empty;
    toroid::all_to_all_v(comm, empty, none, empty, none);
    toroid::all_gather_v(comm, empty, empty, none);
  });
}

TEST_CASE("Ranks that disagree about a count are told which, whatever is checked", "[counts]") {
  const auto found = [](auto call, auto... words) {
    for (const toroid::check checking : {toroid::check::none, toroid::check::calls})
      support::run_both(2,
                        [=](auto& comm) {
                          demand_words(text_of<toroid::mismatch_error>([&] {
                                         call(comm);
                                         toroid::barrier(comm);
                                       }),
                                       words...);
                        },
                        {.checking = checking});
  };
  found(
      [](auto& comm) {  // rank 1 brings three, the root expects two
        std::vector<int> mine(comm.rank() == 0 ? 1 : 3), all(3);
        toroid::gather_v(comm, mine, all, std::array{1, 2}, 0);
      },
      "rank 1 sends 3 elements to rank 0, which expects 2", "gather_v");
  found(
      [](auto& comm) {
        std::vector<int> all(3), mine(comm.rank() == 0 ? 1 : 5);
        toroid::scatter_v(comm, all, mine, std::array{1, 2}, 0);
      },
      "rank 0 sends 2 elements to rank 1, which expects 5", "scatter_v");
  found(
      [](auto& comm) {
        const std::array<int, 2> sent{1, comm.rank() == 0 ? 2 : 1}, received{1, 1};
        std::vector<int> in(3), out(2);
        toroid::all_to_all_v(comm, in, sent, out, received);
      },
      "rank 0 sends 2 elements to rank 1, which expects 1", "all_to_all_v");
}

TEST_CASE("With check::data the flaw is found in a block, and what is between blocks is not looked at", "[counts]") {
  support::run_both(2,
                    [](auto& comm) {
                      const std::array<int, 2> counts{2, 2}, displacements{1, 4};
                      std::vector<float> in(6, 1.0F), out(6);
                      in[0] = in[3] = std::nanf("");
                      const auto call = [&] {
                        toroid::all_to_all_v(comm, in, counts, displacements, out, counts, displacements);
                      };
                      call();
                      if (comm.rank() == 1) in[5] = std::nanf("");
                      demand_words(text_of<toroid::usage_error>(call), "rank 1", "index 5");
                    },
                    {.checking = toroid::check::data});
}
