// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "settings.hpp"
#include "timing.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bench {

/// What is known about one form of a call at one size. Times in microseconds, bandwidths in GB/s (1e9 bytes).
struct figure {
  double time = 0;                 ///< median over runs of the median over a run's calls
  double least = 0;                ///< over all calls
  double p50 = 0, p99 = 0;         ///< over all calls
  double skew = 0;                 ///< median of latest minus earliest start
  double algorithm_bandwidth = 0;  ///< bytes / time
  double bus_bandwidth = 0;        ///< the above by bus_factor()
  std::uint64_t wrong = 0;         ///< elements, over ranks and calls
};

struct line {
  std::size_t bytes = 0;
  std::size_t count = 0;
  int iterations = 0;
  std::optional<figure> out_of_place, in_place;
  double barrier_ns = 0;
  std::string placement;
};

/// What nccl-tests multiplies bytes / time by, so that the figure may be held against the speed of a link.
double bus_factor(const settings& what);

/// Prints lines as they come, on rank 0; what goes before and after them is printed where the ranks are launched.
/// Results go to stdout, progress to stderr where that is a terminal.
class output {
 public:
  output(const settings& what, std::vector<int> cores) : m_what(what), m_cores(std::move(cores)), m_begin(now_ns()) {}

  void header() const;
  void add(const line& result, meeting::totals& total);
  /// @param why_failed  what has ended the run early, if anything
  void footer(const meeting::totals& total, const std::string& why_failed = {}) const;
  void progress(std::size_t bytes, int run) const;
  void flush() const;

 private:
  void nccl_header() const;
  void nccl_line(const line& result) const;
  void json_header() const;
  void clear_progress() const;

  const settings& m_what;
  std::vector<int> m_cores;
  std::int64_t m_begin;
  std::size_t m_rows = 0;  ///< printed so far
};

}  // namespace bench
