// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"
#include "support/catch.hpp"

#include <toroid/schedule/draw.hpp>

#include <cstddef>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace {

using namespace toroid::schedule;

std::size_t occurrences(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

/// Enough of a JSON reader to refuse what is none: returns what follows a value, or null.
const char* after_value(const char* at);

const char* skip(const char* at) {
  while (at != nullptr && (*at == ' ' || *at == '\n')) ++at;
  return at;
}
const char* after(const char* at, const std::string& word) {
  at = skip(at);
  return at != nullptr && std::string(at).compare(0, word.size(), word) == 0 ? at + word.size() : nullptr;
}
const char* after_string(const char* at) {
  at = after(at, "\"");
  while (at != nullptr && *at != '"') at = *at == '\0' ? nullptr : at + 1;
  return at == nullptr ? nullptr : at + 1;
}
const char* after_list(const char* at, char close, bool named) {
  at = skip(at + 1);
  if (*at == close) return at + 1;
  while (at != nullptr) {
    if (named) at = after(after_string(at), ":");
    at = skip(at == nullptr ? at : after_value(at));
    if (at == nullptr || *at == close) return at == nullptr ? at : at + 1;
    at = after(at, ",");
  }
  return at;
}
const char* after_value(const char* at) {
  at = skip(at);
  if (*at == '{') return after_list(at, '}', true);
  if (*at == '[') return after_list(at, ']', false);
  if (*at == '"') return after_string(at);
  if (const char* end = after(at, "true")) return end;
  if (const char* end = after(at, "false")) return end;
  const char* end = at;
  while (*end >= '0' && *end <= '9') ++end;
  return end == at ? nullptr : end;
}
bool is_json(const std::string& text) {
  const char* end = skip(after_value(text.c_str()));
  return end != nullptr && *end == '\0';
}

}  // namespace

TEST_CASE("A schedule as text", "[schedule]") {
  CHECK(draw_text(ring_all_reduce{}, 3) ==
        R"(3 ranks, 3 blocks, 5 steps; peers touch each other's buffers in the first 4
step 0
  rank 0, block 2: own input -> 1.input
  rank 1, block 0: own input -> 2.input
  rank 2, block 1: own input -> 0.input
step 1
  rank 0, block 1: 2.input + own input -> 1.slot
  rank 1, block 2: 0.input + own input -> 2.slot
  rank 2, block 0: 1.input + own input -> 0.slot
step 2
  rank 0, block 0: 2.slot + own input -> own result, 1.delivered (complete)
  rank 1, block 1: 0.slot + own input -> own result, 2.delivered (complete)
  rank 2, block 2: 1.slot + own input -> own result, 0.delivered (complete)
step 3
  rank 0, block 2: 2.delivered -> own result, 1.delivered
  rank 1, block 0: 0.delivered -> own result, 2.delivered
  rank 2, block 1: 1.delivered -> own result, 0.delivered
step 4
  rank 0, block 1: 2.delivered -> own result
  rank 1, block 2: 0.delivered -> own result
  rank 2, block 0: 1.delivered -> own result
)");
}

TEST_CASE("Values in one's own slot and result are told apart", "[schedule]") {
  CHECK(draw_text(halving_doubling_all_reduce{}, 3) ==
        R"(3 ranks, 3 blocks, 5 steps; peers touch each other's buffers in the first 4
step 0
  rank 0, block 2: own input -> 2.input
  rank 1, block 0: own input -> 0.input
  rank 2, block 1: own input -> 1.input
step 1
  rank 0, block 0: 1.input + own input -> own slot
  rank 0, block 1: own input -> 1.input
  rank 1, block 1: 2.input + own input -> own slot
  rank 1, block 2: own input -> 2.input
  rank 2, block 2: 0.input + own input -> own slot
  rank 2, block 0: own input -> 0.input
step 2
  rank 0, block 0: 2.input + own slot -> own result, 2.delivered (complete)
  rank 1, block 1: 0.input + own slot -> own result, 0.delivered (complete)
  rank 2, block 2: 1.input + own slot -> own result, 1.delivered (complete)
step 3
  rank 0, block 0: own result -> 1.delivered
  rank 0, block 1: 1.delivered -> own result
  rank 1, block 1: own result -> 2.delivered
  rank 1, block 2: 2.delivered -> own result
  rank 2, block 2: own result -> 0.delivered
  rank 2, block 0: 0.delivered -> own result
step 4
  rank 0, block 2: 2.delivered -> own result
  rank 1, block 0: 0.delivered -> own result
  rank 2, block 1: 1.delivered -> own result
)");
}

