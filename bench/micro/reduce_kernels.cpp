// SPDX-License-Identifier: Apache-2.0
#include "micro.hpp"
#include "toroid_bench/timing.hpp"

#include <toroid/core/detail/kernels.hpp>
#include <toroid/core/half.hpp>
#include <toroid/core/operators.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bench::micro {
namespace {

using toroid::detail::instruction_set;
using toroid::detail::reduce_arguments;
using toroid::detail::reduce_function;

constexpr std::size_t most_sources = 4;

/// A part of the memory hierarchy, and how many bytes lie well inside it.
struct level {
  std::string name;
  std::size_t bytes;
  bool beyond_caches = false;
};

/// Half of each cache, so that what else runs does not push it out; and, beyond the last, four times that.
std::vector<level> levels() {
  constexpr std::size_t most = std::size_t{1} << 30;
  std::vector<level> found;
  std::size_t last = std::size_t{16} << 20;
  for (const auto& cache : benchmark::CPUInfo::Get().caches) {
    if (cache.type == "Instruction" || cache.size <= 0) continue;
    const auto size = static_cast<std::size_t>(cache.size);
    found.push_back({"L" + std::to_string(cache.level), size / 2});
    last = size;
  }
  found.push_back({"memory", std::min(4 * last, std::max(most, 2 * last)), true});
  return found;
}

/// What the kernels of one element type are called with; all sources hold the same small whole numbers.
template <class T>
class operands {
 public:
  /// @param total  bytes of all sources and the destination together
  operands(std::size_t sources, std::size_t total)
      : m_count(std::max<std::size_t>(1, total / (sources + 1) / sizeof(T))) {
    for (std::size_t i = 0; i <= sources; ++i) {
      m_buffers.push_back(std::make_unique<page_buffer>(m_count * sizeof(T)));
      for (std::size_t k = 0; k < m_count; ++k) {
        const T value = value_at(k, 1);
        std::memcpy(m_buffers.back()->data() + k * sizeof(T), &value, sizeof(T));
      }
    }
    for (std::size_t i = 0; i < sources; ++i) m_sources[i] = m_buffers[i]->data();
    m_destination = m_buffers.back()->data();
  }

  reduce_arguments arguments(std::size_t count, bool non_temporal) const {
    reduce_arguments a;
    a.sources = m_sources.data();
    a.source_count = static_cast<int>(m_buffers.size() - 1);
    a.destinations = &m_destination;
    a.destination_count = 1;
    a.count = count;
    a.non_temporal = non_temporal;
    return a;
  }
  std::size_t count() const { return m_count; }
  std::size_t bytes_touched() const { return m_buffers.size() * m_count * sizeof(T); }

  /// Whether the destination holds each number `factor` times.
  bool right(int factor) const {
    for (std::size_t k = 0; k < m_count; ++k) {
      const T wanted = value_at(k, factor);
      if (std::memcmp(m_destination + k * sizeof(T), &wanted, sizeof(T)) != 0) return false;
    }
    return true;
  }

 private:
  static T value_at(std::size_t k, int factor) { return T(float(factor) * float(k % 31)); }

  std::size_t m_count;
  std::vector<std::unique_ptr<page_buffer>> m_buffers;
  std::array<const std::byte*, most_sources> m_sources{};
  std::byte* m_destination = nullptr;
};

template <class T>
void run(benchmark::State& state, reduce_function function, std::size_t sources, std::size_t total, bool copies,
         bool non_temporal) {
  const pinned here(usable_cores().front());
  const operands<T> with(sources, total);
  const reduce_arguments arguments = with.arguments(copies ? with.count() * sizeof(T) : with.count(), non_temporal);
  for (auto _ : state) {
    function(arguments);
    benchmark::ClobberMemory();
  }
  if (!with.right(static_cast<int>(sources))) state.SkipWithError("the result is wrong");
  const auto iterations = static_cast<std::size_t>(state.iterations());
  state.SetBytesProcessed(static_cast<std::int64_t>(iterations * with.bytes_touched()));
  state.counters["elements"] = static_cast<double>(with.count());
}

const char* name_of(instruction_set set) {
  switch (set) {
    case instruction_set::baseline:
      return "baseline";
    case instruction_set::avx2:
      return "avx2";
    case instruction_set::avx512:
      return "avx512";
  }
  return "?";
}

/// Those that this processor has.
std::vector<instruction_set> instruction_sets() {
  std::vector<instruction_set> result;
  for (const auto set : {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512})
    if (set <= toroid::detail::detected_instruction_set()) result.push_back(set);
  return result;
}

template <class T>
void add(const std::string& name, reduce_function function, std::size_t sources, instruction_set set, bool copies) {
  for (const level& where : levels()) {
    const auto each = [&](bool non_temporal) {
      const std::string full = name + "/" + name_of(set) + "/" + where.name + (non_temporal ? "/streamed" : "");
      benchmark::RegisterBenchmark(full.c_str(), [=](benchmark::State& state) {
        run<T>(state, function, sources, where.bytes, copies, non_temporal);
      });
    };
    each(false);
    if (where.beyond_caches) each(true);
  }
}

template <class T>
void add_sums(const std::string& type) {
  for (std::size_t sources = 2; sources <= most_sources; ++sources)
    for (const instruction_set set : instruction_sets())
      add<T>("sum/" + type + "/" + std::to_string(sources) + "_sources",
             toroid::detail::reduction_for<T, toroid::sum>(set), sources, set, false);
}

}  // namespace

void register_reduce_kernels() {
  add_sums<float>("float");
  add_sums<double>("double");
  add_sums<toroid::bfloat16>("bfloat16");
  add_sums<toroid::float16>("float16");
  for (const instruction_set set : instruction_sets()) add<float>("copy", toroid::detail::copy_for(set), 1, set, true);
}

}  // namespace bench::micro
