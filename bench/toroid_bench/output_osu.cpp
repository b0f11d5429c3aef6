// SPDX-License-Identifier: Apache-2.0
// The columns of the OSU micro-benchmarks, so that what reads those reads these.
#include "output.hpp"

#include <toroid/core/version.hpp>

#include <fmt/core.h>

#include <string>

namespace bench {
namespace {

// Their widths; one decimal more than theirs, since a call may take a tenth of a microsecond.
std::string latency(double microseconds) { return fmt::format("{:>18.3f}", microseconds); }

}  // namespace

void output::osu_header() const {
  const settings& s = m_what;
  fmt::print("# toroid-bench {}.{}.{}: {}, {} ranks, in the columns of the OSU micro-benchmarks\n",
             TOROID_VERSION_MAJOR, TOROID_VERSION_MINOR, TOROID_VERSION_PATCH, word(s.collective), s.ranks);
  if (m_vs) fmt::print("# in turn with {}\n", m_vs->version);
  fmt::print("{}{:>18}", s.has_data() ? "# Size    " : "# ", "Avg Latency(us)");
  if (s.full) fmt::print("{:>18}{:>18}{:>12}", "Min Latency(us)", "Max Latency(us)", "Iterations");
  if (m_vs) fmt::print("{:>18}{:>12}", m_vs->word + " Avg(us)", "Ratio");
  fmt::print("\n");
}

void output::osu_line(const line& result) const {
  const settings& s = m_what;
  const measured_form& form = result.out_of_place ? *result.out_of_place : *result.in_place;
  const std::size_t size = s.osu_counts_blocks() ? result.bytes / std::size_t(s.ranks) : result.bytes;
  fmt::print("{:<10}{}", s.has_data() ? std::to_string(size) : "", latency(form.own.rank_average));
  if (s.full)
    fmt::print("{}{}{:>12}", latency(form.own.rank_least), latency(form.own.rank_most), result.iterations * s.repeat);
  if (form.vs)
    fmt::print("{}{:>12.2f}", latency(form.vs->rank_average),
               form.own.rank_average > 0 ? form.vs->rank_average / form.own.rank_average : 0);
  fmt::print("\n");
}

}  // namespace bench
