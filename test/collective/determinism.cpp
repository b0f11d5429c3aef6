// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/random.hpp"

#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/barrier.hpp>
#include <toroid/collective/reduce_scatter.hpp>
#include <toroid/schedule/verify.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

// Sums of floats that depend on the order of their operands: the order that the algorithms promise, on every rank, in
// every run, on every path.

namespace {

using support::demand;

/// A number whose sums round: of any sign, over forty binary orders of magnitude.
float contribution(int rank, std::size_t index) {
  support::random_numbers random(index * 64 + static_cast<std::size_t>(rank));
  const float mantissa = static_cast<float>(random.below(1 << 23)) / static_cast<float>(1 << 22) - 1.0f;
  return std::ldexp(mantissa, static_cast<int>(random.below(40)) - 20);
}

/// Operands from left to right, beginning with rank `first` and going round.
float in_turn(int first, int ranks, std::size_t index) {
  float total = contribution(first % ranks, index);
  for (int i = 1; i < ranks; ++i) total += contribution((first + i) % ranks, index);
  return total;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

std::vector<float> own_vector(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = contribution(rank, i);
  return values;
}

/// What `direct` promises: rank order.
std::vector<float> rank_order(int ranks, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = in_turn(0, ranks, i);
  return values;
}

/// What `ring` promises: ring order, beginning after the owner of the block.
std::vector<float> ring_order(int ranks, std::size_t count) {
  std::vector<float> values(count);
  for (int r = 0; r < ranks; ++r) {
    const toroid::block own = toroid::block_of(count, ranks, r);
    for (std::size_t i = own.begin; i < own.end(); ++i) values[i] = in_turn(r + 1, ranks, i);
  }
  return values;
}

/// What the proof of a schedule says: "0 + 1 + (2 + 3)".
class proven_sum {
 public:
  proven_sum(const std::string& text, std::size_t index) : m_rest(text.c_str()), m_index(index), m_value(sum()) {}
  float value() const { return m_value; }

 private:
  float sum() {
    float total = term();
    for (; *m_rest == ' '; total += term()) m_rest += 3;  // " + "
    return total;
  }
  float term() {
    if (*m_rest == '(') {
      ++m_rest;
      const float inner = sum();
      ++m_rest;
      return inner;
    }
    char* end = nullptr;
    const long rank = std::strtol(m_rest, &end, 10);
    m_rest = end;
    return contribution(static_cast<int>(rank), m_index);
  }

  const char* m_rest;
  std::size_t m_index;
  float m_value;
};

template <class Schedule>
std::vector<float> proven_order(int ranks, std::size_t count, int rows = 1) {
  namespace s = toroid::schedule;
  const s::problem p{0, ranks, 0, rows};
  const s::verification proof = s::verify(Schedule{}, ranks, s::collective_kind::all_reduce, 0, {.rows = rows});
  demand(proof.proved(), proof.to_string());
  std::vector<float> values(count);
  for (int b = 0; b < Schedule::blocks(p); ++b) {
    const toroid::block range = s::block_at<Schedule>(p, count, b);
    const std::string& order = proof.expressions[static_cast<std::size_t>(b)];
    for (std::size_t i = range.begin; i < range.end(); ++i) values[i] = proven_sum(order, i).value();
  }
  return values;
}

/// All ways to get the same sum: in place, out of place, scattered, and where the level allows it in two calls.
template <class Comm, class Algorithm>
void all_ways(Comm& comm, const std::vector<float>& expected, const Algorithm& how) {
  const std::size_t count = expected.size();
  const std::vector<float> in = own_vector(comm.rank(), count);
  std::vector<float> out(count);
  toroid::all_reduce(comm, in, out, how);
  demand(same(out, expected), "out of place, ", count, " elements on ", comm.size(), " ranks");
  out = in;
  toroid::all_reduce(comm, out, how);
  demand(same(out, expected), "in place, ", count, " elements on ", comm.size(), " ranks");

  if constexpr (requires { typename toroid::detail::schedules_of<Algorithm>::reduce_scatter; } ||
                toroid::detail::picks_by_length<Algorithm>) {
    const toroid::block own = toroid::block_of(count, comm.size(), comm.rank());
    out = in;
    const std::span<float> block = std::span<float>(out).subspan(own.begin, own.count);
    toroid::reduce_scatter(comm, std::span<const float>(out), block, how);
    demand(std::equal(block.begin(), block.end(), expected.begin() + static_cast<std::ptrdiff_t>(own.begin)),
           "scattered, ", count, " elements on ", comm.size(), " ranks");
  }

  if constexpr (Algorithm::level == toroid::determinism::any_chunking) {
    out = in;
    const std::size_t cut = count / 3;
    toroid::all_reduce(comm, std::span<float>(out).first(cut), how);
    toroid::all_reduce(comm, std::span<float>(out).subspan(cut), how);
    demand(same(out, expected), "in two calls, ", count, " elements on ", comm.size(), " ranks");
  }
}

template <class Comm>
void promised_order(Comm& comm) {
  for (const std::size_t count : {1u, 5u, 4097u, 40'000u}) {
    const std::vector<float> direct = rank_order(comm.size(), count), ring = ring_order(comm.size(), count);
    all_ways(comm, direct, toroid::automatic{});
    all_ways(comm, direct, toroid::direct{});
    all_ways(comm, direct, toroid::direct{.segment_bytes = 64});
    all_ways(comm, direct, toroid::direct{.segment_bytes = 5000});
    all_ways(comm, ring, toroid::ring{});
    all_ways(comm, ring, toroid::ring{.segment_bytes = 64});
    all_ways(comm, ring, toroid::ring{.segment_bytes = 5000});
  }
}

/// The same for algorithms whose order the proof tells.
template <class Comm, class Schedule, class Algorithm>
void proven(Comm& comm, Schedule, std::size_t count, Algorithm how, int rows = 1) {
  const std::vector<float> expected = proven_order<Schedule>(comm.size(), count, rows);
  for (const std::size_t segment : {0u, 64u, 5000u}) {
    how.segment_bytes = segment;
    all_ways(comm, expected, how);
  }
}

template <class Comm>
void proven_orders(Comm& comm) {
  namespace s = toroid::schedule;
  for (const std::size_t count : {1u, 5u, 4097u, 20'000u}) {
    proven(comm, s::halving_doubling_all_reduce{}, count, toroid::halving_doubling{});
    proven(comm, s::tree_all_reduce{}, count, toroid::tree{});
    const auto grid = toroid::topology::nearest_to_square(comm.size());
    proven(comm, s::torus_2d_all_reduce{}, count, toroid::torus_2d{}, grid.rows);
    proven(comm, s::torus_2d_all_reduce{}, count, toroid::torus_2d{.columns = 1}, comm.size());

    // In rank order, and the same in pieces and in one.
    const std::vector<float> in_order = proven_order<s::in_order_tree_all_reduce>(comm.size(), count);
    std::vector<float> values = own_vector(comm.rank(), count);
    const auto add = [](float a, float b) { return a + b; };
    toroid::all_reduce(comm, values, add, toroid::tree{.segment_bytes = 100});
    demand(same(values, in_order), "in rank order, ", count, " elements on ", comm.size(), " ranks");
    values = own_vector(comm.rank(), count);
    toroid::all_reduce(comm, std::span<float>(values).first(count / 3), add, toroid::tree{});
    toroid::all_reduce(comm, std::span<float>(values).subspan(count / 3), add, toroid::tree{});
    demand(same(values, in_order), "in rank order, in two calls, ", count, " elements on ", comm.size(), " ranks");
  }
}

}  // namespace

TEST_CASE("Floats are added in the order that the proofs of the schedules tell", "[determinism]") {
  for (const int ranks : {3, 4, 6, 7}) support::run_both(ranks, [](auto& comm) { proven_orders(comm); });
}

TEST_CASE("Floats are added in the promised order, on all ranks and paths", "[determinism]") {
  for (const int ranks : {3, 4, 5, 6, 7}) support::run_both(ranks, [](auto& comm) { promised_order(comm); });
}

TEST_CASE("The promised order matters to the test's numbers", "[determinism]") {
  for (const int ranks : {3, 4, 7}) CHECK_FALSE(same(rank_order(ranks, 100), ring_order(ranks, 100)));
}

TEST_CASE("Sums are the same bits on all ranks and in every repetition, whoever comes late", "[determinism]") {
  constexpr float brought[] = {1e8f, 1, -1e8f, 1};
  constexpr std::size_t longest = 4097;
  const support::shared_by_all<float> results(4 * longest);
  support::run_both(4, [&](auto& comm) {
    support::random_numbers random(static_cast<std::uint64_t>(comm.rank()) + 99);
    const auto repeat = [&](std::size_t count, const auto& how) {
      std::vector<float> first;
      for (int i = 0; i < 100; ++i) {
        std::vector<float> values = own_vector(comm.rank(), count);
        values[0] = brought[comm.rank()];
        if (random.below(4) == 0) ::usleep(static_cast<useconds_t>(random.below(200)));
        toroid::all_reduce(comm, values, how);
        if (i == 0) first = values;
        demand(same(values, first), "repetition ", i, " differs");
      }
      float* const mine = &results[static_cast<std::size_t>(comm.rank()) * longest];
      std::copy(first.begin(), first.end(), mine);
      toroid::barrier(comm);
      for (std::size_t r = 0; r < 4; ++r)
        demand(std::memcmp(mine, &results[r * longest], count * sizeof(float)) == 0, "rank ", r, " has another result");
      toroid::barrier(comm);
      return first[0];
    };
    for (const std::size_t count : {std::size_t{1}, std::size_t{5}, longest}) {
      demand(repeat(count, toroid::direct{}) == ((1e8f + 1) - 1e8f) + 1, "not in rank order");
      repeat(count, toroid::ring{});
      repeat(count, toroid::halving_doubling{});
      repeat(count, toroid::tree{});
      repeat(count, toroid::torus_2d{});
    }
  });
}
