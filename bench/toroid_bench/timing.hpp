// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

/// The one timing rule of every program here, and what it stands on. Nothing of the library is used, so that measuring
/// does not lean on what is measured.
///
/// Before each call every rank rewrites its own buffer, as a program that computes would, and passes two barriers. Each
/// rank stamps its start, calls, stamps its end. The time of a call is the latest end minus the latest start over the
/// ranks; the figure of a run is the median over its calls; the figure of a line is the median of several runs'
/// medians. The first call of a run is verified like the others but not timed: it maps pages and fills tables.
namespace bench {

/// Nanoseconds of the monotonic clock, which all processes of a machine share.
inline std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// The cores that this process may use.
inline std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) throw std::system_error(errno, std::generic_category(), "affinity");
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(std::size_t(core), &set)) cores.push_back(core);
  return cores;
}

/// Keeps the calling thread on one core for as long as it lives.
class pinned {
 public:
  explicit pinned(int core) {
    CPU_ZERO(&m_before);
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(std::size_t(core), &only);
    if (sched_getaffinity(0, sizeof m_before, &m_before) != 0 || sched_setaffinity(0, sizeof only, &only) != 0)
      throw std::system_error(errno, std::generic_category(), "pinning to core " + std::to_string(core));
  }
  pinned(const pinned&) = delete;
  pinned& operator=(const pinned&) = delete;
  ~pinned() { sched_setaffinity(0, sizeof m_before, &m_before); }

 private:
  cpu_set_t m_before;
};

/// What one rank writes and the others read, on lines of its own.
struct alignas(128) rank_line {
  std::atomic<std::uint64_t> arrived{0};
  std::atomic<int> process{0};
  alignas(64) std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint64_t wrong = 0;
};

/// The place where the ranks of a benchmark meet: threads, processes forked after it was made, or programs that have
/// a file open together.
class meeting {
 public:
  enum class file_role { makes, joins };

  /// For threads, and processes forked later.
  ///
  /// @param ranks    how many will meet, at least 1
  /// @param crowded  ranks outnumber cores: who waits gives its core away
  meeting(int ranks, bool crowded) : meeting(ranks, crowded, -1, file_role::makes) {}

  /// For programs of their own. One of them makes the place; the others may use it once that has been done.
  ///
  /// @param file  open for reading and writing, bytes_for(ranks) long, the same for all; may be closed afterwards
  meeting(int ranks, bool crowded, int file, file_role role)
      : m_ranks(ranks), m_crowded(crowded), m_bytes(bytes_for(ranks)) {
    const int flags = file < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
    void* memory = mmap(nullptr, m_bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mapping the meeting place");
    m_header = static_cast<header*>(memory);
    m_lines = reinterpret_cast<rank_line*>(static_cast<std::byte*>(memory) + sizeof(header));
    if (role == file_role::joins) return;
    new (m_header) header;
    for (int r = 0; r < ranks; ++r) new (m_lines + r) rank_line;
  }
  static std::size_t bytes_for(int ranks) { return sizeof(header) + std::size_t(ranks) * sizeof(rank_line); }
  meeting(const meeting&) = delete;
  meeting& operator=(const meeting&) = delete;
  ~meeting() { munmap(m_header, m_bytes); }

  int ranks() const { return m_ranks; }
  bool crowded() const { return m_crowded; }
  rank_line& line(int rank) { return m_lines[rank]; }

  /// Lets everyone who waits here give up. The first to come says why.
  void fail(const char* why) {
    if (m_header->claimed.exchange(true, std::memory_order_acq_rel)) return;
    std::strncpy(m_header->why, why, sizeof m_header->why - 1);
    m_header->failed.store(true, std::memory_order_release);
  }
  /// Why, or an empty text.
  std::string why_failed() const {
    return m_header->failed.load(std::memory_order_acquire) ? std::string(m_header->why) : std::string();
  }

  /// Totals of all lines, for who comes after the ranks have gone.
  struct totals {
    std::uint64_t wrong = 0;
    double bus_bandwidth = 0;
    std::uint64_t figures = 0;
    std::uint64_t vs_wrong = 0;  ///< of another library, timed in turn
    double vs_logarithms = 0;    ///< of the ratios to it
    std::uint64_t vs_figures = 0;
  };
  totals& total() { return m_header->total; }

  /// Waits until `value` has reached `at_least`.
  ///
  /// @throws std::runtime_error  when a rank has failed, or nothing has happened for two minutes
  void wait_for(const std::atomic<std::uint64_t>& value, std::uint64_t at_least) const {
    std::uint32_t spins = 0;
    std::int64_t deadline = 0;
    while (value.load(std::memory_order_acquire) < at_least) {
      ++spins;
      if (m_crowded && spins % 128 == 0)
        sched_yield();
      else
        relax();
      if (spins % (1u << 16) != 0) continue;
      if (m_header->failed.load(std::memory_order_acquire)) throw std::runtime_error("another rank has failed");
      for (int r = 0; r < m_ranks; ++r)
        if (const int process = m_lines[r].process; process != 0 && kill(process, 0) != 0)
          throw std::runtime_error("rank " + std::to_string(r) + " has died");
      if (deadline == 0) deadline = now_ns() + 120'000'000'000;
      if (now_ns() > deadline) throw std::runtime_error("a rank did not come to the benchmark's barrier");
    }
  }

 private:
  struct alignas(128) header {
    std::atomic<bool> claimed{false};
    std::atomic<bool> failed{false};
    char why[1000] = {};
    alignas(64) totals total;
  };

  int m_ranks;
  bool m_crowded;
  std::size_t m_bytes;
  header* m_header = nullptr;
  rank_line* m_lines = nullptr;
};

/// The value below which a share of the samples lies (nearest rank); 0 without samples.
inline double percentile(std::vector<double> samples, double share) {
  if (samples.empty()) return 0;
  const std::size_t index = std::min(samples.size() - 1, std::size_t(share * double(samples.size())));
  std::nth_element(samples.begin(), samples.begin() + std::ptrdiff_t(index), samples.end());
  return samples[index];
}
inline double median(std::vector<double> samples) { return percentile(std::move(samples), 0.5); }

/// One rank at the meeting place.
class member {
 public:
  member(meeting& place, int rank) : m_place(place), m_rank(rank) { place.line(rank).process = getpid(); }

