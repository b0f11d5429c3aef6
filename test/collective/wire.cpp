// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/random.hpp"

#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/reduce_scatter.hpp>
#include <toroid/core/half.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

// Values that travel as another type than they are stored in: how far off they are, that all ranks have the same bits,
// and what becomes of numbers that the other type does not have.

namespace {

using support::demand;
using toroid::bfloat16;
using toroid::float16;

constexpr float infinity = std::numeric_limits<float>::infinity();

/// A number with a full mantissa, of any sign.
float contribution(int rank, std::size_t index) {
  support::random_numbers random(index * 64 + static_cast<std::size_t>(rank));
  return std::ldexp(static_cast<float>(random.below(1 << 24)) / static_cast<float>(1 << 23) - 1.0f,
                    static_cast<int>(random.below(8)));
}

template <class F>
void each_algorithm(F f) {
  f(toroid::automatic{});
  f(toroid::direct{.segment_bytes = 256});
  f(toroid::ring{});
  f(toroid::halving_doubling{});
  f(toroid::tree{});
  f(toroid::torus_2d{});
}

template <class T>
std::uint64_t digest(std::span<const T> values) {
  std::uint64_t word = values.size();
  const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (std::size_t i = 0; i < values.size_bytes(); ++i) word = (word ^ bytes[i]) * 0x100000001b3u;
  return word;
}

/// All ranks must have the same bits.
template <class Comm, class T>
void same_everywhere(Comm& comm, const std::vector<T>& values, const std::string& what) {
  const std::uint64_t mine = digest(std::span<const T>(values));
  std::uint64_t least[] = {mine, ~mine};
  toroid::all_reduce(comm, least, toroid::minimum{});
  demand(least[0] == mine && least[1] == ~mine, what, ": rank ", comm.rank(), " has other bits than another one");
}

/// Sums of floats that travel as W: within `ranks` roundings of W, and a copy into shared memory has the same bits.
template <class W, class Comm>
void sums_are_close(Comm& comm, double rounding, std::size_t count) {
  const std::size_t ranks = static_cast<std::size_t>(comm.size());
  std::vector<float> in(count), out(count), again(count);
  for (std::size_t i = 0; i < count; ++i) in[i] = contribution(comm.rank(), i);
  const std::span<float> shared = toroid::allocate<float>(comm, count);
  each_algorithm([&](const auto& how) {
    const std::string what = support::joined(count, " elements on ", ranks, " ranks");
    toroid::all_reduce(comm, in, out, toroid::wire<W>, how);
    for (std::size_t i = 0; i < count; ++i) {
      double exact = 0, size = 0;
      for (int r = 0; r < comm.size(); ++r)
        exact += static_cast<double>(contribution(r, i)), size += std::fabs(static_cast<double>(contribution(r, i)));
      demand(std::fabs(static_cast<double>(out[i]) - exact) <= static_cast<double>(ranks) * rounding * size, what,
             ": element ", i, " is ", out[i], ", not ", exact);
      demand(static_cast<float>(static_cast<W>(out[i])) == out[i], what, ": element ", i, " was not rounded");
    }
    same_everywhere(comm, out, what);
    again = in;
    toroid::all_reduce(comm, again, how, toroid::wire<W>);
    demand(again == out, what, ": in place is another result");
    std::copy(in.begin(), in.end(), shared.begin());
    toroid::all_reduce(comm, shared, how, toroid::wire<W>);
    demand(std::equal(out.begin(), out.end(), shared.begin()), what, ": shared memory has another result");
  });
  toroid::deallocate(comm, shared);
}

template <class Comm, class T, class... Policies>
std::vector<T> reduced(Comm& comm, std::vector<T> values, const Policies&... policies) {
  toroid::all_reduce(comm, values, policies...);
  return values;
}

/// Averages by each algorithm are what `direct` makes of them.
template <class T, class Comm>
void averages_are_exact(Comm& comm) {
  for (const std::size_t count : {1u, 5u, 2000u}) {
    std::vector<T> mine(count);
    for (std::size_t i = 0; i < count; ++i) {
      support::random_numbers random(i * 64 + static_cast<std::size_t>(comm.rank()));
      mine[i] = static_cast<T>(random.next());
      if (i % 3 == 0) mine[i] = i % 2 == 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
    }
    const std::vector<T> right = reduced(comm, mine, toroid::average{}, toroid::direct{});
    const auto same = [&](const auto& how) {
      demand(reduced(comm, mine, how, toroid::average{}) == right, "an average of ", count, " integers of ", sizeof(T),
             " bytes");
    };
    same(toroid::ring{});
    same(toroid::halving_doubling{.segment_bytes = 64});
    same(toroid::tree{});
    same(toroid::torus_2d{});
    std::vector<T> block(toroid::block_of(count, comm.size(), comm.rank()).count);
    toroid::reduce_scatter(comm, mine, block, toroid::average{}, toroid::ring{});
    for (std::size_t i = 0; i < block.size(); ++i)
      demand(block[i] == right[toroid::block_of(count, comm.size(), comm.rank()).begin + i], "scattered ", i);
  }
}

}  // namespace

