// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <toroid/core/version.hpp>

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

namespace bench {
namespace {

constexpr std::string_view nccl_head =
    "{:>12} {:>12} {:>8} {:>11} {:>5}  {:>10} {:>7} {:>7} {:>6}  {:>10} {:>7} {:>7} {:>6}  {:>10} {:>10} {:>7}  "
    "{:>10} {:>10} {:>7}  {:>8} {:>9}\n";

std::string bandwidth(double value) { return fmt::format("{:.2f}", value); }
std::string microseconds(double value) {
  return value < 10     ? fmt::format("{:.3f}", value)
         : value < 1000 ? fmt::format("{:.1f}", value)
                        : fmt::format("{:.0f}", value);
}

}  // namespace

void output::header() const {
  const settings& s = m_what;
  if (s.format == format::csv) {
    fmt::print(
        "collective,launch,ranks,transport,memory,algorithm,segment_bytes,type,redop,root,place,bytes,count,"
        "time_us,min_us,p50_us,p99_us,skew_us,algbw_gbs,busbw_gbs,wrong,barrier_ns,placement,iterations,repeat\n");
    return;
  }
  fmt::print("# toroid-bench {}.{}.{}: {}, launch {}, ranks {}, transport {}", TOROID_VERSION_MAJOR,
             TOROID_VERSION_MINOR, TOROID_VERSION_PATCH, word(s.collective), word(s.launch), s.ranks,
             word(s.transport));
  if (s.has_data()) fmt::print(", memory {}, algorithm {}", word(s.memory), word(s.algorithm));
  if (s.segment_bytes) fmt::print(", segments of {} B", *s.segment_bytes);
  fmt::print("\n# {} usable cores{}; time: median of {} runs' medians; p50, p99: over all calls\n#\n", m_cores.size(),
             s.pin ? ", ranks pinned to them in turn" : ", ranks not pinned", s.repeat);
  fmt::print("#{:>62}  {:<33} {:<33} {:<29}  {:<29}\n", "", "out-of-place", "in-place", "out-of-place", "in-place");
  fmt::print("#{}", fmt::format(fmt::runtime(nccl_head), "size", "count", "type", "redop", "root", "time", "algbw",
                                "busbw", "#wrong", "time", "algbw", "busbw", "#wrong", "p50", "p99", "skew", "p50",
                                "p99", "skew", "barrier", "placement"));
  fmt::print("#{}",
             fmt::format(fmt::runtime(nccl_head), "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "",
                         "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(us)", "(us)", "(us)", "(us)", "(us)", "(ns)", ""));
}

void output::add(const line& result, meeting::totals& total) const {
  const settings& s = m_what;
  clear_progress();
  const std::string_view type = s.has_data() ? word(s.element) : "none";
  const std::string_view operation = s.reduces() ? word(s.reduction) : "none";
  const int root = s.collective == collective::broadcast ? s.root : -1;

  const auto count = [&](const std::optional<figure>& f) {
    if (!f) return;
    total.wrong += f->wrong;
    total.bus_bandwidth += f->bus_bandwidth;
    ++total.figures;
  };
  count(result.out_of_place);
  count(result.in_place);

  if (s.format == format::csv) {
    const auto row = [&](const std::optional<figure>& f, std::string_view place) {
      if (!f) return;
      fmt::print(
          "{},{},{},{},{},{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{},{:.0f},{},{},{}"
          "\n",
          word(s.collective), word(s.launch), s.ranks, word(s.transport), word(s.memory), word(s.algorithm),
          s.segment_bytes ? fmt::format("{}", *s.segment_bytes) : "", type, operation, root, place, result.bytes,
          result.count, f->time, f->least, f->p50, f->p99, f->skew, f->algorithm_bandwidth, f->bus_bandwidth, f->wrong,
          result.barrier_ns, result.placement, result.iterations, s.repeat);
    };
    row(result.out_of_place, "out");
    row(result.in_place, "in");
  } else {
    const figure none;
    const auto shown = [](const std::optional<figure>& f, std::string text) { return f ? text : std::string("N/A"); };
    const figure& out = result.out_of_place ? *result.out_of_place : none;
    const figure& in = result.in_place ? *result.in_place : none;
    const auto& has_out = result.out_of_place;
    const auto& has_in = result.in_place;
    fmt::print(" {}",
               fmt::format(fmt::runtime(nccl_head), result.bytes, result.count, type, operation, root,
                           shown(has_out, microseconds(out.time)), shown(has_out, bandwidth(out.algorithm_bandwidth)),
                           shown(has_out, bandwidth(out.bus_bandwidth)), shown(has_out, std::to_string(out.wrong)),
                           shown(has_in, microseconds(in.time)), shown(has_in, bandwidth(in.algorithm_bandwidth)),
                           shown(has_in, bandwidth(in.bus_bandwidth)), shown(has_in, std::to_string(in.wrong)),
                           shown(has_out, microseconds(out.p50)), shown(has_out, microseconds(out.p99)),
                           shown(has_out, microseconds(out.skew)), shown(has_in, microseconds(in.p50)),
                           shown(has_in, microseconds(in.p99)), shown(has_in, microseconds(in.skew)),
                           fmt::format("{:.0f}", result.barrier_ns), result.placement));
  }
  flush();
}

void output::footer(const meeting::totals& total) const {
  if (m_what.format == format::csv) return;
  fmt::print("# Out of bounds values : {} {}\n", total.wrong, total.wrong == 0 ? "OK" : "FAILED");
  fmt::print("# Avg bus bandwidth    : {:.4f}\n",
             total.figures == 0 ? 0.0 : total.bus_bandwidth / double(total.figures));
  flush();
}

void output::progress(std::size_t bytes, int run) const {
  constexpr std::int64_t quiet_ns = 2'000'000'000;
  if (isatty(STDERR_FILENO) == 0 || now_ns() - m_begin < quiet_ns) return;
  fmt::print(stderr, "\r\033[K{}: {} B of up to {} B, run {} of {}", word(m_what.collective), bytes,
             m_what.sizes.back(), run + 1, m_what.repeat);
  std::fflush(stderr);
}

void output::clear_progress() const {
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
}

void output::flush() const { std::fflush(stdout); }

}  // namespace bench
