// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/launch.hpp"

void conformance::on_processes(int ranks, const toroid::options& chosen, const std::function<void(group_end&)>& f) {
  support::run_processes(ranks, erased(f), chosen);
}

using namespace conformance;

TEST_CASE("Processes conform through hand-over regions, in ordinary memory", "[conformance]") {
  check(on_processes, memory_kind::ordinary);
}

TEST_CASE("Processes conform in place, in memory from allocate", "[conformance]") {
  check(on_processes, memory_kind::shared);
}

TEST_CASE("Processes conform where one buffer of one rank cannot be reached", "[conformance]") {
  check(on_processes, memory_kind::mixed);
}