TEST_CASE("Sums of floats that travel as halves are as close as these allow, and alike on all ranks", "[wire]") {
  for (const int ranks : {1, 2, 5}) {
    support::run_both(ranks, [](auto& comm) {
      const std::size_t p = static_cast<std::size_t>(comm.size());
      for (const std::size_t count :
           {std::size_t{0}, std::size_t{1}, p - 1, p + 1, std::size_t{1000}, std::size_t{3001}})
        sums_are_close<bfloat16>(comm, 0x1p-8, count);
    });
  }
  support::run_threads(3, [](auto& comm) { sums_are_close<float16>(comm, 0x1p-11, 777); });
}

TEST_CASE("Long vectors travel piece by piece, in memory that stays bounded", "[wire]") {
  support::run_both(3, [](auto& comm) {
    const std::size_t count = 2 * (std::size_t{4} << 20) / sizeof(bfloat16) + 77;  // two pieces and a bit
    const std::size_t before = comm.footprint();
    std::vector<float> in(count), out(count), block(toroid::block_of(count, 3, comm.rank()).count);
    for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<float>(i % 50) + static_cast<float>(comm.rank());
    const auto right = [&](float value, std::size_t i) {
      demand(value == static_cast<float>(3 * (i % 50) + 3), "element ", i, " is ", value);
    };
    toroid::all_reduce(comm, in, out, toroid::wire<bfloat16>);
    for (std::size_t i = 0; i < count; ++i) right(out[i], i);
    toroid::reduce_scatter(comm, in, block, toroid::wire<bfloat16>);
    const std::size_t begin = toroid::block_of(count, 3, comm.rank()).begin;
    for (std::size_t i = 0; i < block.size(); ++i) right(block[i], begin + i);
    toroid::reduce_scatter(comm, in, std::span<float>(in).subspan(begin, block.size()), toroid::wire<bfloat16>,
                           toroid::ring{});  // in place
    for (std::size_t i = 0; i < block.size(); ++i) right(in[begin + i], begin + i);
    const std::size_t taken = comm.footprint() - before;
    demand(taken >= std::size_t{4} << 20 && taken <= std::size_t{5} << 20, taken, " bytes were taken");
  });
}

TEST_CASE("What a narrow wire does not have becomes infinite; infinities and NaN stay", "[wire]") {
  support::run_both(2, [](auto& comm) {
    each_algorithm([&](const auto& how) {
      // too great in itself; only in the sum; below the least; infinite; NaN on one rank only
      std::vector<float> values(1500);
      const auto put = [&](std::size_t i, float first, float second) { values[i] = comm.rank() == 0 ? first : second; };
      for (std::size_t i = 0; i < values.size(); i += 5) {
        put(i, 70000.0f, 0.0f);
        put(i + 1, -65504.0f, -65504.0f);
        put(i + 2, 0x1p-26f, 0x1p-26f);
        put(i + 3, infinity, -1.0f);
        put(i + 4, 1.0f, std::nanf(""));
      }
      toroid::all_reduce(comm, values, how, toroid::wire<float16>);
      for (std::size_t i = 0; i < values.size(); i += 5)
        demand(values[i] == infinity && values[i + 1] == -infinity && values[i + 2] == 0.0f &&
                   values[i + 3] == infinity && std::isnan(values[i + 4]),
               "element ", i, ": ", values[i], ' ', values[i + 1], ' ', values[i + 2], ' ', values[i + 3], ' ',
               values[i + 4]);
      same_everywhere(comm, values, "with NaN");
    });
  });
}

