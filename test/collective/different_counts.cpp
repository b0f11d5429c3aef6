// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/topology/block.hpp>

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

// Ranks that bring different numbers of elements. Nobody gets a wrong result for a right one: either the call says that
// ranks disagree, or, where a rank needs nobody's answer, the next one does.

namespace {

using namespace conformance;
using support::demand;
using counts = std::vector<std::size_t>;

constexpr int ranks = 3;
const std::vector<counts> disagreeing{{10, 10, 9}, {4096, 4096, 4095}, {1, 0, 1}, {9, 10, 10}, {20'000, 20'000, 3}};

/// Calls `f` with this rank's count in a new group, then barriers, for each algorithm. All ranks get an error soon.
///
/// @param at_once  the call itself must fail, on every rank
/// @param f        of (end, count, algorithm); checks the result itself where the call returns
void disagree(bool at_once, const std::function<void(group_end&, std::size_t, choice)>& f) {
  for (const counts& of : disagreeing)
    for (const choice& how : all_choices())
      on_both(ranks, {}, [&](group_end& end) {
        const auto began = std::chrono::steady_clock::now();
        bool returned = false;
        const std::string text = support::text_of<toroid::mismatch_error>([&] {
          f(end, of[static_cast<std::size_t>(end.rank())], how);
          returned = true;
          end.barrier();
          end.barrier();
        });
        support::demand_words(text, "ranks disagree");
        demand(!returned || !at_once, how.name(), ": rank ", end.rank(), " of ", of[0], ", ", of[1], ", ", of[2],
               " elements reports success");
        demand(std::chrono::steady_clock::now() - began < std::chrono::seconds(5), "it took too long to say ", text);
      });
}

}  // namespace

TEST_CASE("A sum of different counts fails on every rank", "[different counts]") {
  disagree(true, [](group_end& end, std::size_t count, choice how) {
    std::vector<element> in(count, 1), out(count, 77);
    end.all_reduce(in, out, how);
  });
}

TEST_CASE("Blocks scattered from different counts are on no rank taken for right", "[different counts]") {
  disagree(false, [](group_end& end, std::size_t count, choice how) {
    std::vector<element> in(count, 1), out(toroid::block_of(count, ranks, end.rank()).count, 77);
    end.reduce_scatter(in, out, how);
    for (const element value : out) demand(value == ranks, "a block that is ", value);
  });
}

TEST_CASE("Blocks gathered to different counts fail on every rank", "[different counts]") {
  disagree(true, [](group_end& end, std::size_t count, choice how) {
    std::vector<element> in(toroid::block_of(count, ranks, end.rank()).count, 1), out(count, 77);
    end.all_gather(in, out, how);
  });
}

TEST_CASE("A broadcast to different counts is on no rank taken for right", "[different counts]") {
  for (int root = 0; root < ranks; ++root)
    disagree(false, [root](group_end& end, std::size_t count, choice how) {
      std::vector<element> values(count, end.rank() == root ? 5 : 77);
      end.broadcast(values, root, how);
      for (const element value : values) demand(value == 5, "an element that is ", value);
    });
}
