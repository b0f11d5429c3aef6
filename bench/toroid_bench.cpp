// SPDX-License-Identifier: Apache-2.0
// toroid-bench: times a collective over sizes and checks every element of every result. See README.md.
#include "toroid_bench/launcher_environment.hpp"
#include "toroid_bench/mpi_launcher.hpp"
#include "toroid_bench/settings.hpp"
#include "toroid_bench/timing.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace bench;

/// What was typed, before it is known whether it makes sense.
struct arguments {
  settings what;
  std::optional<int> ranks;
  std::optional<launch> given_launch;
  std::optional<transport> given_transport;
  std::optional<checking> given_checking;
  std::optional<std::uint64_t> low;
  std::uint64_t high = std::uint64_t{64} << 20;
  std::uint64_t factor = 4;
  std::vector<std::uint64_t> also;
  std::optional<std::uint64_t> segment_bytes;
  bool only_in_place = false;
  bool only_out_of_place = false;
};

/// An option whose value is one of the words of an enumeration.
template <class E, class Set>
CLI::Option* add_words(CLI::App& app, const std::string& name, const std::string& help, Set set,
                       std::optional<E> preset = {}) {
  std::vector<std::string> choices(words<E>.begin(), words<E>.end());
  CLI::Option* const option = app.add_option_function<std::string>(
      name,
      [choices, set](const std::string& text) {
        const auto found = std::find(choices.begin(), choices.end(), text);
        set(static_cast<E>(found - choices.begin()));
      },
      help);
  option->check(CLI::IsMember(choices))->type_name("");
  if (preset) option->default_str(std::string(word(*preset)));
  return option;
}

CLI::App& add_collective(CLI::App& app, collective kind, const std::string& help, arguments& a) {
  CLI::App& sub = *app.add_subcommand(std::string(word(kind)), help);
  sub.callback([&a, kind] { a.what.collective = kind; });
  settings& s = a.what;
  const auto group = [](CLI::Option* option, const char* name) { option->group(name); };

  group(add_words<launch>(sub, "--launch", "what a rank is; by default what --transport needs, else threads",
                          [&a](launch value) { a.given_launch = value; }),
        "Ranks");
  group(add_words<transport>(sub, "--transport", "how ranks meet; by default what --launch needs",
                             [&a](transport value) { a.given_transport = value; }),
        "Ranks");
  group(sub.add_option("--ranks", a.ranks, "number of ranks; by default 2, of --launch mpi what mpiexec has started")
            ->check(CLI::Range(1, 4096)),
        "Ranks");
  group(sub.add_flag("--pin,!--no-pin", s.pin, "pin ranks to cores in turn (default)"), "Ranks");
  group(add_words<checking>(sub, "--check",
                            "what the library verifies in every call; by default calls, of --transport mpi none",
                            [&a](checking value) { a.given_checking = value; }),
        "Ranks");

  group(sub.add_option("--iterations", s.iterations, "calls of a run; by default as many as suit the size")
            ->check(CLI::Range(1, 1'000'000)),
        "Measuring");
  group(sub.add_option("--repeat", s.repeat, "runs of a line; its figure is the median of their medians")
            ->check(CLI::Range(1, 1000))
            ->capture_default_str(),
        "Measuring");
  group(add_words<format>(
            sub, "--format", "columns of nccl-tests or of the OSU micro-benchmarks, comma-separated values, or JSON",
            [&s](format value) { s.format = value; }, s.format),
        "Measuring");
  group(sub.add_flag("--full", s.full, "all columns of --format osu"), "Measuring");
  group(add_words<opponent>(sub, "--vs", "whose collective to time in turn: MPI's own, which implies --launch mpi",
                            [&s](opponent value) { s.vs = value; }),
        "Measuring");
  if (kind == collective::barrier) return sub;

  group(sub.add_option("--min-bytes", a.low, "smallest size of the whole buffer; by default 4, or one element")
            ->transform(CLI::AsSizeValue(false)),
        "Sizes (suffixes K, M, G)");
  group(
      sub.add_option("--max-bytes", a.high, "largest size")->transform(CLI::AsSizeValue(false))->capture_default_str(),
      "Sizes (suffixes K, M, G)");
  group(sub.add_option("--factor", a.factor, "from one size to the next")
            ->check(CLI::Range(std::uint64_t{2}, std::uint64_t{1} << 40))
            ->capture_default_str(),
        "Sizes (suffixes K, M, G)");
  group(sub.add_option("--also", a.also, "one more size; may be repeated")->transform(CLI::AsSizeValue(false)),
        "Sizes (suffixes K, M, G)");

  group(add_words<memory>(
            sub, "--memory", "ordinary memory, or memory from toroid::allocate, which peers can reach",
            [&s](memory value) { s.memory = value; }, s.memory),
        "Call");
  group(add_words<algorithm>(
            sub, "--algorithm", "how it is done", [&s](algorithm value) { s.algorithm = value; }, s.algorithm),
        "Call");
  group(sub.add_option("--segment-bytes", a.segment_bytes, "segments of every --algorithm but automatic")
            ->transform(CLI::AsSizeValue(false)),
        "Call");
  if (kind == collective::all_reduce) {
    group(sub.add_option("--rows", s.rows, "of the grid of --algorithm torus_2d; by default nearest to a square")
              ->check(CLI::Range(1, 4096)),
          "Call");
    group(sub.add_option("--columns", s.columns, "likewise")->check(CLI::Range(1, 4096)), "Call");
  }
  group(add_words<element>(
            sub, "--type", "type of an element", [&s](element value) { s.element = value; }, s.element),
        "Call");
  if (kind == collective::all_reduce || kind == collective::reduce_scatter)
    group(add_words<reduction>(
              sub, "--op", "operator", [&s](reduction value) { s.reduction = value; }, s.reduction),
          "Call");
  if (kind == collective::broadcast)
    group(sub.add_option("--root", s.root, "whose data is sent to all")->capture_default_str(), "Call");
  if (kind == collective::all_reduce || kind == collective::all_gather) {
    CLI::Option* const in_place = sub.add_flag("--in-place", a.only_in_place, "only in place; by default both");
    CLI::Option* const out = sub.add_flag("--out-of-place", a.only_out_of_place, "only out of place; by default both");
    in_place->excludes(out);
    group(in_place, "Call");
    group(out, "Call");
  }
  return sub;
}

