// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "support/demand.hpp"

#include <toroid/collective/all_gather.hpp>
#include <toroid/collective/all_reduce.hpp>
#include <toroid/communicator/colour.hpp>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

/// What ranks ask for in a split, and who then stands where.
namespace splits {

struct wish {
  toroid::colour which;
  toroid::exact_integer key = 0;
};

struct table {
  std::string name;
  std::vector<wish> wishes;              ///< one a rank
  std::vector<std::vector<int>> groups;  ///< ranks of the old group, in the order of the new one
};

inline std::vector<table> tables() {
  using limits = std::numeric_limits<std::int64_t>;
  constexpr std::int64_t high = std::int64_t{1} << 40;
  const auto none = toroid::no_group;
  return {
      {"pairs", {{0}, {0}, {5}, {5}, {INT_MAX}, {INT_MAX}}, {{0, 1}, {2, 3}, {4, 5}}},
      {"all different", {{3}, {1}, {4}, {-1}, {5}, {9}}, {{0}, {1}, {2}, {3}, {4}, {5}}},
      {"all the same", {{8}, {8}, {8}, {8}, {8}, {8}}, {{0, 1, 2, 3, 4, 5}}},
      {"none on two", {{1}, {none}, {1}, {2}, {none}, {1}}, {{0, 2, 5}, {3}}},
      {"none on all", {{none}, {none}, {none}}, {}},
      {"negative", {{-1}, {-2}, {INT_MIN}, {-1}, {-2}, {INT_MIN}}, {{0, 3}, {1, 4}, {2, 5}}},
      {"the same low half",
       {{high + 7}, {7}, {2 * high + 7}, {high + 7}, {7}, {-high + 7}},
       {{0, 3}, {1, 4}, {2}, {5}}},
      {"ends of the range",
       {{limits::max()}, {limits::min()}, {~std::uint64_t{0}}, {-1}, {limits::min()}, {~std::uint64_t{0}}},
       {{0}, {1, 4}, {2, 5}, {3}}},
      {"keys backwards", {{0, 5}, {0, 4}, {0, 3}, {0, 2}, {0, 1}, {0, 0}}, {{5, 4, 3, 2, 1, 0}}},
      {"keys with ties", {{0, 1}, {0, 0}, {0, 1}, {0, 0}, {0, 1}, {0, -1}}, {{5, 1, 3, 0, 2, 4}}},
      {"extreme keys",
       {{1, INT_MAX}, {1, INT_MIN}, {1, limits::max()}, {1, limits::min()}, {1, ~std::uint64_t{0}}, {1, 0}},
       {{3, 1, 5, 0, 2, 4}}},
      {"keys across colours", {{1, 3}, {2, 3}, {1, 2}, {2, 2}, {1, 1}, {2, 1}}, {{4, 2, 0}, {5, 3, 1}}},
  };
}

/// Sums of `mine`, short and long, are `expected`.
template <class Communicator>
void check_sum(Communicator& comm, std::int64_t expected, std::int64_t mine) {
  for (const std::size_t count : {1U, 20'000U}) {
    std::vector<std::int64_t> values(count, mine);
    toroid::all_reduce(comm, values);
    for (const std::int64_t value : values)
      support::demand(value == expected, "a sum of ", count, " on rank ", comm.rank(), " of ", comm.size(), " is ",
                      value, ", not ", expected);
  }
}
/// The sum of ones, or of all ranks + 1 where more is expected.
template <class Communicator>
void check_sum(Communicator& comm, std::int64_t expected) {
  check_sum(comm, expected, expected == comm.size() ? 1 : comm.rank() + 1);
}

/// Splits, sums in the new group, then in the old one.
template <class Communicator>
void check(Communicator& comm, const table& what) {
  const int rank = comm.rank();
  const wish& mine = what.wishes[static_cast<std::size_t>(rank)];
  const std::vector<int>* expected = nullptr;
  std::int64_t place = -1;
  for (const std::vector<int>& group : what.groups)
    for (std::size_t i = 0; i < group.size(); ++i)
      if (group[i] == rank) {
        expected = &group;
        place = static_cast<std::int64_t>(i);
      }
  auto made = comm.split(mine.which, mine.key);
  support::demand(static_cast<bool>(made) == (expected != nullptr), what.name, ": rank ", rank,
                  made ? " has a group" : " has no group");
  if (expected != nullptr) {
    support::demand(made.size() == static_cast<int>(expected->size()) && made.rank() == place, what.name, ": rank ",
                    rank, " is number ", made.rank(), " of ", made.size());
    std::vector<int> ranks(expected->size());
    toroid::all_gather(made, std::span(&rank, 1), ranks);
    support::demand(ranks == *expected, what.name, ": the group of rank ", rank, " is another one");
    std::int64_t sum = 0;
    for (const int r : *expected) sum += r + 1;
    check_sum(made, sum, rank + 1);
  }
  const std::int64_t all = comm.size();
  check_sum(comm, all * (all + 1) / 2, rank + 1);
}

}  // namespace splits
