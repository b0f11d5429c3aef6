// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>

#include <cstddef>

namespace toroid {

/// A run of consecutive elements of a buffer.
struct block {
  std::size_t begin = 0;  ///< index of the first element
  std::size_t count = 0;  ///< number of elements

  TOROID_HOST_DEVICE constexpr std::size_t end() const noexcept { return begin + count; }
  friend constexpr bool operator==(const block&, const block&) = default;
};

/// The block of a buffer that belongs to a rank.
///
/// `count` elements are split into `ranks` consecutive blocks; the first `count % ranks` of them are one element
/// longer. This is the only rule by which the library divides a buffer: reduce_scatter leaves block_of(count, p, r) on
/// rank r, all_gather expects it there.
///
/// @param count  number of elements of the whole buffer, any value
/// @param ranks  number of blocks, at least 1
/// @param rank   which block, in [0, ranks)
/// @return first element and length; the length may be zero
///
/// Cost: two divisions. Thread-safe.
TOROID_HOST_DEVICE constexpr block block_of(std::size_t count, int ranks, int rank) noexcept {
  if (ranks == 1) return {0, count};
  const std::size_t parts = static_cast<std::size_t>(ranks);
  const std::size_t index = static_cast<std::size_t>(rank);
  const std::size_t share = count / parts;
  const std::size_t longer = count % parts;
  return {index * share + (index < longer ? index : longer), share + (index < longer ? 1 : 0)};
}

/// The length of the longest block of block_of(count, ranks, ·).
TOROID_HOST_DEVICE constexpr std::size_t longest_block(std::size_t count, int ranks) noexcept {
  return block_of(count, ranks, 0).count;
}

// Offsets stay right past 2^32 bytes: block 3 of 1.5e9 eight-byte elements on 4 ranks starts at byte 9,000,000,000.
static_assert(block_of(1'500'000'000, 4, 3).begin * 8 == 9'000'000'000);
static_assert(block_of(8, 6, 1) == block{2, 2} && block_of(8, 6, 5) == block{7, 1});
static_assert(block_of(1, 3, 2) == block{1, 0});

}  // namespace toroid
