// SPDX-License-Identifier: Apache-2.0
#include "toroid_bench/pattern.hpp"
#include "toroid_bench/timing.hpp"

#include <toroid/collective/detail/collective_call.hpp>
#include <toroid/core/detail/cache_size.hpp>
#include <toroid/core/detail/kernels.hpp>
#include <toroid/topology/block.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

/// The part of an all-reduce that nothing can save: two pinned threads, each of which reads its half of both vectors,
/// adds them up and writes the sums into both, with the library's reduction loop and without any call, flag or check.
/// Before each pass every thread rewrites its own vector, so that half of what it reads stands in the other core's
/// cache. By the timing rule of toroid_bench/timing.hpp.
namespace {

using namespace bench;

struct settings {
  std::vector<std::size_t> sizes;
  bool is_bfloat16 = true;
  int repeat = 1;
};

class kernel_alone {
 public:
  kernel_alone(const settings& what, meeting& place)
      : m_what(what), m_place(place), m_vectors{page_buffer(what.sizes.back()), page_buffer(what.sizes.back())} {
    const auto set = toroid::detail::detected_instruction_set();
    const auto value = [](std::size_t phase) { return float(phase % 16); };  // sums are exact in bfloat16
    if (what.is_bfloat16) {
      m_reduce = toroid::detail::reduction_for<toroid::bfloat16, toroid::sum>(set);
      m_given = pattern::of<toroid::bfloat16>([&](std::size_t p) { return toroid::bfloat16(value(p)); });
      m_wanted = pattern::of<toroid::bfloat16>([&](std::size_t p) { return toroid::bfloat16(2 * value(p)); });
    } else {
      m_reduce = toroid::detail::reduction_for<float, toroid::sum>(set);
      m_given = pattern::of<float>(value);
      m_wanted = pattern::of<float>([&](std::size_t p) { return 2 * value(p); });
    }
  }

  void run(int rank, int core) {
    const pinned here(core);
    member self(m_place, rank);
    for (const std::size_t bytes : m_what.sizes) measure(self, rank, bytes);
  }

 private:
  void measure(member& self, int rank, std::size_t bytes) {
    const std::size_t size = m_what.is_bfloat16 ? 2 : 4, count = bytes / size;
    const int iterations = iterations_for(bytes, m_place.crowded());
    std::vector<double> medians, probes{self.probe()};
    for (int run = 0; run < m_what.repeat; ++run) {
      std::vector<double> times;
      for (int i = 0; i <= iterations; ++i, ++m_calls[rank].count) {
        m_given.fill(m_vectors[rank].data(), 0, count, m_calls[rank].count);
        self.barrier();
        self.barrier();
        self.stamp_start();
        add_up(rank, count, size, bytes);
        self.stamp_end();
        self.barrier();
        if (rank == 0 && i > 0) times.push_back(times_of(m_place).time);
        m_place.line(rank).wrong = m_wanted.wrong(m_vectors[rank].data(), 0, count, m_calls[rank].count);
        self.barrier();
        if (rank == 0) m_place.total().wrong += m_place.line(0).wrong + m_place.line(1).wrong;
      }
      medians.push_back(median(times));
      probes.push_back(self.probe());
    }
    if (rank != 0) return;
    std::printf("%s,%zu,%.3f,%.0f,%s,%llu\n", m_what.is_bfloat16 ? "bfloat16" : "float", bytes, median(medians),
                median(probes), std::string(placement_of(probes, m_place.crowded())).c_str(),
                static_cast<unsigned long long>(m_place.total().wrong));
    std::fflush(stdout);
  }

  void add_up(int rank, std::size_t count, std::size_t size, std::size_t bytes) {
    const toroid::block own = toroid::block_of(count, 2, rank);
    const std::byte* const sources[] = {m_vectors[0].data() + own.begin * size, m_vectors[1].data() + own.begin * size};
    std::byte* const destinations[] = {m_vectors[0].data() + own.begin * size, m_vectors[1].data() + own.begin * size};
    toroid::detail::reduce_arguments arguments;
    arguments.sources = sources;
    arguments.source_count = 2;
    arguments.destinations = destinations;
    arguments.destination_count = 2;
    arguments.count = own.count;
    arguments.finish = true;
    arguments.divisor = 2;
    arguments.non_temporal = bytes >= toroid::detail::bytes_beyond_caches(2);
    m_reduce(arguments);
  }

  struct alignas(128) call_count {
    std::size_t count = 0;
  };

  const settings& m_what;
  meeting& m_place;
  page_buffer m_vectors[2];
  call_count m_calls[2];
  toroid::detail::reduce_function m_reduce = nullptr;
  pattern m_given, m_wanted;
};

}  // namespace

int main(int count, char** words) {
  settings what;
  std::uint64_t low = 256 << 10, high = 64 << 20, factor = 4;
  CLI::App app("Times the reduction loop alone, on two threads and lines just rewritten by both.");
  app.add_flag("--float{false},--bfloat16{true}", what.is_bfloat16, "the element type; bfloat16 by default");
  app.add_option("--min-bytes", low, "smallest size of the vectors")->transform(CLI::AsSizeValue(false));
  app.add_option("--max-bytes", high, "largest size")->transform(CLI::AsSizeValue(false));
  app.add_option("--factor", factor, "from one size to the next")
      ->check(CLI::Range(std::uint64_t{2}, std::uint64_t{1} << 40));
  app.add_option("--repeat", what.repeat, "runs of a line")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, count, words);
  try {
    what.sizes = sizes_between(low, high, factor, {});
    if (low == 0 || what.sizes.empty()) throw std::runtime_error("no size to measure");
    const std::vector<int> cores = usable_cores();
    meeting place(2, cores.size() < 2);
    kernel_alone both(what, place);
    std::printf("type,bytes,time_us,barrier_ns,placement,wrong\n");
    std::thread other([&] { both.run(1, cores[1 % cores.size()]); });
    both.run(0, cores[0]);
    other.join();
    return place.total().wrong != 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernel-alone: %s\n", error.what());
    return 1;
  }
}
