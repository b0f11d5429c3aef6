// SPDX-License-Identifier: Apache-2.0
// What must not compile. Each section is compiled twice: as it stands, where the compiler must print the expected
// words, and with TWIN defined, where it must compile. REFUSED(fault, twin) is all they differ in.
#include <toroid/toroid.hpp>

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#ifdef TWIN
#define REFUSED(fault, twin) twin
#else
#define REFUSED(fault, twin) fault
#endif

using group = toroid::communicator<toroid::transport::threads>;

#if defined(REFUSE_VECTOR_OF_BOOL)
// expect: toroid: std::vector<bool> packs its elements into bits
void call(group& comm) {
  std::vector<REFUSED(bool, char)> flags(8);
  toroid::all_reduce(comm, flags, toroid::logical_or{});
}

#elif defined(REFUSE_POINTERS)
// expect: toroid: the elements of a buffer must be trivially copyable
void call(group& comm) {
  float value = 0;
  std::vector<REFUSED(float*, float)> values{REFUSED(&value, value)};
  toroid::broadcast(comm, values, 0);
}

#elif defined(REFUSE_SPANS)
// expect: toroid: the elements of a buffer must be trivially copyable
void call(group& comm, std::vector<float>& values) {
  std::vector<REFUSED(std::span<float>, float)> parts{REFUSED(std::span<float>(values), values[0])};
  toroid::broadcast(comm, parts, 0);
}

#elif defined(REFUSE_STRING_VIEWS)
// expect: toroid: the elements of a buffer must be trivially copyable
void call(group& comm) {
  std::array<REFUSED(std::string_view, char), 2> words{};
  toroid::broadcast(comm, words, 0);
}

#elif defined(REFUSE_ALGORITHM_WITHOUT_A_SCHEDULE)
// expect: toroid: this algorithm names no schedule for all_reduce
struct own {
  struct schedules {
    using REFUSED(all_gather, all_reduce) = toroid::schedule::REFUSED(ring_all_gather, ring_all_reduce);
  };
  static constexpr toroid::determinism level = toroid::determinism::run_to_run;
  static constexpr bool reorders = true;
  static constexpr bool keeps_partial_results = true;
};
void call(group& comm) {
  std::vector<float> values(8);
  toroid::all_reduce(comm, values, own{});
}

#elif defined(REFUSE_LIST)
// expect: toroid: a buffer must be contiguous
void call(group& comm) {
  REFUSED(std::list, std::vector)<float> values(8);
  toroid::all_reduce(comm, values);
}

#elif defined(REFUSE_STRINGS)
// expect: toroid: the elements of a buffer must be trivially copyable
void call(group& comm) {
  std::vector<REFUSED(std::string, char)> words(8);
  toroid::broadcast(comm, words, 0);
}

#elif defined(REFUSE_STRINGS_IN_ALL_GATHER)
// expect: toroid: the elements of a buffer must be trivially copyable
void call(group& comm) {
  std::vector<REFUSED(std::string, char)> mine(1), all(8);
  toroid::all_gather(comm, mine, all);
}

#elif defined(REFUSE_CONST_RESULT)
// expect: toroid: the result cannot be written to
void call(group& comm, const std::vector<float>& in) {
  REFUSED(const, ) std::vector<float> out(8);
  toroid::all_reduce(comm, in, out);
}

#elif defined(REFUSE_CONST_BUFFER_IN_PLACE)
// expect: toroid: the result cannot be written to
void call(group& comm) {
  REFUSED(const, ) std::vector<float> values(8);
  toroid::all_reduce(comm, values);
}

#elif defined(REFUSE_CONST_SPAN_OF_REDUCE_SCATTER)
// expect: toroid: the result cannot be written to
void call(group& comm, std::span<const float> in, std::span<REFUSED(const float, float)> out) {
  toroid::reduce_scatter(comm, in, out);
}

#elif defined(REFUSE_CONST_BUFFER_OF_BROADCAST)
// expect: toroid: the result cannot be written to
void call(group& comm, std::span<REFUSED(const float, float)> values) { toroid::broadcast(comm, values, 0); }

