// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rival.hpp"
#include "settings.hpp"
#include "timing.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// What is known about one form of a call at one size. Times in microseconds, bandwidths in GB/s (1e9 bytes).
struct figure {
  double time = 0;          ///< median over runs of the median over a run's calls
  double least = 0;         ///< over all calls
  double p50 = 0, p99 = 0;  ///< over all calls
  double skew = 0;          ///< median of latest minus earliest start
  double rank_average = 0;  ///< mean over ranks of a rank's mean over all calls, from its own start to its own end
  double rank_least = 0;    ///< the least of these means of ranks
  double rank_most = 0;     ///< the greatest
  double algorithm_bandwidth = 0;  ///< bytes / time
  double bus_bandwidth = 0;        ///< the above by bus_factor()
  std::uint64_t wrong = 0;         ///< elements, over ranks and calls
};

/// One form of a call, beside that of another library if one is timed in turn.
struct measured_form {
  figure own;
  std::optional<figure> vs;

  /// How many times faster than the other; 0 without one.
  double ratio() const { return vs && own.time > 0 ? vs->time / own.time : 0; }
};

struct line {
  std::size_t bytes = 0;
  std::size_t count = 0;
  int iterations = 0;
  std::optional<measured_form> out_of_place, in_place;
  double barrier_ns = 0;
  std::string placement;
};

/// What nccl-tests multiplies bytes / time by, so that the figure may be held against the speed of a link.
double bus_factor(const settings& what);

/// Prints lines as they come, on rank 0; what goes before and after them is printed where the ranks are launched.
/// Results go to stdout, progress to stderr where that is a terminal.
class output {
 public:
  /// @param vs  the library that is timed in turn, if any
  output(const settings& what, std::vector<int> cores, std::optional<library_name> vs = {})
      : m_what(what), m_cores(std::move(cores)), m_vs(std::move(vs)), m_begin(now_ns()) {}

  void header() const;
  void add(const line& result, meeting::totals& total);
  /// @param why_failed  what has ended the run early, if anything
  void footer(const meeting::totals& total, const std::string& why_failed = {}) const;
  void progress(std::size_t bytes, int run) const;
  void flush() const;

 private:
  void nccl_header() const;
  void nccl_line(const line& result) const;
  void osu_header() const;
  void osu_line(const line& result) const;
  void json_header() const;
  void clear_progress() const;

  const settings& m_what;
  std::vector<int> m_cores;
  std::optional<library_name> m_vs;
  std::int64_t m_begin;
  std::size_t m_rows = 0;  ///< printed so far
};

}  // namespace bench