/// What a rank is, given or implied.
launch launch_of(const arguments& a) {
  if (a.given_launch) return *a.given_launch;
  if (a.what.vs || a.given_transport == transport::mpi) return launch::mpi;
  return a.given_transport == transport::shm ? launch::processes : launch::threads;
}

/// Fills in what was left out. Contradictions are left to refusal().
///
/// @param world  ranks that mpiexec has started, if one has
void complete(arguments& a, std::optional<int> world) {
  settings& s = a.what;
  s.launch = launch_of(a);
  s.transport = a.given_transport.value_or(s.launch == launch::threads ? transport::threads : transport::shm);
  s.checking = a.given_checking.value_or(s.transport == transport::mpi ? checking::none : checking::calls);
  if (world && a.ranks && *a.ranks != *world)
    throw CLI::ValidationError("--ranks",
                               std::to_string(*a.ranks) + ", but mpiexec has started " + std::to_string(*world));
  s.ranks = world ? *world : a.ranks.value_or(2);
  if (a.segment_bytes) s.segment_bytes = *a.segment_bytes;
  switch (s.collective) {
    case collective::all_reduce:
    case collective::all_gather:
      s.in_place = !a.only_out_of_place;
      s.out_of_place = !a.only_in_place;
      if (s.format == format::osu && !a.only_in_place) s.in_place = false;  // one column, and theirs is out of place
      break;
    case collective::reduce_scatter:
      s.in_place = false;
      break;
    case collective::broadcast:
    case collective::barrier:
      s.out_of_place = false;
      break;
  }
  if (!s.has_data()) {
    s.sizes = {0};
    return;
  }
  const std::uint64_t blocks = s.format == format::osu && s.osu_counts_blocks() ? std::uint64_t(s.ranks) : 1;
  const std::uint64_t low = a.low.value_or(blocks * std::max<std::uint64_t>(4, size_of(s.element)));
  if (low == 0) throw CLI::ValidationError("--min-bytes", "must be at least one element");
  if (low > a.high) throw CLI::ValidationError("--min-bytes", std::to_string(low) + " is more than --max-bytes");
  s.sizes = sizes_between(low, a.high, a.factor, std::vector<std::size_t>(a.also.begin(), a.also.end()));
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int wrong_result = 1, wrong_argument = 2;
  arguments a;
  CLI::App app("Times a collective of toroid over message sizes and checks every result.", "toroid-bench");
  app.require_subcommand(1);
  add_collective(app, collective::all_reduce, "every rank gets the reduction of all inputs", a);
  add_collective(app, collective::reduce_scatter, "every rank gets one block of the reduction", a);
  add_collective(app, collective::all_gather, "every rank gets the blocks of all", a);
  add_collective(app, collective::broadcast, "every rank gets what the root has", a);
  add_collective(app, collective::barrier, "no rank leaves before all have come", a);
  const bool speaks = launched_rank().value_or(0) == 0;  // one rank is enough to say what is wrong
  std::unique_ptr<mpi_launcher> world;
  try {
    app.parse(argc, argv);
    if (launch_of(a) == launch::mpi) world = join_mpi(argc, argv);
    complete(a, world ? std::optional(world->ranks()) : std::nullopt);
    if (const std::string why = refusal(a.what); !why.empty()) throw CLI::ValidationError(why);
  } catch (const CLI::ParseError& error) {
    const int status = speaks ? app.exit(error) : error.get_exit_code();
    return status == 0 ? 0 : wrong_argument;
  } catch (const std::exception& error) {
    if (speaks) std::fprintf(stderr, "toroid-bench: %s\n", error.what());
    return wrong_argument;
  }
  try {
    return (world ? world->run(a.what) : run(a.what)) == 0 ? 0 : wrong_result;
  } catch (const std::exception& error) {
    if (speaks) std::fprintf(stderr, "toroid-bench: %s\n", error.what());
    return wrong_result;
  }
}
