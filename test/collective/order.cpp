// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/reduce_scatter.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

// An operator that does not commute: products of matrices, in rank order.

namespace {

using support::demand;

struct matrix {
  std::int64_t a, b, c, d;
  friend bool operator==(const matrix&, const matrix&) = default;
};

matrix product_of(const matrix& x, const matrix& y) {
  return {x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c, x.c * y.b + x.d * y.d};
}
constexpr auto times = [](const matrix& x, const matrix& y) { return product_of(x, y); };

/// What rank r brings to element `index`: the first element is [[r + 1, 1], [1, 0]], the others are others.
matrix brought(int rank, std::size_t index) {
  return {rank + 1, 1, 1 + static_cast<std::int64_t>(index % 5), static_cast<std::int64_t>(index % 3)};
}

matrix in_rank_order(int ranks, std::size_t index) {
  matrix all = brought(0, index);
  for (int r = 1; r < ranks; ++r) all = times(all, brought(r, index));
  return all;
}

template <class Comm, class Algorithm>
void multiply(Comm& comm, std::size_t count, const Algorithm& how) {
  std::vector<matrix> in(count), out(count);
  for (std::size_t i = 0; i < count; ++i) in[i] = brought(comm.rank(), i);
  toroid::all_reduce(comm, in, out, times, how);
  for (std::size_t i = 0; i < count; ++i) demand(out[i] == in_rank_order(comm.size(), i), "product ", i, " of ", count);
  toroid::all_reduce(comm, in, how, times);
  demand(in == out, "in place differs");
  if constexpr (!std::is_same_v<Algorithm, toroid::tree>) {  // which knows no reduce_scatter
    for (std::size_t i = 0; i < count; ++i) in[i] = brought(comm.rank(), i);
    const toroid::block own = toroid::block_of(count, comm.size(), comm.rank());
    std::vector<matrix> block(own.count);
    toroid::reduce_scatter(comm, in, block, times, how);
    for (std::size_t i = 0; i < own.count; ++i)
      demand(block[i] == in_rank_order(comm.size(), own.begin + i), "product ", own.begin + i, " of ", count,
             ", scattered");
  }
}

}  // namespace

TEST_CASE("The products by which order is told are right", "[order]") {
  CHECK(in_rank_order(3, 0) == matrix{10, 3, 7, 2});
  CHECK(in_rank_order(5, 0) == matrix{225, 43, 157, 30});
  CHECK(in_rank_order(7, 0) == matrix{9976, 1393, 6961, 972});
}

TEST_CASE("Operators that do not commute see their operands in rank order", "[order]") {
  for (const int ranks : {1, 2, 3, 4, 5, 7})
    support::run_both(ranks, [](auto& comm) {
      for (const std::size_t count : {1u, 2u, 64u, 1000u, 6000u}) {
        multiply(comm, count, toroid::automatic{});
        multiply(comm, count, toroid::direct{.segment_bytes = 1000});
        multiply(comm, count, toroid::tree{});
        multiply(comm, count, toroid::tree{.segment_bytes = 1000});
      }
    });
}

TEST_CASE("A plain function is an operator too", "[order]") {
  support::run_both(3, [](auto& comm) {
    std::vector<matrix> values{brought(comm.rank(), 0)};
    toroid::all_reduce(comm, values, product_of);
    demand(values[0] == in_rank_order(3, 0), "the product is wrong");
    values[0] = brought(comm.rank(), 0);
    toroid::all_reduce(comm, values, toroid::direct{}, &product_of);
    demand(values[0] == in_rank_order(3, 0), "the product is wrong");
  });
}

TEST_CASE("A functor keeps the state that it was given", "[order]") {
  support::run_both(3, [](auto& comm) {
    const int modulus = 1000 + comm.size();
    std::vector<int> values(2000, 700);
    toroid::all_reduce(comm, values, [modulus](int a, int b) { return (a + b) % modulus; });
    demand(values[1999] == 2100 % modulus, "the sum is ", values[1999]);
    std::fill(values.begin(), values.end(), 700);
    toroid::all_reduce(comm, values, toroid::commutative([modulus](int a, int b) { return (a + b) % modulus; }),
                       toroid::ring{});
    demand(values[1999] == 2100 % modulus, "the sum is ", values[1999]);
    const auto again = [&](const auto& how) {
      std::fill(values.begin(), values.end(), 700);
      toroid::all_reduce(comm, values, toroid::commutative([modulus](int a, int b) { return (a + b) % modulus; }), how);
      demand(values[1999] == 2100 % modulus, "the sum is ", values[1999]);
    };
    again(toroid::halving_doubling{});
    again(toroid::tree{});
    again(toroid::torus_2d{});
  });
}