#elif defined(REFUSE_TEMPORARY_RESULT)
// expect: toroid: the result is a temporary
void call(group& comm, std::vector<float>& values) {
  toroid::all_reduce(comm, values, REFUSED(std::vector<float>(8), std::span<float>(values)));
}

#elif defined(REFUSE_DIFFERENT_TYPES)
// expect: toroid: input and result have different types of elements
void call(group& comm) {
  std::vector<float> in(8);
  std::vector<REFUSED(double, float)> out(8);
  toroid::all_reduce(comm, in, out);
}

#elif defined(REFUSE_FUNCTOR_ON_RING)
// expect: toroid: this algorithm combines operands in another order
void call(group& comm) {
  std::vector<float> values(8);
  const auto first = [](float a, float) { return a; };
  toroid::all_reduce(comm, values, REFUSED(first, toroid::commutative(first)), toroid::ring{});
}

#elif defined(REFUSE_FUNCTOR_ON_RING_OF_REDUCE_SCATTER)
// expect: toroid: this algorithm combines operands in another order
void call(group& comm, std::vector<float>& in, std::vector<float>& out) {
  const auto first = [](float a, float) { return a; };
  toroid::reduce_scatter(comm, in, out, first, REFUSED(toroid::ring{}, toroid::direct{}));
}

#elif defined(REFUSE_FUNCTOR_ON_HALVING_DOUBLING)
// expect: toroid: this algorithm combines operands in another order
void call(group& comm) {
  std::vector<float> values(8);
  const auto first = [](float a, float) { return a; };
  toroid::all_reduce(comm, values, first, REFUSED(toroid::halving_doubling{}, toroid::tree{}));
}

#elif defined(REFUSE_FUNCTOR_ON_HALVING_DOUBLING_OF_REDUCE_SCATTER)
// expect: toroid: this algorithm combines operands in another order
void call(group& comm, std::vector<float>& in, std::vector<float>& out) {
  const auto first = [](float a, float) { return a; };
  toroid::reduce_scatter(comm, in, out, REFUSED(first, toroid::commutative(first)), toroid::halving_doubling{});
}

#elif defined(REFUSE_FUNCTOR_ON_TORUS)
// expect: toroid: this algorithm combines operands in another order
void call(group& comm) {
  std::vector<float> values(8);
  const auto first = [](float a, float) { return a; };
  toroid::all_reduce(comm, values, REFUSED(first, toroid::commutative(first)), toroid::torus_2d{.rows = 2});
}

#elif defined(REFUSE_REDUCE_SCATTER_ON_TREE)
// expect: toroid: reduce_scatter is done by automatic, direct, ring or halving_doubling
void call(group& comm, std::vector<float>& in, std::vector<float>& out) {
  toroid::reduce_scatter(comm, in, out, REFUSED(toroid::tree{}, toroid::halving_doubling{}));
}

#elif defined(REFUSE_ALL_GATHER_ON_TORUS)
// expect: toroid: all_gather is done by automatic, direct, ring or halving_doubling
void call(group& comm, std::vector<float>& values) {
  toroid::all_gather(comm, values, REFUSED(toroid::torus_2d{}, toroid::halving_doubling{}));
}

#elif defined(REFUSE_BROADCAST_ON_HALVING_DOUBLING)
// expect: toroid: broadcast is done by automatic, direct, ring or tree
void call(group& comm, std::vector<float>& values) {
  toroid::broadcast(comm, values, 0, REFUSED(toroid::halving_doubling{}, toroid::tree{}));
}

#elif defined(REFUSE_REDUCE_ON_HALVING_DOUBLING)
// expect: toroid: reduce is done by automatic, direct, ring or tree
void call(group& comm, std::vector<float>& values) {
  toroid::reduce(comm, values, 0, REFUSED(toroid::halving_doubling{}, toroid::tree{}));
}

#elif defined(REFUSE_FUNCTOR_ON_RING_OF_REDUCE)
// expect: toroid: this algorithm combines operands in another order
void call(group& comm, std::vector<float>& values) {
  const auto first = [](float a, float) { return a; };
  toroid::reduce(comm, values, 0, first, REFUSED(toroid::ring{}, toroid::tree{}));
}

