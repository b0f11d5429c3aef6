// SPDX-License-Identifier: Apache-2.0
#include "collective/exchange.hpp"
#include "support/catch.hpp"
#include "support/launch.hpp"

#include <span>
#include <string>
#include <vector>

// All-to-all over threads and processes, in memory of both kinds.

namespace {

using support::demand;
using support::demand_words;
using support::text_of;

void hold_on(int ranks) {
  const toroid::options small{.region_bytes = 4096};  // many pieces
  support::run_threads(
      ranks, [](auto& comm) { exchange::check(comm, false); }, small);
  support::run_processes(
      ranks,
      [](auto& comm) {
        exchange::check(comm, false);
        exchange::check(comm, true);
      },
      small);
  const toroid::options staged{.region_bytes = 4096};
  support::run_processes_over(
      ranks, staged, toroid::detail::waiting_of(ranks, staged),
      [](auto transport) { return support::restricted(std::move(transport), support::ways::through_regions); },
      [](auto& comm) { exchange::check(comm, false); });
}

}  // namespace

TEST_CASE("All-to-all is right on few ranks", "[exchange]") {
  for (const int ranks : {1, 2, 3, 4}) hold_on(ranks);
}

TEST_CASE("All-to-all is right on five to eight ranks", "[exchange][slow]") {
  for (const int ranks : {5, 6, 7, 8}) hold_on(ranks);
}

TEST_CASE("All-to-all refuses lengths and buffers that are wrong, by name, and goes on", "[exchange]") {
  support::run_both(3, [](auto& comm) {
    std::vector<int> six(6, comm.rank()), seven(7), out(6);
    const std::span<int> null(static_cast<int*>(nullptr), 6), empty;
    const auto refused = [&](auto f, const auto&... words) { demand_words(text_of<toroid::usage_error>(f), words...); };
    refused([&] { toroid::all_to_all(comm, six, seven); }, "all_to_all", "6 elements", "result 7", "exchanges.cpp");
    refused([&] { toroid::all_to_all(comm, seven, seven); }, "7 elements", "3 ranks");
    refused([&] { toroid::all_to_all(comm, six, six); }, "overlap", "apart");
    refused([&] { toroid::all_to_all(comm, null, out); }, "input", "null");
    toroid::all_to_all(comm, empty, empty);
    toroid::all_to_all(comm, six, out);
    demand(out == std::vector<int>{0, 0, 1, 1, 2, 2}, "all_to_all after refusals");
  });
}

TEST_CASE("Ranks that disagree about the length of an all-to-all are told", "[exchange]") {
  support::run_both(2, [](auto& comm) {
    std::vector<int> in(comm.rank() == 0 ? 2 : 4), out(in.size());
    demand_words(text_of<toroid::mismatch_error>([&] { toroid::all_to_all(comm, in, out); }), "all_to_all of 2",
                 "all_to_all of 4");
  });
}
