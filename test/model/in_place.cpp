// SPDX-License-Identifier: Apache-2.0
// Buffers that peers read where they stand, and write there (in place) or do not (fetched, pulled): the owner may use
// them again as soon as its call has returned.
#include "model/mapped_calls.hpp"
#include "support/catch.hpp"

#include <string>
#include <type_traits>
#include <vector>

namespace {

namespace s = toroid::schedule;
using model::collective_kind;
using model::path;
using model::planted;

/// Whether the input and the result may, or may not, be the same buffer on this path: a broadcast has but one, a
/// reduce-scatter has two, and run_mapped takes one_shot nowhere for one.
template <class Schedule>
bool allowed(Schedule, collective_kind kind, bool shares) {
  if (!shares) return kind != collective_kind::broadcast;
  return kind != collective_kind::reduce_scatter && !std::is_same_v<Schedule, s::one_shot_all_reduce>;
}

/// One call from each root, of each schedule that can be explored in a moment, or of each other one.
template <path Path>
void holds(int ranks, const std::vector<int>& roots, bool long_ones = false) {
  constexpr const char* name = Path == path::pulled ? "pulled, " : Path == path::fetched ? "fetched, " : "in place, ";
  model::tally count(name + std::to_string(ranks) + " ranks, " + std::to_string(roots.size()) +
                     " calls of each schedule");
  models::for_each_carried_out([&](auto schedule, collective_kind kind) {
    // run_mapped neither pulls nor fetches along a schedule that sends partial values.
    if (Path != path::in_place && decltype(schedule)::sends_partial_values) return;
    if (model::takes_long(schedule, ranks) != long_ones) return;
    for (const bool shares : {false, true}) {
      if (!allowed(schedule, kind, shares)) continue;
      const model::report found = model::explore_calls<Path>(count, schedule, kind, ranks, roots, shares);
      INFO(typeid(schedule).name() << (shares ? ", one buffer: " : ": ") << found.text());
      CHECK(found.fault.empty());
    }
  });
}

template <path Path, class Schedule>
void caught(model::tally& count, Schedule schedule, collective_kind kind, int ranks, planted fault) {
  const bool shares = kind == collective_kind::broadcast;
  const model::report found = model::explore_calls<Path>(count, schedule, kind, ranks, {0, 0}, shares, fault);
  INFO(typeid(schedule).name() << ", " << ranks << " ranks, fault " << static_cast<int>(fault) << ": " << found.text());
  CHECK(found.fault.find("data race") == 0);
  CHECK_FALSE(found.trace.empty());
}

}  // namespace

TEST_CASE("two ranks work in each other's buffers") { holds<path::in_place>(2, {0, 0, 1}); }
TEST_CASE("three ranks work in each other's buffers") { holds<path::in_place>(3, {0, 2}); }
TEST_CASE("three ranks of a torus work in each other's buffers", "[slow]") { holds<path::in_place>(3, {0, 0}, true); }
TEST_CASE("four ranks work in each other's buffers", "[slow]") { holds<path::in_place>(4, {0, 0}); }

TEST_CASE("planted faults of the direct path are caught") {
  model::tally count("in place, planted faults");
  for (const planted fault : {planted::relaxed_publish, planted::relaxed_wait, planted::publish_first,
                              planted::published_early, planted::relaxed_entry, planted::no_entry}) {
    caught<path::in_place>(count, s::direct_all_reduce{}, collective_kind::all_reduce, 2, fault);
    caught<path::in_place>(count, s::ring_all_reduce{}, collective_kind::all_reduce, 3, fault);
  }
  // Not in direct_all_reduce, which only ever waits for the end of its peers.
  for (const planted fault : {planted::no_step_wait, planted::step_wait_early})
    caught<path::in_place>(count, s::ring_all_reduce{}, collective_kind::all_reduce, 3, fault);
}

// Whoever has to receive from all at the end knows without asking that they are done with its buffers. These do not.
TEST_CASE("planted faults of leaving the direct path are caught") {
  model::tally count("in place, planted faults of leaving");
  for (const planted fault : {planted::no_leave, planted::leave_early})
    for (const int ranks : {2, 3}) {
      caught<path::in_place>(count, s::one_shot_all_reduce{}, collective_kind::all_reduce, ranks, fault);
      caught<path::in_place>(count, s::direct_reduce_scatter{}, collective_kind::reduce_scatter, ranks, fault);
      caught<path::in_place>(count, s::direct_broadcast{}, collective_kind::broadcast, ranks, fault);
    }
}

TEST_CASE("two ranks fetch from each other's buffers") { holds<path::fetched>(2, {0, 0, 1}); }
TEST_CASE("three ranks fetch from each other's buffers") { holds<path::fetched>(3, {0, 2}); }
TEST_CASE("two ranks pull from each other's buffers") { holds<path::pulled>(2, {0, 0, 1}); }
TEST_CASE("three ranks pull from each other's buffers") { holds<path::pulled>(3, {0, 2}); }

TEST_CASE("planted faults of the pulled path are caught") {
  model::tally count("pulled, planted faults");
  for (const planted fault : {planted::relaxed_publish, planted::relaxed_wait, planted::publish_first,
                              planted::published_early, planted::no_step_wait, planted::step_wait_early,
                              planted::relaxed_entry, planted::no_leave, planted::leave_early}) {
    caught<path::pulled>(count, s::direct_all_reduce{}, collective_kind::all_reduce, 2, fault);
    caught<path::pulled>(count, s::ring_all_gather{}, collective_kind::all_gather, 3, fault);
  }
  // Not in a gather, which pulls results alone.
  caught<path::pulled>(count, s::direct_all_reduce{}, collective_kind::all_reduce, 2, planted::no_entry);
}
