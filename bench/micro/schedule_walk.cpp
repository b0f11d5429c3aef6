// SPDX-License-Identifier: Apache-2.0
#include "micro.hpp"

#include <toroid/schedule/compose.hpp>
#include <toroid/schedule/direct.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/schedule/ring.hpp>
#include <toroid/schedule/walk.hpp>

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>

namespace bench::micro {
namespace {

/// Looks at every operation, and does nothing with it.
struct idle_executor {
  std::size_t operations = 0;

  void perform(const toroid::schedule::operation& op, int, std::size_t, std::size_t) {
    benchmark::DoNotOptimize(op);
    ++operations;
  }
  void finish(std::size_t) {}
};

/// What a schedule itself costs one rank in a call: everything but moving bytes and waiting.
template <class Schedule>
void walk(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  const auto pieces = static_cast<std::size_t>(state.range(1));
  const toroid::schedule::problem p{ranks / 2, ranks, 0};
  std::size_t wanted = 0;
  for (int step = 0; step < Schedule::steps(p); ++step)
    wanted += pieces * static_cast<std::size_t>(Schedule::operations(p, step));

  std::size_t walked = 0;
  for (auto _ : state) {
    idle_executor executor;
    toroid::schedule::walk<Schedule>(p, pieces, executor);
    walked += executor.operations;
  }
  if (walked != wanted * static_cast<std::size_t>(state.iterations()))
    state.SkipWithError("not every operation was handed over once");
  state.SetItemsProcessed(static_cast<std::int64_t>(walked));
  state.counters["operations"] = static_cast<double>(wanted);
}

template <class Schedule>
void add(const char* name) {
  auto* const made = benchmark::RegisterBenchmark(name, walk<Schedule>);
  made->ArgNames({"ranks", "pieces"});
  for (const int pieces : {1, 16})
    for (const int ranks : {2, 4, 8, 64, 1024, 65536}) made->Args({ranks, pieces});
}

}  // namespace

void register_schedule_walk() {
  add<toroid::schedule::one_shot_all_reduce>("walk/one_shot_all_reduce");
  add<toroid::schedule::direct_all_reduce>("walk/direct_all_reduce");
  add<toroid::schedule::ring_all_reduce>("walk/ring_all_reduce");
  add<toroid::schedule::ring_broadcast>("walk/ring_broadcast");
}

}  // namespace bench::micro
