// SPDX-License-Identifier: Apache-2.0
// Hand-over regions with progress counters: data are there when a rank reads them, and no region is written while it is
// still read, within a call and from one call to the next.
#include "model/mapped_calls.hpp"
#include "support/catch.hpp"

#include <string>
#include <vector>

namespace {

namespace s = toroid::schedule;
using model::collective_kind;
using model::path;
using model::planted;

/// One call from each root, of each schedule that can be explored in a moment, or of each other one.
void holds(int ranks, const std::vector<int>& roots, bool long_ones = false) {
  model::tally count("regions, " + std::to_string(ranks) + " ranks, " + std::to_string(roots.size()) +
                     " calls of each schedule");
  models::for_each_carried_out([&](auto schedule, collective_kind kind) {
    if (model::takes_long(schedule, ranks) != long_ones) return;
    const bool shares = kind == collective_kind::broadcast;
    const model::report found = model::explore_calls<path::staged>(count, schedule, kind, ranks, roots, shares);
    INFO(typeid(schedule).name() << ": " << found.text());
    CHECK(found.fault.empty());
  });
}

template <class Schedule>
void caught(model::tally& count, Schedule schedule, collective_kind kind, int ranks, planted fault) {
  const bool shares = kind == collective_kind::broadcast;
  const model::report found = model::explore_calls<path::staged>(count, schedule, kind, ranks, {0, 0}, shares, fault);
  INFO(typeid(schedule).name() << ", " << ranks << " ranks, fault " << static_cast<int>(fault) << ": " << found.text());
  CHECK(found.fault.find("data race") == 0);
  CHECK_FALSE(found.trace.empty());
}

}  // namespace

TEST_CASE("two ranks hand over pieces through regions") { holds(2, {0, 0, 1}); }
TEST_CASE("three ranks hand over pieces through regions") { holds(3, {0, 2}); }

TEST_CASE("three ranks of a torus hand over pieces through regions", "[slow]") { holds(3, {0, 0}, true); }

// On a ring of four the rank that reads a region is as far from being heard as a region may be used again.
TEST_CASE("four ranks of a ring hand over pieces through regions", "[slow]") {
  model::tally count("regions, 4 ranks of a ring");
  const auto holds = [&](auto schedule, collective_kind kind) {
    const bool shares = kind == collective_kind::broadcast;
    const model::report found = model::explore_calls<path::staged>(count, schedule, kind, 4, {0}, shares);
    INFO(typeid(schedule).name() << ": " << found.text());
    CHECK(found.fault.empty());
  };
  holds(s::ring_all_reduce{}, collective_kind::all_reduce);
  holds(s::ring_reduce_scatter{}, collective_kind::reduce_scatter);
  holds(s::ring_all_gather{}, collective_kind::all_gather);
  holds(s::ring_broadcast{}, collective_kind::broadcast);
}

// Four ranks make trees with more than a root and leaves, and three rounds of halving of which none is uneven.
TEST_CASE("four ranks of trees, and that halve and double, hand over pieces through regions", "[slow]") {
  model::tally count("regions, 4 ranks");
  const auto holds = [&](auto schedule, collective_kind kind) {
    const bool shares = kind == collective_kind::broadcast;
    const model::report found = model::explore_calls<path::staged>(count, schedule, kind, 4, {0}, shares);
    INFO(typeid(schedule).name() << ": " << found.text());
    CHECK(found.fault.empty());
  };
  holds(s::halving_doubling_all_reduce{}, collective_kind::all_reduce);
  holds(s::halving_reduce_scatter{}, collective_kind::reduce_scatter);
  holds(s::doubling_all_gather{}, collective_kind::all_gather);
  holds(s::tree_all_reduce{}, collective_kind::all_reduce);
  holds(s::tree_broadcast{}, collective_kind::broadcast);
  holds(s::in_order_tree_all_reduce{}, collective_kind::all_reduce);
}

TEST_CASE("planted faults of the hand-over between ranks that halve, or on trees, are caught") {
  model::tally count("regions, planted faults, more schedules");
  for (const planted fault : {planted::relaxed_publish, planted::relaxed_wait, planted::publish_first,
                              planted::published_early, planted::no_step_wait, planted::step_wait_early})
    for (const int ranks : {2, 3}) {
      caught(count, s::halving_doubling_all_reduce{}, collective_kind::all_reduce, ranks, fault);
      caught(count, s::tree_all_reduce{}, collective_kind::all_reduce, ranks, fault);
      caught(count, s::in_order_tree_all_reduce{}, collective_kind::all_reduce, ranks, fault);
      caught(count, s::tree_broadcast{}, collective_kind::broadcast, ranks, fault);
    }
  caught(count, s::torus_2d_all_reduce{}, collective_kind::all_reduce, 2, planted::no_step_wait);
}

TEST_CASE("planted faults of the hand-over are caught") {
  model::tally count("regions, planted faults");
  for (const planted fault :
       {planted::relaxed_publish, planted::relaxed_wait, planted::publish_first, planted::published_early,
        planted::no_step_wait, planted::step_wait_early, planted::region_missing}) {
    caught(count, s::direct_all_reduce{}, collective_kind::all_reduce, 2, fault);
    caught(count, s::ring_all_reduce{}, collective_kind::all_reduce, 3, fault);
  }
}

// Where every rank hears from every other at each step nobody can run ahead. A root can.
TEST_CASE("planted faults of the reuse of regions are caught") {
  model::tally count("regions, planted faults of their reuse");
  for (const planted fault :
       {planted::no_slot_wait, planted::slot_wait_early, planted::region_missing, planted::no_entry})
    for (const int ranks : {2, 3}) {
      caught(count, s::direct_broadcast{}, collective_kind::broadcast, ranks, fault);
      caught(count, s::ring_broadcast{}, collective_kind::broadcast, ranks, fault);
      caught(count, s::tree_broadcast{}, collective_kind::broadcast, ranks, fault);
    }
}