#elif defined(REFUSE_GATHER_ON_RING)
// expect: toroid: gather is done by automatic or direct
void call(group& comm, std::vector<float>& in, std::vector<float>& out) {
  toroid::gather(comm, in, out, 0, REFUSED(toroid::ring{}, toroid::direct{}));
}

#elif defined(REFUSE_SCATTER_ON_TREE)
// expect: toroid: scatter is done by automatic or direct
void call(group& comm, std::vector<float>& in, std::vector<float>& out) {
  toroid::scatter(comm, in, out, 0, REFUSED(toroid::tree{}, toroid::direct{}));
}

#elif defined(REFUSE_AVERAGE_OF_INTEGERS_ON_NARROW_WIRE)
// expect: toroid: wire<W>: with this algorithm an average of integers is exact only if W holds the sum
void call(group& comm) {
  std::vector<int> values(8);
  toroid::all_reduce(comm, values, toroid::average{}, toroid::REFUSED(tree, direct){}, toroid::wire<int>);
}

#elif defined(REFUSE_AVERAGE_OF_HALVES_ON_NARROW_WIRE)
// expect: toroid: wire<W>: with this algorithm an average of half types is exact only if it travels wider
void call(group& comm, std::vector<toroid::float16>& values) {
  toroid::all_reduce(comm, values, toroid::average{}, toroid::ring{}, toroid::wire<REFUSED(toroid::bfloat16, float)>);
}

#elif defined(REFUSE_AVERAGE_OF_INTEGERS_IN_NARROW_ACCUMULATOR)
// expect: toroid: accumulate<A>: an average of integers is exact only if A holds the sum
void call(group& comm, std::vector<std::int8_t>& in, std::vector<std::int8_t>& out) {
  toroid::reduce_scatter(comm, in, out, toroid::average{}, toroid::accumulate<REFUSED(std::int16_t, std::int64_t)>);
}

#elif defined(REFUSE_INTEGERS_ON_NARROW_WIRE)
// expect: toroid: wire<W>: this W does not hold all integers of the elements' type
void call(group& comm, std::vector<int>& values) {
  toroid::all_reduce(comm, values, toroid::wire<REFUSED(short, long)>);
}

#elif defined(REFUSE_INTEGERS_AS_FLOATS)
// expect: toroid: wire<W>: floating-point numbers travel as floating-point numbers, integers as integers
void call(group& comm, std::vector<short>& values) {
  toroid::all_reduce(comm, values, toroid::wire<REFUSED(float, long)>);
}

#elif defined(REFUSE_WIRE_OF_STRUCTS)
// expect: toroid: wire<W> takes numbers
struct point {
  float x, y;
};
void call(group& comm, std::vector<point>& values) {
  const auto add = [](point a, point b) { return point{a.x + b.x, a.y + b.y}; };
  toroid::all_reduce(comm, values, add, toroid::wire<REFUSED(float, point)>);
}

#elif defined(REFUSE_NARROW_ACCUMULATOR)
// expect: toroid: accumulate<A>: this A does not hold all values of the elements
void call(group& comm, std::vector<double>& values) {
  toroid::all_reduce(comm, values, toroid::accumulate<REFUSED(float, double)>);
}

#elif defined(REFUSE_FUNCTOR_OF_ANOTHER_ACCUMULATOR)
// expect: toroid: the operator must be callable
struct only_halves {
  toroid::bfloat16 operator()(const toroid::bfloat16& a, const toroid::bfloat16&) const { return a; }
};
void call(group& comm, std::vector<toroid::bfloat16>& values) {
  toroid::all_reduce(comm, values, only_halves{}, toroid::wire<float>,
                     toroid::accumulate<REFUSED(float, toroid::bfloat16)>);
}

#elif defined(REFUSE_ANY_CHUNKING_ON_RING)
// expect: toroid: this algorithm does not fix results as strongly as toroid::require asks
void call(group& comm, std::vector<float>& values) {
  toroid::all_reduce(comm, values, toroid::REFUSED(ring, direct){}, toroid::require<toroid::determinism::any_chunking>);
}

