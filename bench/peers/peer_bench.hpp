// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "toroid_bench/pattern.hpp"
#include "toroid_bench/timing.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

/// What the benchmarks of other libraries share: their options, the timed loop and the columns. The rule is that of
/// toroid_bench/timing.hpp, the columns are those of toroid-bench --format csv.
namespace bench {

/// An all-reduce of `float` with sum, asked of another library.
struct peer_settings {
  std::vector<std::size_t> sizes;  ///< bytes, ascending
  std::optional<int> iterations;   ///< calls of a run; by size unless given
  int repeat = 5;                  ///< runs of a line
  bool in_place = true;
  bool out_of_place = true;
};

/// The options of peer_settings, by the names that toroid-bench has for them.
class peer_options {
 public:
  peer_options(CLI::App& app, peer_settings& what) : m_what(what) {
    app.add_option("--min-bytes", m_low, "smallest size of the buffer")
        ->transform(CLI::AsSizeValue(false))
        ->capture_default_str();
    app.add_option("--max-bytes", m_high, "largest size")->transform(CLI::AsSizeValue(false))->capture_default_str();
    app.add_option("--factor", m_factor, "from one size to the next")
        ->check(CLI::Range(std::uint64_t{2}, std::uint64_t{1} << 40))
        ->capture_default_str();
    app.add_option("--also", m_also, "one more size; may be repeated")->transform(CLI::AsSizeValue(false));
    app.add_option("--iterations", what.iterations, "calls of a run; by default as many as suit the size")
        ->check(CLI::Range(1, 1'000'000));
    app.add_option("--repeat", what.repeat, "runs of a line; its figure is the median of their medians")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    CLI::Option* const in_place = app.add_flag("--in-place", m_only_in_place, "only in place; by default both");
    app.add_flag("--out-of-place", m_only_out_of_place, "only out of place; by default both")->excludes(in_place);
  }

  /// To be called after parsing. @throws CLI::ValidationError
  void complete() {
    if (m_low > m_high) throw CLI::ValidationError("--min-bytes", std::to_string(m_low) + " is more than --max-bytes");
    const std::vector<std::size_t> also(m_also.begin(), m_also.end());
    m_what.sizes = sizes_between(m_low, m_high, m_factor, also);
    for (const std::size_t bytes : m_what.sizes)
      if (bytes == 0 || bytes % sizeof(float) != 0)
        throw CLI::ValidationError(std::to_string(bytes) + " B is not a whole number of floats, at least one");
    m_what.in_place = !m_only_out_of_place;
    m_what.out_of_place = !m_only_in_place;
  }

 private:
  peer_settings& m_what;
  std::uint64_t m_low = sizeof(float), m_high = std::uint64_t{64} << 20, m_factor = 4;
  std::vector<std::uint64_t> m_also;
  bool m_only_in_place = false, m_only_out_of_place = false;
};

/// What the columns say of the library.
struct peer_name {
  std::string transport;  ///< the library
  std::string algorithm;  ///< or the label of its settings
  std::string version;
};

/// Commas and line ends would end a column.
inline std::string as_column(std::string text) {
  text = text.substr(0, text.find_first_of("\r\n"));
  std::replace(text.begin(), text.end(), ',', ';');
  return text;
}

/// One rank's part of the benchmark.
///
/// @tparam Peer  has bind(in, out, count), collective and not timed, where in == out means in place, and call()
template <class Peer>
class peer_rank {
 public:
  peer_rank(Peer& peer, const peer_settings& what, meeting& place, int rank)
      : m_peer(peer),
        m_what(what),
        m_place(place),
        m_rank(rank),
        m_self(place, rank),
        m_given(given_by(rank)),
        m_wanted(wanted_of(place.ranks())),
        m_in(what.sizes.back()),
        m_out(what.out_of_place ? what.sizes.back() : sizeof(float)) {}

  /// Times and prints all sizes; rank 0 prints. place.total().wrong counts wrong elements.
  void measure(const peer_name& name) {
    if (first()) {
      std::printf(
          "collective,launch,ranks,transport,memory,algorithm,segment_bytes,type,redop,root,place,bytes,count,"
          "time_us,min_us,p50_us,p99_us,skew_us,algbw_gbs,busbw_gbs,wrong,barrier_ns,placement,iterations,repeat,"
          "version\n");
      std::fflush(stdout);
    }
    for (const std::size_t bytes : m_what.sizes) measure(name, bytes);
  }

