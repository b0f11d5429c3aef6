// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <toroid/core/version.hpp>

#include <nlohmann/json.hpp>

#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
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

using nlohmann::ordered_json;

/// One line as columns in their order: both formats for programs print these.
ordered_json columns(const settings& s, const line& l, const figure& f, std::string_view place) {
  const auto rounded = [](double value) { return std::round(value * 1e3) / 1e3; };
  return {
      {"collective", word(s.collective)},
      {"launch", word(s.launch)},
      {"ranks", s.ranks},
      {"transport", word(s.transport)},
      {"memory", word(s.memory)},
      {"algorithm", word(s.algorithm)},
      {"segment_bytes", s.segment_bytes ? ordered_json(*s.segment_bytes) : ordered_json()},
      {"type", s.has_data() ? word(s.element) : "none"},
      {"redop", s.reduces() ? word(s.reduction) : "none"},
      {"root", s.collective == collective::broadcast ? s.root : -1},
      {"place", place},
      {"bytes", l.bytes},
      {"count", l.count},
      {"time_us", rounded(f.time)},
      {"min_us", rounded(f.least)},
      {"p50_us", rounded(f.p50)},
      {"p99_us", rounded(f.p99)},
      {"skew_us", rounded(f.skew)},
      {"algbw_gbs", rounded(f.algorithm_bandwidth)},
      {"busbw_gbs", rounded(f.bus_bandwidth)},
      {"wrong", f.wrong},
      {"barrier_ns", std::llround(l.barrier_ns)},
      {"placement", l.placement},
      {"iterations", l.iterations},
      {"repeat", s.repeat},
  };
}

std::string csv_text(const ordered_json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.3f}", value.get<double>());
  return value.dump();
}

/// The processor's name for itself; null where the system does not tell.
ordered_json processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string text; std::getline(info, text);)
    if (const std::size_t colon = text.find(": "); colon != std::string::npos && text.rfind("model name", 0) == 0)
      return text.substr(colon + 2);
  return nullptr;
}

/// What the figures depend on and the other formats do not say. Not which machine it is.
ordered_json machine(const std::vector<int>& cores) {
  utsname system{};
  uname(&system);
  return {
      {"processor", processor()},
      {"architecture", system.machine},
      {"usable_cores", cores},
      {"memory_bytes", std::uint64_t(sysconf(_SC_PHYS_PAGES)) * std::uint64_t(sysconf(_SC_PAGESIZE))},
      {"kernel", fmt::format("{} {}", system.sysname, system.release)},
      {"compiler", __VERSION__},
  };
}

ordered_json described(const settings& s) {
  return {
      {"collective", word(s.collective)},
      {"launch", word(s.launch)},
      {"ranks", s.ranks},
      {"transport", word(s.transport)},
      {"memory", word(s.memory)},
      {"algorithm", word(s.algorithm)},
      {"segment_bytes", s.segment_bytes ? ordered_json(*s.segment_bytes) : ordered_json()},
      {"type", word(s.element)},
      {"redop", word(s.reduction)},
      {"root", s.root},
      {"sizes", s.sizes},
      {"in_place", s.in_place},
      {"out_of_place", s.out_of_place},
      {"iterations", s.iterations ? ordered_json(*s.iterations) : ordered_json()},
      {"repeat", s.repeat},
      {"pin", s.pin},
      {"check", word(s.checking)},
  };
}

/// Text from elsewhere may hold bytes that are no UTF-8.
std::string dumped(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

void output::header() const {
  switch (m_what.format) {
    case format::nccl:
      return nccl_header();
    case format::csv: {
      std::string names;
      const ordered_json all = columns(m_what, {}, {}, {});
      for (const auto& column : all.items()) names += (names.empty() ? "" : ",") + column.key();
      return fmt::print("{}\n", names);
    }
    case format::json:
      return json_header();
  }
}

void output::nccl_header() const {
  const settings& s = m_what;
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

/// Opens the document and its list of lines; footer() closes both, whatever happens in between.
void output::json_header() const {
  const std::string version = fmt::format("{}.{}.{}", TOROID_VERSION_MAJOR, TOROID_VERSION_MINOR, TOROID_VERSION_PATCH);
  fmt::print("{{\"toroid\": {},\n\"machine\": {},\n\"settings\": {},\n\"lines\": [", dumped(version),
             dumped(machine(m_cores)), dumped(described(m_what)));
}

void output::add(const line& result, meeting::totals& total) {
  clear_progress();
  const auto row = [&](const std::optional<figure>& f, std::string_view place) {
    if (!f) return;
    total.wrong += f->wrong;
    total.bus_bandwidth += f->bus_bandwidth;
    ++total.figures;
    if (m_what.format == format::nccl) return;
    const ordered_json all = columns(m_what, result, *f, place);
    if (m_what.format == format::json) {
      fmt::print("{}\n{}", m_rows++ == 0 ? "" : ",", dumped(all));
      return;
    }
    std::string texts;
    for (const auto& column : all.items()) texts += (texts.empty() ? "" : ",") + csv_text(column.value());
    fmt::print("{}\n", texts);
  };
  row(result.out_of_place, "out");
  row(result.in_place, "in");
  if (m_what.format == format::nccl) nccl_line(result);
  flush();
}

void output::nccl_line(const line& result) const {
  const settings& s = m_what;
  const std::string_view type = s.has_data() ? word(s.element) : "none";
  const std::string_view operation = s.reduces() ? word(s.reduction) : "none";
  const int root = s.collective == collective::broadcast ? s.root : -1;
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

void output::footer(const meeting::totals& total, const std::string& why_failed) const {
  const double bandwidth = total.figures == 0 ? 0.0 : total.bus_bandwidth / double(total.figures);
  clear_progress();
  if (m_what.format == format::json) {
    const ordered_json error = why_failed.empty() ? ordered_json() : ordered_json(why_failed);
    fmt::print("\n],\n\"wrong\": {},\n\"error\": {}}}\n", total.wrong, dumped(error));
  } else if (m_what.format == format::nccl && why_failed.empty()) {
    fmt::print("# Out of bounds values : {} {}\n", total.wrong, total.wrong == 0 ? "OK" : "FAILED");
    fmt::print("# Avg bus bandwidth    : {:.4f}\n", bandwidth);
  }
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