TEST_CASE("Halves that travel as floats are rounded once", "[wire]") {
  for (const int ranks : {2, 5}) {
    support::run_threads(ranks, [](auto& comm) {
      std::vector<bfloat16> mine(1003);
      for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = bfloat16(contribution(comm.rank(), i));
      const std::vector<bfloat16> direct = reduced(comm, mine, toroid::direct{});
      each_algorithm([&](const auto& how) {
        const std::vector<bfloat16> values = reduced(comm, mine, how, toroid::wire<float>);
        same_everywhere(comm, values, "as floats");
        for (std::size_t i = 0; i < values.size(); ++i) {
          double exact = 0, size = 0;
          for (int r = 0; r < comm.size(); ++r) {
            const double operand = static_cast<double>(static_cast<float>(bfloat16(contribution(r, i))));
            exact += operand;
            size += std::fabs(operand);
          }
          // One rounding of the result, and a few of float.
          demand(std::fabs(static_cast<double>(values[i]) - exact) <= 0x1p-8 * std::fabs(exact) + 0x1p-20 * size,
                 "element ", i, " is ", float{values[i]}, ", not ", exact);
          if (comm.size() == 2) demand(values[i].bits == direct[i].bits, "element ", i, " differs from direct's");
        }
      });
    });
  }
}

TEST_CASE("Integers that travel wider have the sums that they have anyway", "[wire]") {
  support::run_threads(3, [](auto& comm) {
    const std::vector<std::int8_t> mine(500, static_cast<std::int8_t>(100 + comm.rank()));
    demand(reduced(comm, mine, toroid::wire<std::int32_t>, toroid::ring{}) == reduced(comm, mine), "wrapped sums");
    demand(reduced(comm, mine, toroid::wire<std::int16_t>, toroid::average{})[499] == 101, "an average");
  });
}

TEST_CASE("Averages of integers are exact by every algorithm", "[wire]") {
  for (const int ranks : {1, 3, 4}) {
    support::run_both(ranks, [](auto& comm) {
      averages_are_exact<std::int32_t>(comm);
      if (comm.size() == 3) averages_are_exact<std::int64_t>(comm);
    });
  }
  support::run_threads(3, [](auto& comm) {
    averages_are_exact<std::uint8_t>(comm);
    averages_are_exact<std::uint64_t>(comm);
    // Cut off towards zero.
    const int contributions[][3] = {{7, 8, 9}, {1, 1, 2}, {-1, -1, -2}, {-7, -8, -9}};
    const int right[] = {8, 1, -1, -8};
    for (int k = 0; k < 4; ++k) {
      const std::vector<int> mine(100, contributions[k][comm.rank()]);
      demand(reduced(comm, mine, toroid::average{}, toroid::tree{})[99] == right[k], "average ", k);
    }
  });
}

TEST_CASE("Averages of halves neither overflow nor vanish by any algorithm", "[wire]") {
  support::run_threads(8, [](auto& comm) {
    std::vector<float16> mine(1501);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = float16(i % 2 == 0 ? 16384.0f : 0x1p-24f);
    each_algorithm([&](const auto& how) {
      const std::vector<float16> mean = reduced(comm, mine, how, toroid::average{});
      for (std::size_t i = 0; i < mean.size(); ++i)
        demand(mean[i].bits == mine[i].bits, "element ", i, " is ", float{mean[i]});
    });
  });
}

TEST_CASE("Ranks that disagree on the wire, or on a long vector's length, are told so", "[wire]") {
  support::run_both(2, [](auto& comm) {
    std::vector<float> values(10);
    const std::string text = support::text_of<toroid::mismatch_error>([&] {
      if (comm.rank() == 1)
        toroid::all_reduce(comm, values, toroid::wire<bfloat16>);
      else
        toroid::all_reduce(comm, values, toroid::wire<float16>);
    });
    support::demand_words(text, "10 float (4 bytes each) as bfloat16, sum", "as float16");
  });
  support::run_both(2, [](auto& comm) {  // the first pieces are of one length
    std::vector<float> values(3'000'000 + static_cast<std::size_t>(comm.rank()), 1.0f);
    const std::string text = support::text_of<toroid::mismatch_error>(
        [&] { toroid::all_reduce(comm, values, toroid::wire<bfloat16>, toroid::ring{}); });
    support::demand_words(text, "3000000 float", "3000001 float");
    for (const float value : values) demand(value == 1.0f, "a value has changed");
  });
}

TEST_CASE("A number that is not finite is found before any piece has moved", "[wire]") {
  support::run_both(2,
                    [](auto& comm) {
                      std::vector<float> values(3'000'000, 1.0f);
                      if (comm.rank() == 1) values[2'900'000] = infinity;
                      const std::string text = support::text_of<toroid::usage_error>(
                          [&] { toroid::all_reduce(comm, values, toroid::wire<bfloat16>); });
                      support::demand_words(text, "rank 1 is not finite at index 2900000");
                      demand(values[0] == 1.0f, "a piece has moved");
                      values[2'900'000] = 1.0f;
                      toroid::all_reduce(comm, values, toroid::wire<bfloat16>);
                      demand(values[2'900'000] == 2.0f && values[0] == 2.0f, "the communicator is not whole");
                    },
                    {.checking = toroid::check::data});
}
