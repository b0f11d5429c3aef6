// SPDX-License-Identifier: Apache-2.0
// Every schedule along every path after every other: what one call leaves behind does not disturb the next.
#include "model/mapped_calls.hpp"
#include "support/catch.hpp"

#include <string>
#include <vector>

namespace {

using model::collective_kind;
using model::path;

struct named_call {
  std::string name;
  model::planned_call call;
};

/// Each schedule along each path, broadcasts from the first and from the last rank.
std::vector<named_call> every_call(int ranks, std::size_t count) {
  std::vector<named_call> calls;
  models::for_each_carried_out([&](auto schedule, collective_kind kind) {
    const bool rooted = kind == collective_kind::broadcast;
    for (const int root : {0, ranks - 1}) {
      if (!rooted && root != 0) continue;
      const std::string name = std::string(typeid(schedule).name()) + (root != 0 ? " from the last rank" : "");
      calls.push_back({name + ", staged", model::plan<path::staged>(schedule, kind, ranks, count, rooted, root)});
      calls.push_back({name + ", in place", model::plan<path::in_place>(schedule, kind, ranks, count, rooted, root)});
      if (!decltype(schedule)::sends_partial_values)
        calls.push_back({name + ", pulled", model::plan<path::pulled>(schedule, kind, ranks, count, rooted, root)});
    }
  });
  return calls;
}

void holds(int ranks, std::size_t count) {
  model::tally told("successions, " + std::to_string(ranks) + " ranks, " + std::to_string(count) + " elements");
  const std::vector<named_call> calls = every_call(ranks, count);
  for (const named_call& first : calls)
    for (const named_call& second : calls) {
      const model::report found = model::explore_calls(told, ranks, count, {first.call, second.call});
      INFO(first.name << ", then " << second.name << ": " << found.text());
      CHECK(found.fault.empty());
    }
}

}  // namespace

TEST_CASE("two ranks make every call after every other") { holds(2, 4); }
TEST_CASE("three ranks make every call after every other", "[slow]") { holds(3, 6); }