TEST_CASE("A grid is drawn as such", "[schedule]") {
  const std::string text = draw_text(torus_2d_all_reduce{}, 12, 0, 3);
  CHECK(text.find("12 ranks, 48 blocks, 11 steps") == 0);
  CHECK(text.find("step 0\n  rank 0, block 9-11: own input -> 1.input\n") != std::string::npos);
  CHECK(is_json(draw_json(torus_2d_all_reduce{}, 12, 0, 3)));
  CHECK(draw_dot(torus_2d_all_reduce{}, 12, 0, 3).find("\"0@0\" -> \"4@1\"") != std::string::npos);
}

TEST_CASE("A step in which nobody does anything is shown as one", "[schedule]") {
  CHECK(draw_text(one_shot_all_reduce{}, 1) ==
        R"(1 ranks, 1 blocks, 2 steps; peers touch each other's buffers in the first 2
step 0
step 1
  rank 0, block 0: own input -> own result (complete)
)");
  CHECK(draw_text(direct_broadcast{}, 1) ==
        R"(1 ranks, 1 blocks, 2 steps; peers touch each other's buffers in the first 2
step 0
step 1
)");
}

TEST_CASE("A schedule as DOT", "[schedule]") {
  CHECK(draw_dot(ring_broadcast{}, 3, 1) == R"(digraph schedule {
  rankdir=LR;
  ranksep=2;
  nodesep=0.5;
  splines=line;
  node [shape=box];
  edge [labeldistance=3, fontsize=10];
  { rank=same; "0@0" -> "1@0" -> "2@0" [style=invis]; }
  { rank=same; "0@1" -> "1@1" -> "2@1" [style=invis]; }
  { rank=same; "0@2" -> "1@2" -> "2@2" [style=invis]; }
  "0@0" -> "0@1" [style=invis, weight=100];
  "0@1" -> "0@2" [style=invis, weight=100];
  "1@0" -> "1@1" [style=invis, weight=100];
  "1@1" -> "1@2" [style=invis, weight=100];
  "2@0" -> "2@1" [style=invis, weight=100];
  "2@1" -> "2@2" [style=invis, weight=100];
  edge [constraint=false];
  "1@0" -> "2@1" [taillabel="0", style=bold];
  "2@1" -> "0@2" [taillabel="0", style=bold];
}
)");
}

TEST_CASE("A schedule as JSON", "[schedule]") {
  CHECK(draw_json(ring_broadcast{}, 2, 1) ==
        R"({"ranks": 2, "root": 1, "rows": 1, "blocks": 1, "steps": 2, "touching_steps": 1, "pipelined": true,
 "classes": [{"first": 0, "count": 1}, {"first": 1, "count": 1}],
 "operations": [
  {"step": 0, "rank": 1, "from": [1], "theirs": "input", "own": "input", "blocks": [0, 1], )"
        R"("to": [0], "at": "delivered", "completes": false},
  {"step": 1, "rank": 0, "from": [1], "theirs": "delivered", "own": "input", "blocks": [0, 1], )"
        R"("to": [0], "at": "delivered", "completes": false}]}
)");
}

TEST_CASE("Drawings of all schedules show what goes from each rank to each in each step", "[schedule]") {
  CHECK_FALSE(is_json("{\"a\": [1, 2}"));
  CHECK_FALSE(is_json("{\"a\": 1} 2"));
  const auto check = [](auto schedule, int ranks, int rows) {
    std::set<std::tuple<int, int, int, place>> edges;
    std::size_t own = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const problem p{rank, ranks, 0, rows};
      for (int step = 0; step < schedule.steps(p); ++step)
        for (int i = 0; i < schedule.operations(p, step); ++i) {
          const operation op = schedule.at(p, step, i);
          for (int d = 0; d < op.to.count; ++d)
            if (const int to = op.to.at(d, ranks); to != rank || op.at == place::slot)
              own += edges.insert({step, rank, to, op.at}).second && to == rank;
        }
    }
    const std::string dot = draw_dot(schedule, ranks, 0, rows);
    CAPTURE(ranks, rows);
    CHECK(occurrences(dot, "taillabel=") == edges.size());
    CHECK(occurrences(dot, "style=dashed") == own);
    CHECK(is_json(draw_json(schedule, ranks, 0, rows)));
  };
  models::for_each([&](auto schedule, models::collective_kind) {
    for (const int ranks : {1, 2, 3, 5, 8}) check(schedule, ranks, 1);
  });
  check(torus_2d_all_reduce{}, 12, 3);
}

TEST_CASE("Runs of blocks are drawn as such", "[schedule]") {
  CHECK(detail::text_of({3, 1}, 8) == "3");
  CHECK(detail::text_of({3, 4}, 8) == "3-6");
  CHECK(detail::text_of({3, 5}, 8) == "3-7");
  CHECK(detail::text_of({6, 4}, 8) == "6-7,0-1");
  CHECK(detail::text_of({7, 2}, 8) == "7,0");
  CHECK(detail::text_of(std::vector<int>{5, 2, 0, 1}) == "0-2,5");
}
