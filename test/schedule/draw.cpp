// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"
#include "support/catch.hpp"

#include <toroid/schedule/cost.hpp>
#include <toroid/schedule/draw.hpp>

#include <cstddef>
#include <string>

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
  node [shape=box];
  { rank=same; "0@0"; "1@0"; "2@0"; }
  { rank=same; "0@1"; "1@1"; "2@1"; }
  { rank=same; "0@2"; "1@2"; "2@2"; }
  "0@0" -> "0@1" [style=invis];
  "0@1" -> "0@2" [style=invis];
  "1@0" -> "1@1" [style=invis];
  "1@1" -> "1@2" [style=invis];
  "2@0" -> "2@1" [style=invis];
  "2@1" -> "2@2" [style=invis];
  "1@0" -> "2@1" [label="0", style=bold];
  "2@1" -> "0@2" [label="0", style=bold];
}
)");
}

TEST_CASE("A schedule as JSON", "[schedule]") {
  CHECK(draw_json(ring_broadcast{}, 2, 1) ==
        R"({"ranks": 2, "root": 1, "blocks": 1, "steps": 2, "touching_steps": 1, "pipelined": true,
 "classes": [{"first": 0, "count": 1}, {"first": 1, "count": 1}],
 "operations": [
  {"step": 0, "rank": 1, "from": [1], "theirs": "input", "blocks": [0, 1], "to": [0], "at": "delivered", )"
        R"("completes": false},
  {"step": 1, "rank": 0, "from": [1], "theirs": "delivered", "blocks": [0, 1], "to": [0], "at": "delivered", )"
        R"("completes": false}]}
)");
}

TEST_CASE("Drawings of all schedules show every message once", "[schedule]") {
  CHECK_FALSE(is_json("{\"a\": [1, 2}"));
  CHECK_FALSE(is_json("{\"a\": 1} 2"));
  models::for_each([](auto schedule, models::collective_kind) {
    for (const int ranks : {1, 2, 3, 5, 8}) {
      std::size_t messages = 0;
      for (int rank = 0; rank < ranks; ++rank) messages += traffic_of(schedule, {rank, ranks}, 1).messages;
      CAPTURE(ranks);
      CHECK(occurrences(draw_dot(schedule, ranks), "label=") == messages);
      CHECK(is_json(draw_json(schedule, ranks)));
    }
  });
}

TEST_CASE("Runs of blocks are drawn as such", "[schedule]") {
  CHECK(detail::text_of({3, 1}) == "3");
  CHECK(detail::text_of({3, 4}) == "3-6");
}
