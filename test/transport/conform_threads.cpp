// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/launch.hpp"

void conformance::on_threads(int ranks, const toroid::options& chosen, const std::function<void(group_end&)>& f) {
  support::run_threads(ranks, erased(f), chosen);
}

namespace {

using namespace conformance;

/// The protocol of hand-over regions, among threads: this is what lets a thread sanitizer see it.
void on_staged_threads(int ranks, const toroid::options& chosen, const std::function<void(group_end&)>& f) {
  const auto stage = [](toroid::transport::threads base) {
    return support::restricted(std::move(base), support::ways::through_regions);
  };
  support::run_threads_over(ranks, chosen, toroid::detail::waiting_of(ranks, chosen), stage, erased(f));
}

}  // namespace

TEST_CASE("Threads conform, in place in ordinary memory", "[conformance]") { check(on_threads, memory_kind::ordinary); }

TEST_CASE("Threads conform, in memory from allocate", "[conformance]") {
  check(on_threads, memory_kind::shared, extent::brief);
}

TEST_CASE("Threads conform through hand-over regions", "[conformance]") {
  check(on_staged_threads, memory_kind::ordinary);
}
