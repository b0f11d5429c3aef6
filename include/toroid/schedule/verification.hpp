// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/schedule/detail/text.hpp>

#include <optional>
#include <string>
#include <vector>

namespace toroid::schedule {

/// What a schedule is meant to do, and so what a checker expects to find.
enum class collective_kind {
  all_reduce,      ///< every rank ends with all blocks, combined over all ranks
  reduce_scatter,  ///< rank r ends with block r, combined over all ranks; nothing else of its result is written
  all_gather,      ///< rank r brings block r; every rank ends with all blocks
  broadcast,       ///< every rank ends with the root's vector; input and result are the same memory
  reduce,          ///< the root ends with all blocks, combined over all ranks; the others have no result
  gather,          ///< rank r brings block r; the root ends with all blocks, the others have no result
  scatter,         ///< the root brings all blocks; rank r ends with block r
  all_to_all,      ///< of p * p blocks rank r brings r p to r p + p - 1; rank d ends with blocks s p + d of all s
};

/// The first thing found wrong. Rank, step and block are -1 where it is not about a single one.
struct violation {
  int rank = -1;
  int step = -1;
  int block = -1;
  std::string what;
};

/// What verify() found.
struct verification {
  std::optional<violation> first;  ///< empty: all is proved
  /// Per block, in which order and grouping its contributions were combined: "0 + 1 + 2" is from left to right.
  std::vector<std::string> expressions;

  bool proved() const noexcept { return !first; }
  /// "proved", or "rank 3, step 1, block 2: …".
  std::string to_string() const {
    if (!first) return "proved";
    std::string where;
    const auto name = [&](const char* what, int number) {
      if (number >= 0) where += detail::joined(where.empty() ? "" : ", ", what, " ", number);
    };
    name("rank", first->rank);
    name("step", first->step);
    name("block", first->block);
    return where.empty() ? first->what : detail::joined(where, ": ", first->what);
  }
};

/// What to prove beyond the result, and how far ranks may run ahead of each other.
struct verify_options {
  bool in_rank_order =
      false;            ///< operands have to meet in the order of the ranks, as operators that do not commute ask
  int least_depth = 2;  ///< smallest number of slots a rank may be ahead of its readers; at least 1
  int most_depth = 4;   ///< largest; all between are checked
  /// Whether calls in place are to be safe too where peers work in each other's buffers. Broadcasts are always in
  /// place.
  bool direct_in_place = true;
  int rows = 1;  ///< of the grid that the ranks form
};

}  // namespace toroid::schedule
