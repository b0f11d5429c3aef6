// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>
#include <toroid/topology/block.hpp>

#include <cstddef>

namespace toroid::schedule {

/// Where the pieces of blocks stand in a vector and in a hand-over region.
///
/// A vector of `count` elements is split into `blocks` blocks by block_of, and every block into pieces of `piece`
/// elements. Operations act on one piece at a time, so how long pieces are never changes a result.
struct layout {
  std::size_t count = 0;  ///< elements of the whole vector
  int blocks = 1;         ///< at least 1
  std::size_t piece = 1;  ///< elements, at least 1
  bool compact = false;   ///< a rank sends one block a step: it stands at the start of the region

  TOROID_HOST_DEVICE constexpr std::size_t pieces() const noexcept {
    const std::size_t longest = longest_block(count, blocks);
    return longest == 0 ? 1 : (longest + piece - 1) / piece;
  }
  /// Elements of a block's piece, counted from the start of the vector.
  TOROID_HOST_DEVICE constexpr block piece_of(int block_index, std::size_t piece_index) const noexcept {
    const block whole = block_of(count, blocks, block_index);
    const std::size_t skipped = piece_index * piece < whole.count ? piece_index * piece : whole.count;
    const std::size_t rest = whole.count - skipped;
    return {whole.begin + skipped, rest < piece ? rest : piece};
  }
  /// Elements from the start of a region to a block's piece.
  TOROID_HOST_DEVICE constexpr std::size_t region_offset(int block_index) const noexcept {
    return compact ? 0 : static_cast<std::size_t>(block_index) * piece;
  }
};

static_assert(layout{10, 3, 2}.pieces() == 2 && layout{10, 3, 2}.piece_of(0, 1) == block{2, 2});
static_assert(layout{10, 3, 2}.piece_of(2, 1) == block{9, 1} && layout{0, 3, 2}.pieces() == 1);

}  // namespace toroid::schedule
