// SPDX-License-Identifier: Apache-2.0
#include "patterns.hpp"
#include "settings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <limits>

namespace bench {

std::size_t size_of(element type) {
  switch (type) {
    case element::int8:
    case element::uint8:
      return 1;
    case element::float16:
    case element::bfloat16:
      return 2;
    case element::int32:
    case element::uint32:
    case element::float32:
      return 4;
    case element::int64:
    case element::uint64:
    case element::float64:
      return 8;
  }
  return 0;
}

bool is_integer(element type) { return type < element::float16; }

namespace {

bool is_half(element type) { return type == element::float16 || type == element::bfloat16; }

bool is_one_of(element type, std::initializer_list<element> some) {
  return std::find(some.begin(), some.end(), type) != some.end();
}

bool offers(collective kind, algorithm by) {
  if (by <= algorithm::ring || kind == collective::all_reduce) return true;
  return kind == collective::broadcast ? by == algorithm::tree : by == algorithm::halving_doubling;
}

}  // namespace

std::string refusal(const settings& s) {
  const bool fits_launch = s.launch == launch::threads     ? s.transport == transport::threads
                           : s.launch == launch::processes ? s.transport == transport::shm
                                                           : s.transport != transport::threads;
  if (!fits_launch)
    return fmt::format(
        "--launch {} does not go with --transport {}: ranks that are threads meet over threads, ranks that are "
        "processes over shm, and ranks that MPI starts over shm or mpi",
        word(s.launch), word(s.transport));
  if (s.vs && s.launch != launch::mpi) return fmt::format("--vs {} needs --launch mpi", word(*s.vs));
  if (s.full && s.format != format::osu) return "--full is for --format osu";
  if (s.transport == transport::mpi) {
    if (s.checking != checking::none) return "--check calls is not there over --transport mpi, which has only none";
    if (s.memory == memory::shared)
      return "--memory shared does not go with --transport mpi: messages reach any memory";
    if (s.has_data() && !is_one_of(s.element, {element::int32, element::int64, element::float32, element::float64}))
      return fmt::format("--type {} is not there over --transport mpi, but int32, int64, float and double are",
                         word(s.element));
  }
  if (s.ranks < 1) return fmt::format("--ranks {}: at least one is needed", s.ranks);
  if (s.segment_bytes && s.algorithm == algorithm::automatic)
    return "--segment-bytes needs another --algorithm: automatic chooses its own";
  if ((s.rows != 0 || s.columns != 0) && s.algorithm != algorithm::torus_2d)
    return "--rows and --columns are for --algorithm torus_2d";
  const bool fits_grid = s.rows == 0      ? s.columns == 0 || s.ranks % s.columns == 0
                         : s.columns == 0 ? s.ranks % s.rows == 0
                                          : s.rows * s.columns == s.ranks;
  if (!fits_grid) return fmt::format("--rows {} and --columns {} do not fit {} ranks", s.rows, s.columns, s.ranks);
  if (!s.has_data()) return {};
  if (!offers(s.collective, s.algorithm))
    return fmt::format("{} is not done by --algorithm {}", word(s.collective), word(s.algorithm));

  const std::size_t width = size_of(s.element);
  for (const std::size_t bytes : s.sizes)
    if (bytes == 0 || bytes % width != 0)
      return fmt::format("{} B is not a whole number of {} elements of {} B, at least one", bytes, word(s.element),
                         width);
  if (!s.in_place && !s.out_of_place) return "neither in place nor out of place: nothing to measure";
  if (s.format == format::osu && s.in_place && s.out_of_place)
    return "--format osu has one column for times: choose --in-place or --out-of-place";
  if (s.format == format::osu && s.osu_counts_blocks())
    for (const std::size_t bytes : s.sizes)
      if (bytes % (width * std::size_t(s.ranks)) != 0)
        return fmt::format("--format osu counts the block of one rank, but {} B is not a whole number of {} B times {}",
                           bytes, width, s.ranks);
  if (s.vs && s.sizes.back() / width > std::size_t(std::numeric_limits<int>::max()))
    return fmt::format("--vs {}: {} B are more elements than MPI can count", word(*s.vs), s.sizes.back());
  if (s.has_root() && (s.root < 0 || s.root >= s.ranks))
    return fmt::format("--root {} is not one of {} ranks", s.root, s.ranks);
  if (!s.reduces()) return {};

  if (s.vs) {
    const bool logical = s.reduction == reduction::logical_and || s.reduction == reduction::logical_or;
    if (s.reduction == reduction::average || (logical && !is_integer(s.element)) || is_half(s.element))
      return fmt::format("--vs {}: MPI has no {} of {}", word(*s.vs), word(s.reduction), word(s.element));
  }
  const bool bitwise = s.reduction >= reduction::bit_and && s.reduction <= reduction::bit_xor;
  if (bitwise && !is_integer(s.element))
    return fmt::format("--op {} is for integers, not for {}", word(s.reduction), word(s.element));
  const bool wide = s.element == element::float32 || s.element == element::float64;
  if (s.reduction == reduction::average && s.algorithm >= algorithm::ring && !wide)
    return fmt::format("--op average of {} is not exact over --algorithm {}; use direct or automatic", word(s.element),
                       word(s.algorithm));
  if (!exact(s))
    return fmt::format("--op {} over {} ranks has no exact value in {} to check against", word(s.reduction), s.ranks,
                       word(s.element));
  return {};
}

}  // namespace bench
