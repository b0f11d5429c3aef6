// SPDX-License-Identifier: Apache-2.0
// What all-reduce costs on many ranks, by the model of toroid/schedule/cost.hpp: the tables and the curves of the
// documentation, which tools/costs.py puts there.
//
//     toroid-costs tables       times, and which schedule is the fastest from which size on, as Markdown
//     toroid-costs curves       time against size, as CSV
//     toroid-costs changes      from which size on another schedule is the fastest, as CSV
#include <toroid/schedule/compose.hpp>
#include <toroid/schedule/cost.hpp>
#include <toroid/schedule/halving_doubling.hpp>
#include <toroid/schedule/torus.hpp>
#include <toroid/schedule/tree.hpp>

#include <fmt/core.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace schedule = toroid::schedule;
using toroid::topology::grid;

/// Latency of a fast network, 25 GB/s a link and direction. No time to combine: it is the same for all that send as
/// much.
constexpr schedule::machine cluster{5e-6, 1 / 25e9, 0};
/// The gradient of ResNet-50 in float, and a small layer.
constexpr std::size_t shown_sizes[] = {102'228'128, 1'000'000, 10'000};
constexpr grid shown_grids[] = {{8, 8}, {16, 16}, {32, 32}, {16, 64}};
constexpr grid drawn_grids[] = {{8, 8}, {16, 16}, {32, 32}};
constexpr std::size_t least_bytes = 256, most_bytes = std::size_t{1} << 30;
constexpr int most_pieces = 4096;

constexpr const char* names[] = {"ring", "halving_doubling", "tree", "in_order_tree", "torus_2d"};
enum class wires { crossbar, torus };
constexpr wires all_wires[] = {wires::crossbar, wires::torus};

const char* name_of(wires w) { return w == wires::crossbar ? "switch" : "torus"; }

struct cut_cost {
  double seconds = 0;
  int pieces = 1;
};

/// With as many pieces as are best, of the powers of two, where pieces overlap.
template <class Schedule, class Wiring>
cut_cost best_cut(Schedule s, grid shape, std::size_t bytes, Wiring w) {
  const auto with = [&](int pieces) {
    return cut_cost{schedule::cost(s, shape.ranks(), bytes, cluster, w, pieces, shape.rows).seconds, pieces};
  };
  cut_cost best = with(1);
  if (!Schedule::pipelined) return best;
  // The time falls with the number of pieces up to the best one, and rises from there on.
  for (int pieces = 2; pieces <= most_pieces; pieces *= 2) {
    const cut_cost found = with(pieces);
    if (found.seconds >= best.seconds) break;
    best = found;
  }
  return best;
}

template <class Wiring>
cut_cost best_named(std::string_view name, grid shape, std::size_t bytes, Wiring w) {
  if (name == "ring") return best_cut(schedule::ring_all_reduce{}, shape, bytes, w);
  if (name == "halving_doubling") return best_cut(schedule::halving_doubling_all_reduce{}, shape, bytes, w);
  if (name == "tree") return best_cut(schedule::tree_all_reduce{}, shape, bytes, w);
  if (name == "in_order_tree") return best_cut(schedule::in_order_tree_all_reduce{}, shape, bytes, w);
  return best_cut(schedule::torus_2d_all_reduce{}, shape, bytes, w);
}

cut_cost best_of(std::string_view name, grid shape, std::size_t bytes, wires w) {
  return w == wires::crossbar ? best_named(name, shape, bytes, schedule::crossbar{})
                              : best_named(name, shape, bytes, schedule::torus_of_links{shape});
}

/// Where another schedule becomes the fastest.
struct change {
  std::size_t bytes = 0;
  const char* to = nullptr;
};

/// Which schedule is the fastest, from the shortest message to the longest: the first one from zero bytes on. What is
/// faster by less than one in a hundred does not count.
std::vector<change> changes_of(grid shape, wires w) {
  const auto seconds = [&](const char* name, std::size_t bytes) { return best_of(name, shape, bytes, w).seconds; };
  std::vector<change> found{{0, names[0]}};
  for (std::size_t bytes = least_bytes; bytes <= most_bytes; bytes *= 2) {
    const char* const now = found.back().to;
    const char* then = now;
    for (const char* name : names)
      if (seconds(name, bytes) < seconds(then, bytes)) then = name;
    if (seconds(then, bytes) > 0.99 * seconds(now, bytes)) continue;
    if (bytes == least_bytes) {
      found.back().to = then;
      continue;
    }
    std::size_t low = least_bytes, high = bytes;  // equal between these
    while (high - low > low / 128) {
      const std::size_t middle = low + (high - low) / 2;
      (seconds(then, middle) < seconds(now, middle) ? high : low) = middle;
    }
    found.push_back({high, then});
  }
  return found;
}

/// To some digits: "102.2 MB", "190 KB".
std::string size_text(std::size_t bytes, int digits) {
  double value = static_cast<double>(bytes), unit = 1;
  for (double step = 1; step <= value; step *= 10)
    if (const double digit = step * std::pow(10, 1 - digits); value < step * 10)
      value = std::round(value / digit) * digit;
  const char* name = "B";
  for (const char* next : {"KB", "MB", "GB"})
    if (value >= unit * 1000) unit *= 1000, name = next;
  return fmt::format("{:.4g} {}", value / unit, name);
}

std::string time_text(cut_cost c) {
  const double milliseconds = 1e3 * c.seconds;
  return fmt::format("{:.{}f}", milliseconds,
                     milliseconds < 1     ? 3
                     : milliseconds < 100 ? 2
                                          : 1) +
         (c.pieces > 1 ? fmt::format(" ({})", c.pieces) : "");
}

void print_times(wires w) {
  fmt::print("| S | ranks | `ring` | `halving_doubling` | `tree` | `tree`, in order | `torus_2d` |\n");
  fmt::print("|---|---|---|---|---|---|---|\n");
  for (const std::size_t bytes : shown_sizes) {
    for (const grid shape : shown_grids) {
      fmt::print("| {} | {} x {} |", size_text(bytes, 4), shape.rows, shape.columns);
      for (const char* name : names) fmt::print(" {} |", time_text(best_of(name, shape, bytes, w)));
      fmt::print("\n");
    }
  }
}

std::string ranges_of(grid shape, wires w) {
  std::string text;
  for (const change& c : changes_of(shape, w))
    text += c.bytes == 0 ? fmt::format("`{}`", c.to) : fmt::format(", from {} on `{}`", size_text(c.bytes, 2), c.to);
  return text;
}

void print_tables() {
  for (const wires w : all_wires) {
    fmt::print("<!-- times on a {} -->\n", name_of(w));
    print_times(w);
    fmt::print("<!-- end -->\n");
  }
  fmt::print("<!-- fastest -->\n| ranks | on a switch | on a torus of links |\n|---|---|---|\n");
  for (const grid shape : shown_grids)
    fmt::print("| {} x {} | {} | {} |\n", shape.rows, shape.columns, ranges_of(shape, wires::crossbar),
               ranges_of(shape, wires::torus));
  fmt::print("<!-- end -->\n");
}

void print_curves() {
  fmt::print("wiring,rows,columns,schedule,bytes,pieces,microseconds\n");
  for (const wires w : all_wires)
    for (const grid shape : drawn_grids)
      for (const char* name : names)
        for (std::size_t bytes = least_bytes; bytes <= most_bytes; bytes *= 2) {
          const cut_cost c = best_of(name, shape, bytes, w);
          fmt::print("{},{},{},{},{},{},{:.4g}\n", name_of(w), shape.rows, shape.columns, name, bytes, c.pieces,
                     1e6 * c.seconds);
        }
}

void print_changes() {
  fmt::print("wiring,rows,columns,schedule,bytes,text\n");
  for (const wires w : all_wires)
    for (const grid shape : drawn_grids)
      for (const change& c : changes_of(shape, w))
        fmt::print("{},{},{},{},{},{}\n", name_of(w), shape.rows, shape.columns, c.to, c.bytes, size_text(c.bytes, 2));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  if (what == "tables")
    print_tables();
  else if (what == "curves")
    print_curves();
  else if (what == "changes")
    print_changes();
  else
    return fmt::print(stderr, "usage: toroid-costs tables|curves|changes\n"), 2;
}