  /// A flag barrier: everyone posts its own number and waits for everybody's.
  void barrier() {
    m_place.line(m_rank).arrived.store(++m_epoch, std::memory_order_release);
    for (int r = 0; r < m_place.ranks(); ++r)
      if (r != m_rank) m_place.wait_for(m_place.line(r).arrived, m_epoch);
  }

  /// Nanoseconds of one barrier: tells how far apart the cores are just now. The median over batches, so that an
  /// interruption of one rank does not count.
  double probe() {
    const int batches = m_place.crowded() ? 10 : 50;
    const int count = m_place.crowded() ? 20 : 400;
    std::vector<double> means;
    for (int batch = 0; batch < batches; ++batch) {
      barrier();
      const std::int64_t begin = now_ns();
      for (int i = 0; i < count; ++i) barrier();
      means.push_back(double(now_ns() - begin) / count);
    }
    return median(means);
  }

  void stamp_start() { m_place.line(m_rank).start = now_ns(); }
  void stamp_end() { m_place.line(m_rank).end = now_ns(); }

 private:
  meeting& m_place;
  int m_rank;
  std::uint64_t m_epoch = 0;
};

/// Times of one call over all ranks, in microseconds. To be asked between two barriers.
struct call_times {
  double time = 0;  ///< latest end minus latest start
  double skew = 0;  ///< latest start minus earliest start
};

inline call_times times_of(meeting& place) {
  std::int64_t first = place.line(0).start, last = first, end = place.line(0).end;
  for (int r = 1; r < place.ranks(); ++r) {
    first = std::min(first, place.line(r).start);
    last = std::max(last, place.line(r).start);
    end = std::max(end, place.line(r).end);
  }
  return {double(end - last) / 1e3, double(last - first) / 1e3};
}

/// How far apart the cores are, from the probes beside a line: only lines of one placement may be compared.
inline std::string_view placement_of(const std::vector<double>& probes, bool crowded) {
  constexpr double near_below_ns = 150;
  if (crowded) return "crowded";
  const auto near = std::count_if(probes.begin(), probes.end(), [](double ns) { return ns < near_below_ns; });
  return near == std::ptrdiff_t(probes.size()) ? "near" : near == 0 ? "far" : "mixed";
}

/// Calls in one run: as many as make the figure steady, within a bounded time.
inline int iterations_for(std::size_t bytes, bool crowded) {
  return int(std::clamp<std::size_t>(400'000'000 / std::max<std::size_t>(bytes, 1), 5, crowded ? 500 : 4000));
}

/// Sizes from `low` to `high` in steps of `factor`, and some more, in ascending order.
inline std::vector<std::size_t> sizes_between(std::size_t low, std::size_t high, std::size_t factor,
                                              std::vector<std::size_t> sizes) {
  for (std::size_t bytes = low; bytes <= high; bytes *= factor) {
    sizes.push_back(bytes);
    if (bytes > high / factor) break;
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

/// Page-aligned memory of one rank, first touched by it.
class page_buffer {
 public:
  explicit page_buffer(std::size_t bytes) : m_data(static_cast<std::byte*>(std::aligned_alloc(page, rounded(bytes)))) {
    if (m_data == nullptr) throw std::bad_alloc();
    std::memset(m_data.get(), 0, rounded(bytes));
  }
  std::byte* data() const { return m_data.get(); }

 private:
  static constexpr std::size_t page = 4096;
  static std::size_t rounded(std::size_t bytes) { return (bytes / page + 1) * page; }

  struct release {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte, release> m_data;
};

}  // namespace bench
