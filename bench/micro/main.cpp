// SPDX-License-Identifier: Apache-2.0
// toroid-micro: the library's parts by themselves, under Google Benchmark.
//
//   sum/TYPE/SOURCES/SET/LEVEL   the reduction kernels of one instruction set, one thread; the operands of LEVEL fill
//   half
//                                of that cache; bytes_per_second counts all sources and the destination
//   copy/SET/LEVEL               the same of the copying kernel; streamed: with non-temporal stores
//   hand_over/WHOSE/bytes:N      a slot of N bytes there and back between two pinned threads: by the library's signal
//                                and wait, and by bare flags, which show what the two cores allow
//   walk/SCHEDULE/ranks/pieces   a schedule walked by an executor that does nothing, on one rank
//
// Each checks what it has done, and reports an error where that was wrong. --benchmark_filter=REGEX chooses.
#include "micro.hpp"

#include <benchmark/benchmark.h>

#include <vector>

int main(int argc, char** argv) {
  // There are hundreds: a tenth of a second each unless asked otherwise, which a later argument does.
  char brief[] = "--benchmark_min_time=0.1";
  std::vector<char*> arguments(argv, argv + argc);
  arguments.insert(arguments.begin() + 1, brief);
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  bench::micro::register_reduce_kernels();
  bench::micro::register_hand_over();
  bench::micro::register_schedule_walk();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
