// SPDX-License-Identifier: Apache-2.0
// Draws, costs and proves the schedules of the library.
//
//     toroid-schedule torus_2d --rows 3 --columns 4 --format dot | dot -Tsvg -o torus.svg
//     toroid-schedule tree --ranks 6 --collective reduce --root 2
//     toroid-schedule halving_doubling --ranks 1024 --format cost --bytes 100000000
//     toroid-schedule all --ranks 12 --format facts
#include <toroid/schedule/compose.hpp>
#include <toroid/schedule/cost.hpp>
#include <toroid/schedule/draw.hpp>
#include <toroid/schedule/halving_doubling.hpp>
#include <toroid/schedule/torus.hpp>
#include <toroid/schedule/tree.hpp>
#include <toroid/schedule/verify.hpp>

#include <CLI/CLI.hpp>

#include <fmt/core.h>

#include <cstddef>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <type_traits>

namespace {

namespace schedule = toroid::schedule;
using schedule::collective_kind;

enum class format { text, dot, json, cost, proof, facts };

struct settings {
  std::string name;
  collective_kind kind = collective_kind::all_reduce;
  int ranks = 4, rows = 1, columns = 0, root = 0, pieces = 1;
  format how = format::text;
  std::size_t bytes = std::size_t{1} << 20;
  schedule::machine machine{5e-6, 1 / 25e9, 1 / 10e9};
};

const std::map<std::string, collective_kind> kinds{{"all_reduce", collective_kind::all_reduce},
                                                   {"reduce_scatter", collective_kind::reduce_scatter},
                                                   {"all_gather", collective_kind::all_gather},
                                                   {"broadcast", collective_kind::broadcast},
                                                   {"reduce", collective_kind::reduce}};
const std::map<std::string, format> formats{{"text", format::text}, {"dot", format::dot},     {"json", format::json},
                                            {"cost", format::cost}, {"proof", format::proof}, {"facts", format::facts}};

template <class Schedule>
std::string cost_of(Schedule s, const settings& set) {
  const auto line = [&](const char* wiring, const schedule::schedule_cost& c) {
    return fmt::format("{}: {:.3f} us, {} rounds, {} bytes sent and {} combined by the busiest rank\n", wiring,
                       1e6 * c.seconds, c.rounds, c.sent, c.reduced);
  };
  const auto on = [&](auto wiring) {
    return schedule::cost(s, set.ranks, set.bytes, set.machine, wiring, set.pieces, set.rows);
  };
  return line("crossbar", on(schedule::crossbar{})) + line("ring", on(schedule::ring_of_links{})) +
         line("torus", on(schedule::torus_of_links{{set.rows, set.columns}}));
}

/// Whether a schedule claims to combine in rank order.
template <class Schedule>
constexpr bool in_rank_order = Schedule::level == schedule::determinism::any_chunking;

template <class Schedule>
std::string proof_of(Schedule s, const settings& set) {
  schedule::verify_options options;
  options.rows = set.rows;
  options.in_rank_order = in_rank_order<Schedule>;
  // One-shot is staged where peers would read a vector that is being overwritten.
  options.direct_in_place = !std::is_same_v<Schedule, schedule::one_shot_all_reduce>;
  const schedule::verification found = schedule::verify(s, set.ranks, set.kind, set.root, options);
  std::string text = found.to_string() + "\n";
  for (std::size_t b = 0; b < found.expressions.size(); ++b)
    text += fmt::format("block {}: {}\n", b, found.expressions[b]);
  return text;
}

/// What it states of itself, as a line of JSON: `sent` is the share of the vector that its busiest rank sends.
template <class Schedule>
std::string facts_of(Schedule, const settings& set, const char* name, collective_kind kind) {
  constexpr const char* levels[] = {"same_on_all_ranks", "run_to_run", "any_chunking"};
  const schedule::problem p{0, set.ranks, set.root, set.rows};
  const bool combines = kind != collective_kind::all_gather && kind != collective_kind::broadcast;
  std::string collective;
  for (const auto& [word, value] : kinds)
    if (value == kind) collective = word;
  const schedule::share sent = Schedule::sent(p);
  return fmt::format(
      "{{\"schedule\": \"{}\", \"collective\": \"{}\", \"ranks\": {}, \"rows\": {}, \"steps\": {}, \"sent\": [{}, {}], "
      "\"operators\": \"{}\", \"determinism\": \"{}\", \"pipelined\": {}}}\n",
      name, collective, set.ranks, set.rows, Schedule::steps(p), sent.of, sent.parts,
      !combines                 ? "none"
      : in_rank_order<Schedule> ? "all"
                                : "commuting",
      levels[static_cast<int>(Schedule::level)], Schedule::pipelined);
}

/// What was asked for, if `set` asks for this schedule; of all, what they state.
template <class Schedule>
bool matches(std::optional<std::string>& out, const settings& set, const char* name, collective_kind kind, Schedule s) {
  if (set.name == "all") {
    if (set.rows == 1 || std::string(name) == "torus_2d") out = out.value_or("") + facts_of(s, set, name, kind);
    return false;
  }
  if (set.name != name || set.kind != kind) return false;
  switch (set.how) {
    case format::text:
      out = schedule::draw_text(s, set.ranks, set.root, set.rows);
      break;
    case format::dot:
      out = schedule::draw_dot(s, set.ranks, set.root, set.rows);
      break;
    case format::json:
      out = schedule::draw_json(s, set.ranks, set.root, set.rows);
      break;
    case format::cost:
      out = cost_of(s, set);
      break;
    case format::proof:
      out = proof_of(s, set);
      break;
    case format::facts:
      out = facts_of(s, set, name, kind);
      break;
  }
  return true;
}

std::optional<std::string> answer(const settings& set) {
  using enum collective_kind;
  std::optional<std::string> out;
  const auto is = [&](const char* name, collective_kind kind, auto s) { return matches(out, set, name, kind, s); };
  (void)(is("one_shot", all_reduce, schedule::one_shot_all_reduce{}) ||
         is("direct", all_reduce, schedule::direct_all_reduce{}) ||
         is("direct", reduce_scatter, schedule::direct_reduce_scatter{}) ||
         is("direct", all_gather, schedule::direct_all_gather{}) ||
         is("direct", broadcast, schedule::direct_broadcast{}) || is("ring", all_reduce, schedule::ring_all_reduce{}) ||
         is("ring", reduce_scatter, schedule::ring_reduce_scatter{}) ||
         is("ring", all_gather, schedule::ring_all_gather{}) || is("ring", broadcast, schedule::ring_broadcast{}) ||
         is("halving_doubling", all_reduce, schedule::halving_doubling_all_reduce{}) ||
         is("halving_doubling", reduce_scatter, schedule::halving_reduce_scatter{}) ||
         is("halving_doubling", all_gather, schedule::doubling_all_gather{}) ||
         is("tree", all_reduce, schedule::tree_all_reduce{}) || is("tree", reduce, schedule::tree_reduce{}) ||
         is("tree", broadcast, schedule::tree_broadcast{}) ||
         is("in_order_tree", all_reduce, schedule::in_order_tree_all_reduce{}) ||
         is("in_order_tree", reduce, schedule::in_order_tree_reduce{}) ||
         is("torus_2d", all_reduce, schedule::torus_2d_all_reduce{}));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  settings set;
  CLI::App app{"Draws a schedule as text, DOT or JSON, says what it costs, or proves it.", "toroid-schedule"};
  app.add_option("name", set.name,
                 "one_shot, direct, ring, halving_doubling, tree, in_order_tree or torus_2d; all: for --format facts")
      ->required();
  auto* const collective =
      app.add_option("--collective", set.kind,
                     "what for: all_reduce (default), reduce_scatter, all_gather, broadcast, reduce")
          ->transform(CLI::CheckedTransformer(kinds));
  auto* const ranks =
      app.add_option("--ranks", set.ranks, "number of ranks (default 4), in one row")->check(CLI::Range(1, 65536));
  auto* const rows =
      app.add_option("--rows", set.rows, "of the grid of ranks (default 1)")->check(CLI::Range(1, 65536));
  auto* const columns = app.add_option("--columns", set.columns, "of the grid of ranks; then --ranks is not needed")
                            ->check(CLI::Range(1, 65536));
  app.add_option("--root", set.root, "of a broadcast or a reduction (default 0)")->check(CLI::Range(0, 65535));
  app.add_option("--format", set.how, "text (default), dot, json, cost, proof or facts")
      ->transform(CLI::CheckedTransformer(formats));
  app.add_option("--bytes", set.bytes, "cost: of the vector (default 1 MiB)");
  app.add_option("--pieces", set.pieces, "cost: into which the vector is cut (default 1)")->check(CLI::PositiveNumber);
  app.add_option("--alpha", set.machine.alpha, "cost: seconds a message (default 5e-6)");
  app.add_option("--beta", set.machine.beta, "cost: seconds a byte on a link (default 4e-11)");
  app.add_option("--gamma", set.machine.gamma, "cost: seconds to combine a byte (default 1e-10)");
  CLI11_PARSE(app, argc, argv);

  const auto refuse = [](const std::string& why) {
    fmt::print(stderr, "toroid-schedule: {}\n", why);
    return 2;
  };
  if (columns->count() > 0) {
    const int all = set.columns <= 65536 / set.rows ? set.rows * set.columns : 0;
    if (all == 0) return refuse(fmt::format("{} rows of {} columns are more than 65536 ranks", set.rows, set.columns));
    if (ranks->count() > 0 && set.ranks != all)
      return refuse(fmt::format("{} rows of {} columns are not {} ranks", set.rows, set.columns, set.ranks));
    set.ranks = all;
  } else {
    if (set.ranks % set.rows != 0) return refuse(fmt::format("{} ranks do not form {} rows", set.ranks, set.rows));
    set.columns = set.ranks / set.rows;
  }
  if (set.name == "all" && (set.how != format::facts || collective->count() > 0))
    return refuse("all takes --format facts, and no --collective");
  if ((rows->count() > 0 || columns->count() > 0) && set.name != "torus_2d" && set.name != "all" && set.rows > 1)
    return refuse(fmt::format("{} knows no grid: it takes --ranks", set.name));
  if (set.root >= set.ranks) return refuse(fmt::format("--root {} is not one of {} ranks", set.root, set.ranks));
  const std::optional<std::string> out = answer(set);
  if (!out) return refuse(fmt::format("there is no schedule {} for that collective", set.name));
  fmt::print("{}", *out);
  return 0;
}
