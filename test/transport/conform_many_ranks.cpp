// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/launch.hpp"

#include <atomic>

// The conformance suite with the algorithms for many ranks: they put operands into their own slots, send ranges of
// blocks that wrap around, keep two values of one block in a slot, and cut vectors into parts of different length.

namespace {

using namespace conformance;

void on_staged_threads(int ranks, const toroid::options& chosen, const std::function<void(group_end&)>& f) {
  const auto stage = [](toroid::transport::threads base) {
    return support::restricted(std::move(base), support::ways::through_regions);
  };
  support::run_threads_over(ranks, chosen, toroid::detail::waiting_of(ranks, chosen), stage, erased(f));
}

void check_all(const launcher& launch, memory_kind where, extent how_much) {
  for (int ranks = 1; ranks <= 8; ++ranks) check(launch, where, how_much, ranks, many_rank_choices());
}

/// Grids that are square, long and flat, by their number of ranks.
void check_grids(const launcher& launch, memory_kind where, extent how_much) {
  using kind = choice::kind;
  check(launch, where, how_much, 9, {{kind::torus_2d, 0}});
  check(launch, where, how_much, 12, {{kind::torus_2d, 0}, {kind::torus_2d, 8, 4}});
  check(launch, where, how_much, 16, {{kind::torus_2d, 0}, {kind::torus_2d, 0, 8}});
}

}  // namespace

TEST_CASE("Threads conform with algorithms for many ranks, in place", "[conformance]") {
  check_all(on_threads, memory_kind::ordinary, extent::brief);
}
TEST_CASE("Threads conform with algorithms for many ranks, through hand-over regions", "[conformance]") {
  check_all(on_staged_threads, memory_kind::ordinary, extent::brief);
}
TEST_CASE("Processes conform with algorithms for many ranks, in ordinary memory", "[conformance]") {
  check_all(on_processes, memory_kind::ordinary, extent::brief);
}
TEST_CASE("Processes conform with algorithms for many ranks, in memory from allocate", "[conformance]") {
  check_all(on_processes, memory_kind::shared, extent::brief);
}
TEST_CASE("Processes conform with algorithms for many ranks, where one buffer cannot be reached", "[conformance]") {
  check_all(on_processes, memory_kind::mixed, extent::brief);
}
TEST_CASE("Processes conform with algorithms for many ranks, where the kernel copies from peers", "[conformance]") {
  const support::shared_by_all<std::atomic<int>> pulls;
  const launcher launch = on_counted_processes(support::ways::all, *pulls);
  const std::size_t least = toroid::detail::least_pulled_bytes / sizeof(element);
  for (const int ranks : {2, 3, 5, 6, 8})
    for (const std::size_t region : {std::size_t{4096}, std::size_t{0}})
      launch(ranks, {.region_bytes = region}, [&](group_end& end) {
        const std::size_t p = static_cast<std::size_t>(end.size());
        check(end, memory_kind::ordinary, {least - 1, least, least + p, 3 * least - 1}, many_rank_choices(),
              extent::brief);
      });
  CHECK(*pulls > 0);
}

TEST_CASE("Threads conform on grids", "[conformance]") {
  check_grids(on_threads, memory_kind::ordinary, extent::brief);
  check_grids(on_staged_threads, memory_kind::ordinary, extent::brief);
}
TEST_CASE("Processes conform on grids", "[conformance]") {
  check_grids(on_processes, memory_kind::ordinary, extent::brief);
  check_grids(on_processes, memory_kind::mixed, extent::brief);
}

TEST_CASE("All conform with algorithms for many ranks, at every edge", "[conformance][slow]") {
  check_all(on_threads, memory_kind::ordinary, extent::whole);
  check_all(on_staged_threads, memory_kind::ordinary, extent::whole);
  for (const memory_kind where : {memory_kind::ordinary, memory_kind::shared, memory_kind::mixed})
    check_all(on_processes, where, extent::whole);
}
