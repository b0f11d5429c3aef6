// SPDX-License-Identifier: Apache-2.0
// Hand-over regions with progress counters: data are there when a rank reads them, and no region is written while it is
// still read, within a call and from one call to the next.
#include "model/mapped_calls.hpp"
#include "support/catch.hpp"

#include <string>

namespace {

using model::collective_kind;
using model::path;
using model::planted;

void holds(int ranks) {
  models::for_each([&](auto schedule, collective_kind kind) {
    using schedule_type = decltype(schedule);
    const bool shares = kind == collective_kind::broadcast;
    model::tally count("regions, " + std::string(typeid(schedule).name()) + ", " + std::to_string(ranks) + " ranks");
    const std::size_t pieces = model::pieces_to_go_round<schedule_type>(ranks);
    const model::report found = model::explore_calls<path::staged>(count, schedule, kind, ranks, pieces, 2, shares);
    INFO(typeid(schedule).name() << ", " << ranks << " ranks: " << found.text());
    CHECK(found.fault.empty());
  });
}

template <class Schedule>
void caught(model::tally& count, Schedule schedule, collective_kind kind, int ranks, planted fault, const std::string& as) {
  const std::size_t pieces = model::pieces_to_go_round<Schedule>(ranks);
  const model::report found = model::explore_calls<path::staged>(count, schedule, kind, ranks, pieces, 2, false, fault);
  INFO(typeid(schedule).name() << ", " << ranks << " ranks, fault " << static_cast<int>(fault) << ": " << found.text());
  CHECK(found.fault.find(as) != std::string::npos);
  CHECK_FALSE(found.trace.empty());
}

}  // namespace

TEST_CASE("two ranks hand over pieces through regions") { holds(2); }
TEST_CASE("three ranks hand over pieces through regions", "[slow]") { holds(3); }

TEST_CASE("planted faults of the hand-over are caught") {
  namespace s = toroid::schedule;
  model::tally count("regions, planted faults");
  for (const planted fault : {planted::relaxed_publish, planted::relaxed_wait, planted::publish_first,
                              planted::published_early, planted::no_step_wait, planted::step_wait_early,
                              planted::no_slot_wait, planted::slot_wait_early, planted::region_missing}) {
    caught(count, s::direct_all_reduce{}, collective_kind::all_reduce, 2, fault, "data race");
    caught(count, s::ring_all_reduce{}, collective_kind::all_reduce, 3, fault, "data race");
  }
  // Without entries a rank would write the regions of a call while others still read those of the one before.
  caught(count, s::direct_all_reduce{}, collective_kind::all_reduce, 2, planted::no_entry, "data race");
  caught(count, s::ring_all_reduce{}, collective_kind::all_reduce, 3, planted::no_entry, "data race");
}
