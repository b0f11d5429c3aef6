// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/sanitizers.hpp"

#include <toroid/topology/block.hpp>

#include <vector>

// Counts and numbers of ranks of awkward shape. The conformance suite has most of these too; here they stand by name.

namespace {

using namespace conformance;
using support::demand;

/// The sum of one number a rank: whether the ranks are in step.
void demand_in_step(group_end& end, choice how) {
  const element p = static_cast<element>(end.size());
  std::vector<element> one{static_cast<element>(end.rank()) + 1};
  end.all_reduce(one, one, how);
  demand(one[0] == p * (p + 1) / 2, "the sum over ", p, " ranks by ", how.name(), " is ", one[0]);
}

/// Sums vectors that are r + 1 everywhere on rank r, in place, and looks at each element.
void sum_of_ranks(group_end& end, std::size_t count, choice how) {
  const element p = static_cast<element>(end.size());
  std::vector<element> values(count, static_cast<element>(end.rank()) + 1);
  end.all_reduce(values, values, how);
  for (std::size_t i = 0; i < count; ++i)
    demand(values[i] == p * (p + 1) / 2, "element ", i, " of ", count, " on ", p, " ranks by ", how.name(), " is ",
           values[i]);
}

}  // namespace

TEST_CASE("Empty calls return, whatever their pointers, and keep ranks in step", "[shapes]") {
  for (const int ranks : {1, 2, 3, 5}) {
    on_both(ranks, {}, [](group_end& end) {
      alignas(16) std::byte memory[32];
      const auto at = [&](std::size_t offset) {
        return std::span<element>(reinterpret_cast<element*>(memory + offset), 0);
      };
      for (const choice& how : all_choices()) {
        const std::span<element> null;
        for (const auto& [in, out] :
             {std::pair{null, null}, {at(0), at(0)}, {at(1), at(3)}, {at(4), null}, {null, at(5)}}) {
          end.all_reduce(in, out, how);
          demand_in_step(end, how);
          end.reduce_scatter(in, out, how);
          end.all_gather(in, out, how);
          end.broadcast(out, end.size() - 1, how);
          demand_in_step(end, how);
        }
      }
    });
  }
}

TEST_CASE("Vectors with fewer elements than ranks are reduced", "[shapes]") {
  for (const int ranks : {2, 3, 5, 7, 8}) {
    on_both(ranks, {}, [](group_end& end) {
      const element p = static_cast<element>(end.size());
      for (const choice& how : all_choices()) {
        for (std::size_t count = 1; count <= p + 1; ++count) {
          std::vector<element> in(count), out(count);
          for (std::size_t i = 0; i < count; ++i)
            in[i] = static_cast<element>(100 * i) + static_cast<element>(end.rank());
          end.all_reduce(in, out, how);
          for (std::size_t i = 0; i < count; ++i)
            demand(out[i] == static_cast<element>(100 * i) * p + p * (p - 1) / 2, "element ", i, " of ", count, " is ",
                   out[i]);
        }
      }
    });
  }
}

TEST_CASE("Every collective knows vectors with fewer elements than ranks", "[shapes]") {
  for (const int ranks : {2, 3, 5, 7, 8}) {
    on_both(ranks, {}, [](group_end& end) {
      std::vector<std::size_t> counts;
      for (std::size_t count = 1; count <= static_cast<std::size_t>(end.size()) + 1; ++count) counts.push_back(count);
      check(end, memory_kind::mixed, counts, all_choices(), extent::brief);
    });
  }
}

TEST_CASE("Blocks of unequal length stay inside the buffers", "[shapes]") {
  const std::pair<int, std::size_t> shapes[] = {{6, 8}, {4, 6}, {5, 7}, {7, 8}, {8, 9}, {3, 100'003}};
  for (const auto& [ranks, count] : shapes)
    on_both(ranks, {}, [count = count](group_end& end) {
      for (const memory_kind where : {memory_kind::ordinary, memory_kind::shared})
        check(end, where, {count}, all_choices(), extent::brief);
    });
}

TEST_CASE("Counts that ranks do not divide are reduced to the last element", "[shapes]") {
  on_both(3, {}, [](group_end& end) {
    for (const std::size_t count : {255u, 256u, 257u})
      for (const choice& how : all_choices()) sum_of_ranks(end, count, how);
  });
  // Long vectors go past the caches: results are stored another way.
  const std::size_t count = support::sanitized ? 1'055'659 : 10'556'587;
  on_threads(3, {}, [&](group_end& end) {
    for (const choice& how : {choice{choice::kind::automatic, 0}, choice{choice::kind::ring, 0}})
      sum_of_ranks(end, count, how);
  });
}

TEST_CASE("Long vectors are reduced to the last element by many ranks", "[shapes][slow]") {
  const auto sum = [](group_end& end) {
    using kind = choice::kind;
    for (const choice& how : {choice{kind::automatic}, choice{kind::ring}, choice{kind::direct, 1 << 18}})
      sum_of_ranks(end, 10'556'587, how);
  };
  for (const int ranks : {3, 4, 8}) on_both(ranks, {}, sum);
}
