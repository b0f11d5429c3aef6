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
/// so the loser is tried again now and then, and at once when the winner has become slower than it was.
class path_chooser {
 public:
  enum way : int { staged, pulled };

  /// The way for the next message of this size.
  way choose(std::size_t bytes) noexcept {
    record& r = m_records[magnitude(bytes)];
    const std::uint32_t call = r.calls++;
    if (call < 2 * trials) return call % 2 == 0 ? staged : pulled;
    const way better = r.nanoseconds[pulled] < r.nanoseconds[staged] ? pulled : staged;
    return call % recheck == 0 ? other(better) : better;
  }

  /// How long it took.
  void note(std::size_t bytes, way taken, std::int64_t nanoseconds) noexcept {
    record& r = m_records[magnitude(bytes)];
    double& known = r.nanoseconds[taken];
    const double now = static_cast<double>(nanoseconds);
    const bool worse = known > 0 && now > 1.5 * known;
    r.slower = worse ? r.slower + 1 : 0;
    known = known == 0 || now < known ? now : known + (now - known) / 8;
    if (r.slower >= 4) r = {};  // the machine has changed: learn again
  }

 private:
  static constexpr std::uint32_t trials = 3, recheck = 64;
  struct record {
    std::uint32_t calls = 0;
    std::uint32_t slower = 0;  ///< calls in a row that took much longer than known
    double nanoseconds[2] = {};
  };
  static way other(way w) noexcept { return w == staged ? pulled : staged; }
  static std::size_t magnitude(std::size_t bytes) noexcept { return static_cast<std::size_t>(std::bit_width(bytes)); }

  record m_records[65];
};

}  // namespace toroid::detail
