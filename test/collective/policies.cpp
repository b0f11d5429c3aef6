// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/plan.hpp>
#include <toroid/collective/reduce_scatter.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

// What trails the buffers of a reduction: operator, algorithm, wire, accumulator and level, in any order.

namespace {

using support::demand;
using toroid::determinism;

template <class... Given>
using picked = toroid::detail::trailing_policies<Given...>;
template <class T, class... Given>
using travel = toroid::detail::travel<T, picked<Given...>>;
using nothing = toroid::detail::not_given;
template <class W>
using wire = toroid::wire_t<W>;
template <class A>
using accumulate = toroid::accumulate_t<A>;

// In any order, with gaps.
using all_five = picked<accumulate<double>, toroid::ring, nothing, toroid::require_t<determinism::run_to_run>,
                        toroid::maximum, wire<toroid::bfloat16>>;
static_assert(std::is_same_v<all_five::algorithm, toroid::ring> &&
              std::is_same_v<all_five::operation, toroid::maximum> &&
              std::is_same_v<all_five::wire, toroid::bfloat16> && std::is_same_v<all_five::accumulator, double> &&
              all_five::required == determinism::run_to_run);
static_assert(std::is_same_v<picked<>::algorithm, toroid::automatic> &&
              std::is_same_v<picked<>::operation, toroid::sum> && std::is_same_v<picked<>::wire, void>);

// What is said and changes nothing leaves the call what it was.
static_assert(travel<float>::plain && travel<toroid::bfloat16, accumulate<float>>::plain &&
              travel<float, wire<float>, accumulate<float>>::plain && travel<int, toroid::average>::plain);
static_assert(!travel<float, accumulate<double>>::plain && travel<float, accumulate<double>>::as_stored);

// Averages that partial results would spoil travel wider, and no others do.
static_assert(std::is_same_v<travel<std::int8_t, toroid::average, toroid::ring>::wire, std::int64_t>);
static_assert(std::is_same_v<travel<std::uint32_t, toroid::average, toroid::tree>::wire, std::uint64_t>);
static_assert(std::is_same_v<travel<std::int64_t, toroid::average, toroid::torus_2d>::wire, toroid::detail::int128>);
static_assert(std::is_same_v<travel<toroid::float16, toroid::average, toroid::ring>::wire, float>);
static_assert(travel<float, toroid::average, toroid::ring>::plain && travel<int, toroid::ring>::plain);
static_assert(travel<toroid::float16, toroid::average, toroid::direct>::plain);

// Nothing narrower than elements or wire is summed in; a functor sees the elements as they are.
static_assert(std::is_same_v<travel<double, wire<float>>::accumulator, double>);
static_assert(std::is_same_v<travel<float, wire<double>>::accumulator, double>);
static_assert(std::is_same_v<travel<toroid::bfloat16, wire<toroid::float16>>::accumulator, float>);
static_assert(std::is_same_v<travel<std::int8_t, wire<std::int16_t>, toroid::average>::accumulator, std::int64_t>);
constexpr auto functor = [](auto a, auto) { return a; };
static_assert(std::is_same_v<travel<toroid::bfloat16, decltype(functor)>::accumulator, toroid::bfloat16>);

/// Rank r's contribution to sums that come out as 1 if each addition is rounded to float, as 2 if none is.
constexpr float cancelling[] = {1e8f, 1.0f, -1e8f, 1.0f};

template <class Comm, class... Policies>
void sum_is(Comm& comm, double right, std::size_t count, const Policies&... policies) {
  const std::vector<float> in(count, cancelling[comm.rank()]);
  std::vector<float> out(count), block(toroid::block_of(count, comm.size(), comm.rank()).count);
  toroid::all_reduce(comm, in, out, policies...);
  toroid::reduce_scatter(comm, in, block, policies...);
  for (const auto& values : {out, block})
    for (const float value : values) demand(value == right, value, " instead of ", right, ", of ", count, " elements");
}

/// The text of a file of the tree, looked for upwards from where the test runs and from where it was compiled.
std::string text_of_file(const std::string& name) {
  for (std::filesystem::path start : {std::filesystem::current_path(), std::filesystem::absolute(__FILE__)}) {
    for (; start.has_relative_path(); start = start.parent_path()) {
      std::ifstream file(start / name);
      if (file) return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    }
  }
  throw support::check_failed("there is no " + name + " above this test");
}

std::string name_of(determinism level) {
  return level == determinism::any_chunking ? "any_chunking"
         : level == determinism::run_to_run ? "run_to_run"
                                            : "same_on_all_ranks";
}

}  // namespace

TEST_CASE("The documented levels are those of the algorithms", "[policies]") {
  const std::string text = text_of_file("docs/determinism.md");
  const auto row = [&](const std::string& algorithm, determinism level) {
    support::demand_words(text, "| " + algorithm + " | `" + name_of(level) + "` |");
  };
  row("`automatic`", toroid::automatic::level);
  row("`direct`", toroid::direct::level);
  row("`ring`", toroid::ring::level);
  row("`halving_doubling`", toroid::halving_doubling::level);
  row("`tree`", toroid::tree::level);
  row("`tree` with an operator that does not commute", toroid::detail::tree_in_order::level);
  row("`torus_2d`", toroid::torus_2d::level);
}

