// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

namespace toroid::detail {

/// Learns, for each magnitude of message, which of two ways to move ordinary memory is faster just now: through
/// hand-over regions, or copied by the kernel. Rank 0 asks it and tells the others, so that all take the same.
///
/// Which one wins depends on how far apart the cores are that the ranks run on, and that changes while a program runs:
/// so the loser is tried again now and then, and as soon as the winner has become slower than it was known to be. Of
/// the first trials the fastest counts: what comes first maps pages.
class path_chooser {
 public:
  enum way : int { staged, pulled };

  /// The way for the next message of this size.
  way choose(std::size_t bytes) noexcept {
    record& r = m_records[magnitude(bytes)];
    const std::uint32_t call = r.calls++;
    if (call < 2 * trials_of(bytes) || r.nanoseconds[staged] <= 0 || r.nanoseconds[pulled] <= 0)
      return call % 2 == 0 ? staged : pulled;
    const way better = r.nanoseconds[pulled] < r.nanoseconds[staged] ? pulled : staged;
    return call % recheck == 0 ? other(better) : better;
  }

  /// The way that is faster as far as is known; for a call whose time says nothing, and that is not counted.
  way better(std::size_t bytes) const noexcept {
    const record& r = m_records[magnitude(bytes)];
    return r.nanoseconds[pulled] > 0 && r.nanoseconds[pulled] < r.nanoseconds[staged] ? pulled : staged;
  }

  /// How long it took.
  void note(std::size_t bytes, way taken, std::int64_t nanoseconds) noexcept {
    record& r = m_records[magnitude(bytes)];
    double& known = r.nanoseconds[taken];
    const double now = static_cast<double>(nanoseconds);
    if (r.calls <= 2 * trials_of(bytes)) {
      if (known <= 0 || now < known) known = now;
      return;
    }
    const double plausible = known > 0 && now > 4 * known ? 4 * known : now;  // a rank that lost its core says nothing
    known = known > 0 ? known + (plausible - known) / 4 : now;
  }

 private:
  static constexpr std::uint32_t recheck = 64;
  /// Of each way. Long messages tell more and cost more.
  static std::uint32_t trials_of(std::size_t bytes) noexcept { return bytes < std::size_t{1} << 20 ? 3 : 2; }
  struct record {
    std::uint32_t calls = 0;
    double nanoseconds[2] = {};  ///< lately; 0: never tried
  };
  static way other(way w) noexcept { return w == staged ? pulled : staged; }
  static std::size_t magnitude(std::size_t bytes) noexcept { return static_cast<std::size_t>(std::bit_width(bytes)); }

  record m_records[65];
};

}  // namespace toroid::detail