#elif defined(REFUSE_ANY_CHUNKING_ON_TWO_TREES)
// expect: toroid: this algorithm does not fix results as strongly as toroid::require asks
void call(group& comm, std::vector<float>& values) {
  const auto add = [](float a, float b) { return a + b; };
  toroid::all_reduce(comm, values, toroid::tree{}, REFUSED(toroid::sum{}, add),
                     toroid::require<toroid::determinism::any_chunking>);
}

#elif defined(REFUSE_ANY_CHUNKING_ON_HALVING_DOUBLING_OF_REDUCE_SCATTER)
// expect: toroid: this algorithm does not fix results as strongly as toroid::require asks
void call(group& comm, std::vector<float>& in, std::vector<float>& out) {
  using toroid::determinism;
  toroid::reduce_scatter(comm, in, out, toroid::require<determinism::REFUSED(any_chunking, run_to_run)>,
                         toroid::halving_doubling{});
}

#elif defined(REFUSE_LEVEL_WITHOUT_REQUIRE)
// expect: toroid: a determinism level is asked for by toroid::require<level>
void call(group& comm, std::vector<float>& values) {
  using toroid::determinism;
  toroid::all_reduce(comm, values, REFUSED(determinism::run_to_run, toroid::require<determinism::run_to_run>));
}

#elif defined(REFUSE_TWO_WIRES)
// expect: toroid: two types were given for the wire
void call(group& comm, std::vector<float>& values) {
  toroid::all_reduce(comm, values, toroid::wire<double>, toroid::ring{}, toroid::REFUSED(wire, accumulate) < double >);
}

#elif defined(REFUSE_TWO_ACCUMULATORS)
// expect: toroid: two types were given to accumulate in
void call(group& comm, std::vector<float>& values) {
  toroid::all_reduce(comm, values, toroid::accumulate<double>, toroid::REFUSED(accumulate, wire) < double >);
}

#elif defined(REFUSE_TWO_LEVELS)
// expect: toroid: two determinism levels were required
void call(group& comm, std::vector<float>& values) {
  using toroid::determinism;
  toroid::all_reduce(comm, values, toroid::require<determinism::run_to_run>,
                     REFUSED(toroid::require<determinism::any_chunking>, toroid::sum{}));
}

#elif defined(REFUSE_WIRE_OF_BROADCAST)
// expect: toroid: broadcast combines nothing
void call(group& comm, std::vector<float>& values) {
  toroid::broadcast(comm, values, 0, REFUSED(toroid::wire<double>, toroid::ring{}));
}

#elif defined(REFUSE_WIRE_OF_ALL_GATHER)
// expect: toroid: all_gather combines nothing
void call(group& comm, std::vector<float>& in, std::vector<float>& out) {
  toroid::all_gather(comm, in, out, REFUSED(toroid::wire<toroid::bfloat16>, toroid::ring{}));
}

#elif defined(REFUSE_FUSED_TEMPORARY)
// expect: toroid: the result is a temporary and would be lost
void call(group& comm, std::vector<float>& values) {
  toroid::all_reduce(comm, toroid::fused(values, REFUSED(std::vector<float>, std::span<float>)(values)));
}

#elif defined(REFUSE_FUSED_CONST)
// expect: toroid: the result cannot be written to
void call(group& comm, std::vector<float>& values, REFUSED(const, ) std::vector<int>& counts) {
  toroid::all_reduce(comm, toroid::fused(values, counts));
}

#elif defined(REFUSE_FUSED_AVERAGE_OF_FLAGS)
// expect: toroid: average of bool has no meaning
void call(group& comm, std::vector<float>& values, REFUSED(bool, int) (&flags)[3]) {
  toroid::all_reduce(comm, toroid::fused(values, flags), toroid::average{}, toroid::ring{});
}

#elif defined(REFUSE_FUNCTOR_OF_OTHER_TYPE)
// expect: toroid: the operator must be callable
struct number {
  double value;
};
void call(group& comm) {
  std::vector<REFUSED(number, double)> values(8);
  toroid::all_reduce(comm, values, [](double a, double b) { return a < b ? a : b; });
}

#elif defined(REFUSE_STRING_FROM_PROCESSES)
// expect: toroid: run_processes brings back trivially copyable results only
void call() {
  (void)toroid::run_processes(2, [](auto& comm) { return REFUSED(std::to_string(comm.rank()), comm.rank()); });
}