TEST_CASE("Sums are taken in the accumulator's type", "[policies]") {
  support::run_both(4, [](auto& comm) {
    for (const std::size_t count : {1u, 63u, 64u, 65u, 1000u, 70'001u}) {
      sum_is(comm, 1.0, count);
      sum_is(comm, 2.0, count, toroid::accumulate<double>);
      sum_is(comm, 1.0, count, toroid::accumulate<float>);
      sum_is(comm, 2.0, count, toroid::direct{.segment_bytes = 64}, toroid::accumulate<double>, toroid::sum{});
    }
  });
}

TEST_CASE("Policies come in any order, before the line of the call", "[policies]") {
  support::run_threads(2, [](auto& comm) {
    const auto given = toroid::wire<double>;
    const auto in = toroid::accumulate<double>;
    const auto level = toroid::require<determinism::run_to_run>;
    const toroid::ring how{.segment_bytes = 64};
    const toroid::average op;
    const std::vector<float> mine(1000, static_cast<float>(comm.rank()));
    std::vector<float> out(1000);
    const auto right = [&] {
      for (float& value : out) {
        demand(value == 0.5f, value, " is no average");
        value = -1.0f;
      }
    };
    toroid::all_reduce(comm, mine, out, given, in, level, how, op), right();
    toroid::all_reduce(comm, mine, out, op, how, level, in, given), right();
    toroid::all_reduce(comm, mine, out, in, op, given, how), right();
    out = mine;
    toroid::all_reduce(comm, out, level, op, given), right();
    out = mine;
    toroid::all_reduce(comm, std::span<float>(out), how, in, op), right();

    const std::span<float> nowhere(static_cast<float*>(nullptr), 3);
    const std::string line = "policies.cpp:" + std::to_string(__LINE__ + 2);
    const std::string text = support::text_of<toroid::usage_error>([&] {  //
      toroid::all_reduce(comm, nowhere, in, op, given, how);
    });
    support::demand_words(text, line);
  });
}

TEST_CASE("A functor is called with numbers of the accumulator's type", "[policies]") {
  support::run_both(3, [](auto& comm) {
    const auto add = [](double a, double b) {
      return a + b;  // of floats: 2^24 + 1 is one
    };
    const float mine = comm.rank() == 0 ? 0x1p24f : 1.0f;
    std::vector<float> values(300, mine);
    toroid::all_reduce(comm, values, add, toroid::accumulate<double>);
    for (const float value : values) demand(value == 0x1p24f + 2.0f, value, " was rounded twice");
    values.assign(300, mine);
    toroid::all_reduce(comm, values, toroid::commutative(add), toroid::accumulate<double>, toroid::ring{},
                       toroid::wire<double>);
    for (const float value : values) demand(value == 0x1p24f + 2.0f, value, " was rounded on its way");
  });
}

TEST_CASE("Products of small integers in a wider type wrap around as in their own", "[policies]") {
  support::run_threads(3, [](auto& comm) {
    std::vector<std::int8_t> narrow(100, 7), wide = narrow;
    toroid::all_reduce(comm, narrow, toroid::product{});
    toroid::all_reduce(comm, wide, toroid::product{}, toroid::accumulate<int>);
    demand(narrow == wide && narrow[99] == static_cast<std::int8_t>(7 * 7 * 7), int{wide[99]});
  });
}

TEST_CASE("Ranks that accumulate in different types are told so", "[policies]") {
  support::run_both(3, [](auto& comm) {
    std::vector<float> values(10);
    const std::string text = support::text_of<toroid::mismatch_error>([&] {
      if (comm.rank() == 1)
        toroid::all_reduce(comm, values, toroid::accumulate<double>);
      else
        toroid::all_reduce(comm, values);
    });
    support::demand_words(text, "10 float (4 bytes each), accumulated as double", "10 float (4 bytes each), sum");
  });
}

TEST_CASE("A plan says as what elements travel and are combined, and why", "[policies]") {
  support::run_threads(4, [](auto& comm) {
    const toroid::call_plan plain = toroid::plan(comm, 10'000);
    demand(plain.wire == "float" && plain.accumulator == "float" && plain.calls == 1, plain.text());

    const toroid::call_plan half = toroid::plan(comm, 10'000, toroid::wire<toroid::bfloat16>);
    demand(half.wire == "bfloat16" && half.accumulator == "float" && half.bytes == 40'000 &&
               half.bytes_sent * 2 == plain.bytes_sent && half.pieces_in_place == 1 && half.pieces_staged == 0,
           half.text());
    support::demand_words(half.text(), "40000 bytes as bfloat16, combined as float: ", "it is to travel as bfloat16");
    demand(toroid::plan(comm, 2000, toroid::wire<toroid::bfloat16>).algorithm == "one-shot", "4000 bytes travel");
    const toroid::call_plan calls = toroid::plan(comm, 5'000'000, toroid::ring{}, toroid::wire<toroid::bfloat16>);
    demand(calls.calls == 3 && calls.bytes_sent == 15'000'000, calls.text());
    support::demand_words(calls.text(), "ring over threads", ": 3 calls of 7 steps");

    const toroid::call_plan mean = toroid::plan<int>(comm, 1000, toroid::average{}, toroid::tree{});
    demand(mean.wire == "int64" && mean.accumulator == "int64", mean.text());
    support::demand_words(mean.why, "an average of int32", "exact only if it travels as int64");
    demand(toroid::plan<std::int64_t>(comm, 9, toroid::average{}, toroid::ring{}).wire == "int128", "int64 averaged");
    demand(toroid::plan<int>(comm, 1000, toroid::average{}).wire == "int32", "direct needs no wider wire");

    const toroid::call_plan in_order = toroid::plan(comm, 1000, functor, toroid::tree{}, toroid::accumulate<double>);
    demand(in_order.algorithm == "tree in order" && in_order.accumulator == "double" && in_order.wire == "float",
           in_order.text());
  });
}
