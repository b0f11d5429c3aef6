// SPDX-License-Identifier: Apache-2.0
// Buffers that peers read and write where they stand: the owner may use them again as soon as its call has returned.
#include "model/mapped_calls.hpp"
#include "support/catch.hpp"

#include <string>

namespace {

using model::collective_kind;
using model::path;
using model::planted;

template <class Schedule>
bool may_share(Schedule, collective_kind kind) {
  // run_mapped walks one_shot along this path nowhere, and a reduce-scatter has no shared form.
  return kind != collective_kind::reduce_scatter && !std::is_same_v<Schedule, toroid::schedule::one_shot_all_reduce>;
}

void holds(int ranks) {
  models::for_each([&](auto schedule, collective_kind kind) {
    using schedule_type = decltype(schedule);
    model::tally count("in place, " + std::string(typeid(schedule).name()) + ", " + std::to_string(ranks) + " ranks");
    for (const bool shares : {false, true}) {
      if (shares ? !may_share(schedule, kind) : kind == collective_kind::broadcast) continue;
      const std::size_t pieces = model::pieces_to_go_round<schedule_type>(ranks);
      const model::report found = model::explore_calls<path::in_place>(count, schedule, kind, ranks, pieces, 2, shares);
      INFO(typeid(schedule).name() << ", " << ranks << " ranks" << (shares ? ", one buffer: " : ": ") << found.text());
      CHECK(found.fault.empty());
    }
  });
}

template <class Schedule>
void caught(model::tally& count, Schedule schedule, collective_kind kind, int ranks, planted fault, const std::string& as) {
  const std::size_t pieces = model::pieces_to_go_round<Schedule>(ranks);
  const model::report found = model::explore_calls<path::in_place>(count, schedule, kind, ranks, pieces, 2, false, fault);
  INFO(typeid(schedule).name() << ", " << ranks << " ranks, fault " << static_cast<int>(fault) << ": " << found.text());
  CHECK(found.fault.find(as) != std::string::npos);
  CHECK_FALSE(found.trace.empty());
}

}  // namespace

TEST_CASE("two ranks work in each other's buffers") { holds(2); }
TEST_CASE("three ranks work in each other's buffers", "[slow]") { holds(3); }

TEST_CASE("planted faults of the direct path are caught") {
  namespace s = toroid::schedule;
  model::tally count("in place, planted faults");
  for (const planted fault : {planted::relaxed_publish, planted::relaxed_wait, planted::publish_first,
                              planted::published_early, planted::no_step_wait, planted::step_wait_early,
                              planted::relaxed_entry, planted::no_entry, planted::no_leave, planted::leave_early}) {
    caught(count, s::direct_all_reduce{}, collective_kind::all_reduce, 2, fault, "data race");
    caught(count, s::ring_all_reduce{}, collective_kind::all_reduce, 3, fault, "data race");
  }
}
