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
    "{:>10} {:>10} {:>7}  {:>8} {:>9}";

std::string bandwidth(double value) { return fmt::format("{:.2f}", value); }
std::string microseconds(double value) {
  return value < 10     ? fmt::format("{:.3f}", value)
         : value < 1000 ? fmt::format("{:.1f}", value)
                        : fmt::format("{:.0f}", value);
}

using nlohmann::ordered_json;

/// One line as columns in their order: both formats for programs print these.
ordered_json columns(const settings& s, const line& l, const measured_form& form, std::string_view place,
                     const std::optional<library_name>& vs) {
  const auto rounded = [](double value) { return std::round(value * 1e3) / 1e3; };
  const figure& f = form.own;
  ordered_json all = {
      {"collective", word(s.collective)},
      {"launch", word(s.launch)},
      {"ranks", s.ranks},
      {"transport", word(s.transport)},
      {"memory", word(s.memory)},
      {"algorithm", word(s.algorithm)},
      {"segment_bytes", s.segment_bytes ? ordered_json(*s.segment_bytes) : ordered_json()},
      {"type", s.has_data() ? word(s.element) : "none"},
      {"redop", s.reduces() ? word(s.reduction) : "none"},
      {"root", s.has_root() ? s.root : -1},
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
  if (vs) {
    const figure other = form.vs.value_or(figure{});
    all["vs"] = vs->word;
    all["vs_time_us"] = rounded(other.time);
    all["vs_min_us"] = rounded(other.least);
    all["vs_p99_us"] = rounded(other.p99);
    all["vs_ratio"] = rounded(form.ratio());
    all["vs_wrong"] = other.wrong;
    all["vs_version"] = vs->version;
  }
  return all;
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

ordered_json described(const settings& s, const std::optional<library_name>& vs) {
  ordered_json all = {
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
  if (vs) all["vs"] = {{"library", vs->word}, {"version", vs->version}};
  return all;
}

std::string nccl_vs_cells(const std::optional<measured_form>& form) {
  if (!form || !form->vs) return fmt::format("  {:>10} {:>7} {:>6}", "N/A", "N/A", "N/A");
  return fmt::format("  {:>10} {:>7.2f} {:>6}", microseconds(form->vs->time), form->ratio(), form->vs->wrong);
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
    case format::osu:
      return osu_header();
    case format::csv: {
      std::string names;
      const ordered_json all = columns(m_what, {}, {}, {}, m_vs);
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
  fmt::print("\n# {} usable cores{}; time: median of {} runs' medians; p50, p99: over all calls\n", m_cores.size(),
             s.pin ? ", ranks pinned to them in turn" : ", ranks not pinned", s.repeat);
  if (m_vs) fmt::print("# in turn with {}; ratio: how many times faster toroid is\n", m_vs->version);
  fmt::print("#\n#{:>62}  {:<33} {:<33} {:<29}  {:<29}", "", "out-of-place", "in-place", "out-of-place", "in-place");
  const std::string vs_head = m_vs ? fmt::format("  {:>10} {:>7} {:>6}  {:>10} {:>7} {:>6}", m_vs->word, "ratio",
                                                 "#wrong", m_vs->word, "ratio", "#wrong")
                                   : "";
  if (m_vs) fmt::print("  {:>18}  {:<25} {:<25}", "", "out-of-place", "in-place");
  fmt::print("\n");
  fmt::print("#{}{}\n",
             fmt::format(fmt::runtime(nccl_head), "size", "count", "type", "redop", "root", "time", "algbw", "busbw",
                         "#wrong", "time", "algbw", "busbw", "#wrong", "p50", "p99", "skew", "p50", "p99", "skew",
                         "barrier", "placement"),
             vs_head);
  fmt::print("#{}\n",
             fmt::format(fmt::runtime(nccl_head), "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "",
                         "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(us)", "(us)", "(us)", "(us)", "(us)", "(ns)", ""));
}

/// Opens the document and its list of lines; footer() closes both, whatever happens in between.
void output::json_header() const {
  const std::string version = fmt::format("{}.{}.{}", TOROID_VERSION_MAJOR, TOROID_VERSION_MINOR, TOROID_VERSION_PATCH);
  fmt::print("{{\"toroid\": {},\n\"machine\": {},\n\"settings\": {},\n\"lines\": [", dumped(version),
             dumped(machine(m_cores)), dumped(described(m_what, m_vs)));
}

void output::add(const line& result, meeting::totals& total) {
  clear_progress();
  const auto row = [&](const std::optional<measured_form>& form, std::string_view place) {
    if (!form) return;
    total.wrong += form->own.wrong;
    total.bus_bandwidth += form->own.bus_bandwidth;
    ++total.figures;
    if (form->vs) {
      total.vs_wrong += form->vs->wrong;
      total.vs_logarithms += form->ratio() > 0 ? std::log(form->ratio()) : 0;
      ++total.vs_figures;
    }
    if (m_what.format == format::nccl || m_what.format == format::osu) return;
    const ordered_json all = columns(m_what, result, *form, place, m_vs);
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
  if (m_what.format == format::osu) osu_line(result);
  flush();
}

void output::nccl_line(const line& result) const {
  const settings& s = m_what;
  const std::string_view type = s.has_data() ? word(s.element) : "none";
  const std::string_view operation = s.reduces() ? word(s.reduction) : "none";
  const int root = s.has_root() ? s.root : -1;
  const figure none;
  const auto shown = [](const std::optional<measured_form>& f, std::string text) {
    return f ? text : std::string("N/A");
  };
  const figure& out = result.out_of_place ? result.out_of_place->own : none;
  const figure& in = result.in_place ? result.in_place->own : none;
  const auto& has_out = result.out_of_place;
  const auto& has_in = result.in_place;
  const std::string vs = m_vs ? nccl_vs_cells(result.out_of_place) + nccl_vs_cells(result.in_place) : "";
  fmt::print(" {}{}\n",
             fmt::format(fmt::runtime(nccl_head), result.bytes, result.count, type, operation, root,
                         shown(has_out, microseconds(out.time)), shown(has_out, bandwidth(out.algorithm_bandwidth)),
                         shown(has_out, bandwidth(out.bus_bandwidth)), shown(has_out, std::to_string(out.wrong)),
                         shown(has_in, microseconds(in.time)), shown(has_in, bandwidth(in.algorithm_bandwidth)),
                         shown(has_in, bandwidth(in.bus_bandwidth)), shown(has_in, std::to_string(in.wrong)),
                         shown(has_out, microseconds(out.p50)), shown(has_out, microseconds(out.p99)),
                         shown(has_out, microseconds(out.skew)), shown(has_in, microseconds(in.p50)),
                         shown(has_in, microseconds(in.p99)), shown(has_in, microseconds(in.skew)),
                         fmt::format("{:.0f}", result.barrier_ns), result.placement),
             vs);
}

void output::footer(const meeting::totals& total, const std::string& why_failed) const {
  const double bandwidth = total.figures == 0 ? 0.0 : total.bus_bandwidth / double(total.figures);
  clear_progress();
  if (m_what.format == format::json) {
    const ordered_json error = why_failed.empty() ? ordered_json() : ordered_json(why_failed);
    const std::string vs = m_vs ? fmt::format("\"vs_wrong\": {},\n", total.vs_wrong) : "";
    fmt::print("\n],\n\"wrong\": {},\n{}\"error\": {}}}\n", total.wrong, vs, dumped(error));
  } else if (m_what.format == format::nccl && why_failed.empty()) {
    fmt::print("# Out of bounds values : {} {}\n", total.wrong, total.wrong == 0 ? "OK" : "FAILED");
    fmt::print("# Avg bus bandwidth    : {:.4f}\n", bandwidth);
    if (m_vs) {
      const double mean = total.vs_figures == 0 ? 0.0 : std::exp(total.vs_logarithms / double(total.vs_figures));
      fmt::print("# Wrong values of {:<5}: {} {}\n", m_vs->word, total.vs_wrong, total.vs_wrong == 0 ? "OK" : "FAILED");
      fmt::print("# Geometric mean ratio : {:.2f}\n", mean);
    }
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
