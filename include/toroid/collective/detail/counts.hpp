// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/prepare.hpp>
#include <toroid/communicator/call.hpp>
#include <toroid/core/buffer.hpp>
#include <toroid/topology/block.hpp>

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

namespace toroid {

/// Counts or displacements, one a rank: a contiguous range of integers.
template <class R>
concept counts_range = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    std::integral<std::ranges::range_value_t<R>> && !std::same_as<std::ranges::range_value_t<R>, bool>;

namespace detail {

/// Stands for displacements that were not given: blocks follow each other without gaps.
struct packed {};

/// Blocks with gaps between them, as counts and displacements say; where those are not given, without gaps.
///
/// @param which  "result" or "input": the buffer that they are in
/// @throws usage_error  for another number of them than ranks, for negative ones, and for sums that are too large
template <counts_range N, class D>
std::vector<block> blocks_of(const N& counts, const D& displacements, int ranks, const char* which,
                             const call_identity& identity) {
  const auto refused = [&](const std::string& what) { refuse(identity.collective, identity.at, what); };
  const auto checked = [&](const auto& numbers, const char* name) {
    if (std::ranges::size(numbers) != static_cast<std::size_t>(ranks))
      refused("there are " + std::to_string(std::ranges::size(numbers)) + " " + name + " of the " + which + " for " +
              std::to_string(ranks) + " ranks");
  };
  const auto number = [&](auto value, const char* name, int rank) {
    if constexpr (std::is_signed_v<decltype(value)>)
      if (value < 0)
        refused("the " + std::string(name) + " of the " + which + " for rank " + std::to_string(rank) + " is " +
                std::to_string(value));
    return static_cast<std::size_t>(value);
  };
  checked(counts, "counts");
  if constexpr (!std::is_same_v<D, packed>) checked(displacements, "displacements");
  std::vector<block> blocks(static_cast<std::size_t>(ranks));
  std::size_t end = 0;
  for (int r = 0; r < ranks; ++r) {
    block& b = blocks[static_cast<std::size_t>(r)];
    b.count = number(std::ranges::data(counts)[r], "count", r);
    b.begin = end;
    if constexpr (!std::is_same_v<D, packed>) b.begin = number(std::ranges::data(displacements)[r], "displacement", r);
    std::size_t beyond = 0;
    if (__builtin_add_overflow(b.begin, b.count, &beyond))
      refused("the block of the " + std::string(which) + " for rank " + std::to_string(r) + " ends beyond any memory");
    if constexpr (std::is_same_v<D, packed>) end = beyond;
  }
  return blocks;
}

/// Elements that a buffer needs to hold blocks: up to the end of the one that ends last.
inline std::size_t needed(const std::vector<block>& blocks) noexcept {
  std::size_t end = 0;
  for (const block& b : blocks)
    if (b.count != 0 && b.end() > end) end = b.end();
  return end;
}

/// Elements of all blocks.
inline std::size_t total(const std::vector<block>& blocks, const call_identity& identity) {
  std::size_t all = 0;
  for (const block& b : blocks)
    if (__builtin_add_overflow(all, b.count, &all))
      refuse(identity.collective, identity.at, "the counts add up to more elements than can be");
  return all;
}

/// Blocks must fit their buffer.
inline void check_room(const std::vector<block>& blocks, std::size_t elements, const char* which,
                       const call_identity& identity) {
  if (needed(blocks) > elements)
    refuse(identity.collective, identity.at,
           "the counts and displacements of the " + std::string(which) + " need " + std::to_string(needed(blocks)) +
               " elements, and it has " + std::to_string(elements));
}

/// Blocks that are written must not overlap.
inline void check_apart(const std::vector<block>& blocks, const char* which, const call_identity& identity) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const block &a = blocks[i], &b = blocks[j];
      if (a.count != 0 && b.count != 0 && a.begin < b.end() && b.begin < a.end())
        refuse(identity.collective, identity.at,
               "the blocks of the " + std::string(which) + " for ranks " + std::to_string(j) + " and " +
                   std::to_string(i) + " overlap");
    }
  }
}

/// A rank sends itself what it expects from itself.
inline void check_own(std::size_t sent, std::size_t expected, const call_identity& identity) {
  if (sent != expected)
    refuse(identity.collective, identity.at,
           "this rank's own block has " + std::to_string(sent) + " elements in the input, and its count says " +
               std::to_string(expected));
}

}  // namespace detail
}  // namespace toroid
