// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/topology/block.hpp>

#include <cstddef>

/// Where blocks stand: in the vector, cut by weight where a schedule asks for it, and in a slot.
namespace toroid::schedule {

/// A schedule that splits the vector into parts of different length before it splits those into blocks.
template <class S>
concept weighted = requires(problem p) {
  S::parts(p);
  S::weight(p, 0);
};

/// A schedule that says where in a slot values stand.
template <class S>
concept placing = requires(problem p) {
  S::slot_places(p);
  S::slot_place(p, 0, 0);
};

/// The part of a vector that a schedule's blocks number first * blocks/parts and following divide among themselves.
///
/// @param count  elements of the whole vector, any value
/// @param part   in [0, parts)
template <weighted S>
TOROID_HOST_DEVICE constexpr block part_of(problem p, std::size_t count, int part) noexcept {
  std::size_t before = 0, all = 0;
  for (int i = 0; i < S::parts(p); ++i) {
    const std::size_t weight = static_cast<std::size_t>(S::weight(p, i));
    if (i < part) before += weight;
    all += weight;
  }
  // Rounded down, and no product of count, which may be long.
  const auto begin_of = [&](std::size_t weight) { return count / all * weight + count % all * weight / all; };
  const std::size_t begin = begin_of(before);
  return {begin, begin_of(before + static_cast<std::size_t>(S::weight(p, part))) - begin};
}

/// Where a block of a schedule stands in a vector: block_of, or block_of within a part.
///
/// @param count  elements of the whole vector, any value
/// @param index  in [0, S::blocks(p))
template <class S>
TOROID_HOST_DEVICE constexpr block block_at(problem p, std::size_t count, int index) noexcept {
  if constexpr (weighted<S>) {
    const int each = S::blocks(p) / S::parts(p);
    const block whole = part_of<S>(p, count, index / each);
    const block inside = block_of(whole.count, each, index % each);
    return {whole.begin + inside.begin, inside.count};
  } else {
    return block_of(count, S::blocks(p), index);
  }
}

/// The length of the longest block that stands in the same part as block `index`.
template <class S>
TOROID_HOST_DEVICE constexpr std::size_t longest_at(problem p, std::size_t count, int index) noexcept {
  if constexpr (weighted<S>) {
    const int each = S::blocks(p) / S::parts(p);
    return longest_block(part_of<S>(p, count, index / each).count, each);
  } else {
    return longest_block(count, S::blocks(p));
  }
}

/// How many values a slot has room for, and where that of a block which is sent in a step stands among them. The same
/// on all ranks: sender and receiver both work it out.
template <class S>
TOROID_HOST_DEVICE constexpr int slot_places(problem p) noexcept {
  if constexpr (placing<S>)
    return S::slot_places(p);
  else if constexpr (requires { requires S::one_value_a_step; })
    return 1;
  else
    return S::blocks(p);
}
template <class S>
TOROID_HOST_DEVICE constexpr int slot_place(problem p, int step, int block_index) noexcept {
  if constexpr (placing<S>)
    return S::slot_place(p, step, block_index);
  else if constexpr (requires { requires S::one_value_a_step; })
    return 0;
  else
    return block_index;
}

/// Where the pieces of equally long blocks stand in a vector and in a hand-over region.
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
  /// Elements of a piece, counted from the start of a block of any length.
  TOROID_HOST_DEVICE constexpr block piece_within(std::size_t length, std::size_t piece_index) const noexcept {
    const std::size_t skipped = piece_index < length / piece + 1 ? piece_index * piece : length;
    const std::size_t rest = length - skipped;
    return {skipped, rest < piece ? rest : piece};
  }
  /// Elements from the start of a region to a block's piece.
  TOROID_HOST_DEVICE constexpr std::size_t region_offset(int block_index) const noexcept {
    return compact ? 0 : static_cast<std::size_t>(block_index) * piece;
  }
};

/// The length of a schedule's longest block.
template <class S>
TOROID_HOST_DEVICE constexpr std::size_t longest_of(problem p, std::size_t count) noexcept {
  if constexpr (weighted<S>) {
    const int each = S::blocks(p) / S::parts(p);
    std::size_t longest = 0;
    for (int part = 0; part < S::parts(p); ++part) {
      const std::size_t here = longest_block(part_of<S>(p, count, part).count, each);
      if (here > longest) longest = here;
    }
    return longest;
  } else {
    return longest_block(count, S::blocks(p));
  }
}

/// Into how many pieces the blocks of a schedule are cut: the longest of them in pieces of `layout.piece` elements.
template <class S>
TOROID_HOST_DEVICE constexpr std::size_t pieces_of(problem p, const layout& l) noexcept {
  const std::size_t longest = longest_of<S>(p, l.count);
  return longest == 0 ? 1 : (longest + l.piece - 1) / l.piece;
}

/// Elements of a block's piece, counted from the start of the vector. Blocks of shorter parts have shorter pieces, not
/// fewer, so that all links are busy for as long.
///
/// @param pieces  as pieces_of() says
template <class S>
TOROID_HOST_DEVICE constexpr block piece_at(problem p, const layout& l, std::size_t pieces, int block_index,
                                            std::size_t piece_index) noexcept {
  if constexpr (weighted<S>) {
    const int each = S::blocks(p) / S::parts(p);
    const block part = part_of<S>(p, l.count, block_index / each);
    std::size_t length = (longest_block(part.count, each) + pieces - 1) / pieces;
    if (length > 64) length += 63 - (length + 63) % 64;  // begin at like alignments; still no longer than l.piece
    const block whole = block_of(part.count, each, block_index % each);
    const std::size_t skipped = piece_index * length < whole.count ? piece_index * length : whole.count;
    const std::size_t rest = whole.count - skipped;
    return {part.begin + whole.begin + skipped, rest < length ? rest : length};
  } else {
    return l.piece_of(block_index, piece_index);
  }
}

static_assert(layout{10, 3, 2}.pieces() == 2 && layout{10, 3, 2}.piece_of(0, 1) == block{2, 2});
static_assert(layout{10, 3, 2}.piece_of(2, 1) == block{9, 1} && layout{0, 3, 2}.pieces() == 1);

}  // namespace toroid::schedule