#elif defined(REFUSE_FUNCTION_WITHOUT_COMMUNICATOR)
// expect: toroid: run_threads needs a function of a communicator&
void call() {
  toroid::run_threads(2, [](REFUSED(int, auto&)) {});
}

#elif defined(REFUSE_BIT_AND_OF_FLOATS)
// expect: toroid: bit_and, bit_or and bit_xor take integers
void call(group& comm) {
  std::vector<REFUSED(float, unsigned)> values(8);
  toroid::all_reduce(comm, values, toroid::bit_and{});
}

#elif defined(REFUSE_SUM_OF_STRUCTS)
// expect: toroid: sum needs a type with the operator +
struct point {
  float x, y;
};
void call(group& comm) {
  std::vector<point> values(8);
  const auto add = [](point a, point b) { return point{a.x + b.x, a.y + b.y}; };
  toroid::all_reduce(comm, values, REFUSED(toroid::sum{}, add));
}

#elif defined(REFUSE_TWO_ALGORITHMS)
// expect: toroid: two algorithms were given
void call(group& comm) {
  std::vector<float> values(8);
  toroid::all_reduce(comm, values, toroid::ring{}, REFUSED(toroid::direct{}, toroid::sum{}));
}

#elif defined(REFUSE_TWO_OPERATORS)
// expect: toroid: two operators were given
void call(group& comm) {
  std::vector<float> values(8);
  toroid::all_reduce(comm, values, toroid::sum{}, REFUSED(toroid::average{}, toroid::direct{}));
}

#elif defined(REFUSE_STRAY_ARGUMENT)
// expect: toroid: the operator must be callable
void call(group& comm) {
  std::vector<float> values(8);
  toroid::all_reduce(comm, values, REFUSED(3, toroid::sum{}));
}

#elif defined(REFUSE_GRID_OUT_OF_ORDER)
// expect: toroid: this algorithm combines operands in another order
void call(group& comm) {
  std::vector<float> values(8);
  auto grid = toroid::make_grid(comm.split(0), comm.split(comm.rank()));
  const auto last = [](float, float b) { return b; };
  toroid::all_reduce(grid, values, REFUSED(last, toroid::commutative(last)));
}

#elif defined(REFUSE_GRID_OF_TWO_WITH_ALGORITHM)
// expect: toroid: a grid of two communicators takes no algorithm
void call(group& comm) {
  std::vector<float> values(8);
  auto grid = toroid::make_grid(comm.split(0), comm.split(comm.rank()));
  toroid::all_reduce(grid, values, REFUSED(toroid::ring{}, toroid::sum{}));
}

#elif defined(REFUSE_GRID_OF_ONE_WITH_RING)
// expect: toroid: a grid is reduced by torus_2d
void call(group& comm) {
  std::vector<float> values(8);
  auto grid = toroid::make_grid(comm, {.rows = 1});
  toroid::all_reduce(grid, values, REFUSED(toroid::ring{}, toroid::torus_2d{}));
}

#elif defined(REFUSE_COLOUR_OF_FLOAT)
// expect: split
void call(group& comm) { (void)comm.split(REFUSED(1.5, 1)); }

#elif defined(REFUSE_ALLOCATE_STRINGS)
// expect: is_trivially_copyable_v
void call(group& comm) { (void)toroid::allocate<REFUSED(std::string, char)>(comm, 8); }

#elif defined(REFUSE_TEMPORARY_INPUT_IN_FLIGHT)
// expect: toroid: the input is a temporary
void call(group& comm, std::vector<float>& values) {
  const std::vector<float> in(8);
  toroid::start_all_reduce(comm, REFUSED(std::vector<float>(8), in), values).wait();
}

#elif defined(REFUSE_TEMPORARY_RESULT_IN_FLIGHT)
// expect: toroid: the result is a temporary
void call(group& comm, std::vector<float>& values) {
  toroid::start_all_reduce(comm, values, REFUSED(std::vector<float>(8), values)).wait();
}

#elif defined(REFUSE_COPY_OF_PENDING)
// expect: deleted
void call(toroid::pending& one) { const toroid::pending other = REFUSED(one, std::move(one)); }

#else
#error "define one of the sections"
#endif