 private:
  /// What the runs of one line have shown so far, on rank 0.
  struct samples {
    std::vector<double> medians, times, skews;
    std::uint64_t wrong = 0;
  };

  void measure(const peer_name& name, std::size_t bytes) {
    const int iterations = m_what.iterations.value_or(iterations_for(bytes, m_place.crowded()));
    samples out_of_place, in_place;
    std::vector<double> probes{m_self.probe()};
    for (int run = 0; run < m_what.repeat; ++run) {
      if (m_what.out_of_place) {
        measure_run(m_out.data(), bytes, iterations, out_of_place);
        probes.push_back(m_self.probe());
      }
      if (m_what.in_place) {
        measure_run(m_in.data(), bytes, iterations, in_place);
        probes.push_back(m_self.probe());
      }
    }
    if (!first()) return;
    if (m_what.out_of_place) print(name, "out", bytes, iterations, out_of_place, probes);
    if (m_what.in_place) print(name, "in", bytes, iterations, in_place, probes);
  }

  void measure_run(std::byte* out, std::size_t bytes, int iterations, samples& to) {
    std::byte* const in = m_in.data();
    const std::size_t count = bytes / sizeof(float);
    m_peer.bind(reinterpret_cast<float*>(in), reinterpret_cast<float*>(out), count);
    std::vector<double> times;
    for (int i = 0; i <= iterations; ++i, ++m_call) {
      m_given.fill(in, 0, count, m_call);
      m_self.barrier();
      m_self.barrier();
      m_self.stamp_start();
      m_peer.call();
      m_self.stamp_end();
      m_self.barrier();
      if (first() && i > 0) {
        const call_times took = times_of(m_place);
        times.push_back(took.time);
        to.skews.push_back(took.skew);
      }
      m_place.line(m_rank).wrong =
          m_wanted.wrong(out, 0, count, m_call) + (out == in ? 0 : m_given.wrong(in, 0, count, m_call));
      m_self.barrier();
      if (first())
        for (int r = 0; r < m_place.ranks(); ++r) to.wrong += m_place.line(r).wrong;
    }
    if (!first()) return;
    to.medians.push_back(median(times));
    to.times.insert(to.times.end(), times.begin(), times.end());
  }

  void print(const peer_name& name, const char* place, std::size_t bytes, int iterations, const samples& from,
             const std::vector<double>& probes) const {
    const double p = m_place.ranks();
    const double time = median(from.medians);
    const double bandwidth = time > 0 ? double(bytes) / time / 1e3 : 0;
    std::printf(
        "all_reduce,processes,%d,%s,private,%s,,float,sum,-1,%s,%zu,%zu,"
        "%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%llu,%.0f,%s,%d,%d,%s\n",
        m_place.ranks(), as_column(name.transport).c_str(), as_column(name.algorithm).c_str(), place, bytes,
        bytes / sizeof(float), time, *std::min_element(from.times.begin(), from.times.end()),
        percentile(from.times, 0.50), percentile(from.times, 0.99), median(from.skews), bandwidth,
        bandwidth * 2 * (p - 1) / p, static_cast<unsigned long long>(from.wrong), median(probes),
        std::string(placement_of(probes, m_place.crowded())).c_str(), iterations, m_what.repeat,
        as_column(name.version).c_str());
    std::fflush(stdout);
    m_place.total().wrong += from.wrong;
  }

  // Small whole numbers: their sum is exact in any order.
  static pattern given_by(int rank) {
    return pattern::of<float>([&](std::size_t phase) { return float(phase) + float(rank); });
  }
  static pattern wanted_of(int ranks) {
    return pattern::of<float>(
        [&](std::size_t phase) { return float(ranks) * float(phase) + float(ranks * (ranks - 1) / 2); });
  }
  bool first() const { return m_rank == 0; }

  Peer& m_peer;
  const peer_settings& m_what;
  meeting& m_place;
  int m_rank;
  member m_self;
  pattern m_given, m_wanted;
  page_buffer m_in, m_out;
  std::size_t m_call = 0;
};

}  // namespace bench
