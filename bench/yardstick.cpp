// SPDX-License-Identifier: Apache-2.0
// The yardstick: how fast an all-reduce (float, sum) of pinned threads, written by hand for this one case and without
// the library, is on this machine.
//
//   yardstick RANKS MIN_BYTES MAX_BYTES FACTOR inplace|outofplace [direct|ring]
//             [--also BYTES]... [--iterations N] [--repeat N] [--non-temporal-from BYTES]
//
// direct  Up to 2 KiB each rank posts its vector beside a sequence number and adds up everybody's. Above, each rank
//         reduces its slice straight out of all buffers and writes it into all results, with one flag barrier on each
//         side.
// ring    Slice j starts at rank j + 1 and gains one operand on every rank it passes, through a few small slots of the
//         sender that stay in its cache; the first operand is read out of the left neighbour's buffer. Rank j writes
//         the finished slice into its own and its right neighbour's result, which passes it on.
//
// From --non-temporal-from (4 MiB unless given) results are stored past the caches.
//
// Timing rule and warm-up: toroid_bench/timing.hpp. Every result is checked, element by element.
//
// Prints CSV: algorithm,ranks,place,bytes,median_us,min_us,barrier_ns,placement,stream_gbs,bound_us
//   median_us   median over --repeat runs of the median over the calls of a run
//   barrier_ns  one flag barrier, measured beside the line; placement tells what it means
//   stream_gbs  c = a + b with non-temporal stores, all ranks, 96 MiB each, measured in this run
//   bound_us    bytes that must pass through memory (2 S per rank) / stream_gbs, for sizes beyond the caches
//   Both are 0 where no size of the run is beyond the caches.
#include "toroid_bench/pattern.hpp"
#include "toroid_bench/timing.hpp"

#include <immintrin.h>

#include <exception>
#include <limits>
#include <optional>
#include <thread>

namespace {

using namespace bench;

constexpr int max_ranks = 8;
constexpr std::size_t small_bytes = 2048;
constexpr std::size_t beyond_cache = std::size_t{16} << 20;

/// Combines `in_count` sources from left to right into each of `out_count` destinations.
template <bool NonTemporal>
__attribute__((target("avx2"))) void reduce(const float* const* in, int in_count, float* const* out, int out_count,
                                            std::size_t count) {
  const auto single = [&](std::size_t i) {
    float value = in[0][i];
    for (int r = 1; r < in_count; ++r) value += in[r][i];
    for (int r = 0; r < out_count; ++r) out[r][i] = value;
  };
  std::size_t i = 0;
  if constexpr (NonTemporal)
    for (; i < count && reinterpret_cast<std::uintptr_t>(out[0] + i) % 64 != 0; ++i) single(i);
  for (; i + 32 <= count; i += 32) {
    __m256 a = _mm256_loadu_ps(in[0] + i);
    __m256 b = _mm256_loadu_ps(in[0] + i + 8);
    __m256 c = _mm256_loadu_ps(in[0] + i + 16);
    __m256 d = _mm256_loadu_ps(in[0] + i + 24);
    for (int r = 1; r < in_count; ++r) {
      a = _mm256_add_ps(a, _mm256_loadu_ps(in[r] + i));
      b = _mm256_add_ps(b, _mm256_loadu_ps(in[r] + i + 8));
      c = _mm256_add_ps(c, _mm256_loadu_ps(in[r] + i + 16));
      d = _mm256_add_ps(d, _mm256_loadu_ps(in[r] + i + 24));
    }
    for (int r = 0; r < out_count; ++r) {
      if constexpr (NonTemporal) {
        _mm256_stream_ps(out[r] + i, a);
        _mm256_stream_ps(out[r] + i + 8, b);
        _mm256_stream_ps(out[r] + i + 16, c);
        _mm256_stream_ps(out[r] + i + 24, d);
      } else {
        _mm256_storeu_ps(out[r] + i, a);
        _mm256_storeu_ps(out[r] + i + 8, b);
        _mm256_storeu_ps(out[r] + i + 16, c);
        _mm256_storeu_ps(out[r] + i + 24, d);
      }
    }
  }
  for (; i < count; ++i) single(i);
  if constexpr (NonTemporal) _mm_sfence();
}

void reduce(bool non_temporal, const float* const* in, int in_count, float* const* out, int out_count,
            std::size_t count) {
  if (non_temporal)
    reduce<true>(in, in_count, out, out_count, count);
  else
    reduce<false>(in, in_count, out, out_count, count);
}

/// What every rank tells the others once: its buffers. And from which size on results go past the caches.
struct buffers {
  std::size_t non_temporal_from = 0;
  float* in[max_ranks] = {};
  float* out[max_ranks] = {};
};

struct alignas(128) counter {
  std::atomic<std::uint64_t> value{0};
};

class direct {
 public:
  direct(meeting& place, const buffers& user) : m_place(place), m_user(user) {}

  class rank {
   public:
    rank(direct& shared, int self) : m_shared(shared), m_self(self) {}

    void all_reduce(std::size_t count) {
      if (count * sizeof(float) <= small_bytes)
        one_shot(count);
      else
        two_shot(count);
    }

   private:
    void one_shot(std::size_t count) {
      const int ranks = m_shared.m_place.ranks();
      auto& slots = m_shared.m_slots[++m_call % 2];
      std::memcpy(slots[m_self].data, m_shared.m_user.in[m_self], count * sizeof(float));
      slots[m_self].sequence.store(m_call, std::memory_order_release);
      const float* in[max_ranks];
      for (int r = 0; r < ranks; ++r) {
        m_shared.m_place.wait_for(slots[r].sequence, m_call);
        in[r] = slots[r].data;
      }
      float* out = m_shared.m_user.out[m_self];
      std::size_t i = 0;
      for (; i + 4 <= count; i += 4) {
        __m128 value = _mm_loadu_ps(in[0] + i);
        for (int r = 1; r < ranks; ++r) value = _mm_add_ps(value, _mm_loadu_ps(in[r] + i));
        _mm_storeu_ps(out + i, value);
      }
      for (; i < count; ++i) {
        float value = in[0][i];
        for (int r = 1; r < ranks; ++r) value += in[r][i];
        out[i] = value;
      }
    }

    void two_shot(std::size_t count) {
      const int ranks = m_shared.m_place.ranks();
      barrier();
      const std::size_t from = count * std::size_t(m_self) / std::size_t(ranks);
      const std::size_t to = count * std::size_t(m_self + 1) / std::size_t(ranks);
      const float* in[max_ranks];
      float* out[max_ranks];
      for (int r = 0; r < ranks; ++r) {
        in[r] = m_shared.m_user.in[r] + from;
        out[r] = m_shared.m_user.out[r] + from;
      }
      reduce(count * sizeof(float) >= m_shared.m_user.non_temporal_from, in, ranks, out, ranks, to - from);
      barrier();
    }

    void barrier() {
      m_shared.m_arrived[m_self].value.store(++m_epoch, std::memory_order_release);
      for (int r = 0; r < m_shared.m_place.ranks(); ++r)
        if (r != m_self) m_shared.m_place.wait_for(m_shared.m_arrived[r].value, m_epoch);
    }

    direct& m_shared;
    int m_self;
    std::uint64_t m_call = 0;
    std::uint64_t m_epoch = 0;
  };

 private:
  struct alignas(128) slot {
    std::atomic<std::uint64_t> sequence{0};
    alignas(16) float data[small_bytes / sizeof(float)];
  };

  meeting& m_place;
  const buffers& m_user;
  counter m_arrived[max_ranks];
  slot m_slots[2][max_ranks];
};

/// Every slice goes round in pieces. Pieces of one group follow each other through a step, so that a rank finds its
/// next piece ready while its neighbour works on the one after; twice as many slots as a group has pieces let the next
/// step begin while the last one is still being read.
class ring {
 public:
  ring(meeting& place, const buffers& user)
      : m_place(place), m_user(user), m_slots(std::size_t(place.ranks()) * slots * piece_bytes) {}

  class rank {
   public:
    rank(ring& shared, int self)
        : m_shared(shared),
          m_ranks(shared.m_place.ranks()),
          m_self(self),
          m_left((self + m_ranks - 1) % m_ranks),
          m_right((self + 1) % m_ranks) {}

    void all_reduce(std::size_t count) {
      ring& s = m_shared;
      s.m_entered[m_self].value.store(++m_call, std::memory_order_release);
      s.m_place.wait_for(s.m_entered[m_left].value, m_call);

      const std::size_t longest = (count + std::size_t(m_ranks) - 1) / std::size_t(m_ranks);
      const std::size_t pieces = (longest + piece_elements - 1) / piece_elements;
      const bool streaming = count * sizeof(float) >= s.m_user.non_temporal_from;
      for (std::size_t first = 0; first < pieces; first += group) {
        const std::size_t last = std::min(first + group, pieces);
        for (int step = 1; step < m_ranks; ++step)
          for (std::size_t piece = first; piece < last; ++piece) reduce_piece(count, step, piece, streaming);
        for (int step = 1; step < m_ranks; ++step)
          for (std::size_t piece = first; piece < last; ++piece) gather_piece(count, step, piece, streaming);
      }
      // The right neighbour may still be reading this rank's input.
      s.m_place.wait_for(s.m_read[m_right].value, m_read);
    }

   private:
    struct range {
      std::size_t begin, count;
    };
    range range_of(std::size_t count, int slice, std::size_t piece) const {
      const std::size_t from = count * std::size_t(slice) / std::size_t(m_ranks);
      const std::size_t to = count * std::size_t(slice + 1) / std::size_t(m_ranks);
      const std::size_t begin = std::min(from + piece * piece_elements, to);
      return {begin, std::min(begin + piece_elements, to) - begin};
    }

    /// Adds the own operand to what the left neighbour has.
    void reduce_piece(std::size_t count, int step, std::size_t piece, bool streaming) {
      ring& s = m_shared;
      const bool finishes = step == m_ranks - 1;
      const range at = range_of(count, (m_self - 1 - step + 2 * m_ranks) % m_ranks, piece);
      const float* in[2] = {s.m_user.in[m_left] + at.begin, s.m_user.in[m_self] + at.begin};
      if (step > 1) {
        s.m_place.wait_for(s.m_posted[m_left].value, m_taken + 1);
        in[0] = s.slot(m_left, m_taken);
      }
      if (finishes) {
        float* out[2] = {s.m_user.out[m_self] + at.begin, s.m_user.out[m_right] + at.begin};
        reduce(streaming && m_ranks == 2, in, 2, out, 2, at.count);
        s.m_pushed[m_self].value.store(++m_pushed, std::memory_order_release);
      } else {
        if (m_posted >= slots) s.m_place.wait_for(s.m_freed[m_right].value, m_posted + 1 - slots);
        float* out[1] = {s.slot(m_self, m_posted)};
        reduce<false>(in, 2, out, 1, at.count);
        s.m_posted[m_self].value.store(++m_posted, std::memory_order_release);
      }
      if (step > 1)
        s.m_freed[m_self].value.store(++m_taken, std::memory_order_release);
      else
        s.m_read[m_self].value.store(++m_read, std::memory_order_release);
    }

    /// Waits for what the left neighbour puts into the own result, and passes it on unless the right one began it.
    void gather_piece(std::size_t count, int step, std::size_t piece, bool streaming) {
      ring& s = m_shared;
      s.m_place.wait_for(s.m_pushed[m_left].value, ++m_received);
      if (step == m_ranks - 1) return;
      const range at = range_of(count, (m_self - step + m_ranks) % m_ranks, piece);
      const float* in[1] = {s.m_user.out[m_self] + at.begin};
      float* out[1] = {s.m_user.out[m_right] + at.begin};
      reduce(streaming && step == m_ranks - 2, in, 1, out, 1, at.count);  // the last one does not read it again
      s.m_pushed[m_self].value.store(++m_pushed, std::memory_order_release);
    }

    ring& m_shared;
    int m_ranks, m_self, m_left, m_right;
    std::uint64_t m_call = 0;
    std::uint64_t m_posted = 0, m_taken = 0;     // slots: own ones filled, the left neighbour's used up
    std::uint64_t m_pushed = 0, m_received = 0;  // pieces of results
    std::uint64_t m_read = 0;                    // pieces of the left neighbour's input that are done with
  };

 private:
  static constexpr std::size_t group = 2;
  static constexpr std::size_t slots = 2 * group;
  static constexpr std::size_t piece_bytes = std::size_t{64} << 10;
  static constexpr std::size_t piece_elements = piece_bytes / sizeof(float);

  float* slot(int owner, std::uint64_t use) const {
    return reinterpret_cast<float*>(m_slots.data() + (std::size_t(owner) * slots + use % slots) * piece_bytes);
  }

  meeting& m_place;
  const buffers& m_user;
  page_buffer m_slots;
  counter m_entered[max_ranks], m_posted[max_ranks], m_freed[max_ranks], m_pushed[max_ranks], m_read[max_ranks];
};

/// Streaming bandwidth of all ranks together, GB/s. Called by every rank.
double stream_bandwidth(member& self, int ranks) {
  constexpr std::size_t bytes = std::size_t{96} << 20, count = bytes / sizeof(float);
  const page_buffer x(bytes), y(bytes), z(bytes);
  const float* in[2] = {reinterpret_cast<float*>(x.data()), reinterpret_cast<float*>(y.data())};
  float* out[1] = {reinterpret_cast<float*>(z.data())};
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (int k = 0; k < 4; ++k) {
    self.barrier();
    const std::int64_t begin = now_ns();
    reduce<true>(in, 2, out, 1, count);
    self.barrier();
    best = std::min(best, now_ns() - begin);
  }
  return 3.0 * double(bytes) * ranks / double(best);
}

struct arguments {
  int ranks = 0;
  std::vector<std::size_t> sizes;
  bool in_place = false;
  std::string algorithm = "direct";
  int iterations = 0;  // 0: by size
  int repeat = 1;
  std::size_t non_temporal_from = std::size_t{4} << 20;
};

std::size_t number(std::string_view text) {
  std::size_t value = 0;
  if (text.empty()) throw std::invalid_argument("a number is missing");
  for (const char c : text) {
    if (c < '0' || c > '9' || value > std::numeric_limits<std::size_t>::max() / 10 - 10)
      throw std::invalid_argument("not a number: " + std::string(text));
    value = value * 10 + std::size_t(c - '0');
  }
  return value;
}

arguments parse(int argc, char** argv) {
  arguments result;
  std::vector<std::string_view> words;
  std::vector<std::size_t> also;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.substr(0, 2) != "--") {
      words.push_back(word);
      continue;
    }
    const std::size_t value = number(i + 1 < argc ? argv[++i] : "");
    if (word == "--also")
      also.push_back(value);
    else if (word == "--iterations")
      result.iterations = int(std::clamp<std::size_t>(value, 1, 1'000'000));
    else if (word == "--non-temporal-from")
      result.non_temporal_from = value;
    else if (word == "--repeat")
      result.repeat = int(std::clamp<std::size_t>(value, 1, 1'000));
    else
      throw std::invalid_argument("unknown option " + std::string(word));
  }
  if (words.size() < 5 || words.size() > 6) throw std::invalid_argument("five or six words expected");
  const std::size_t ranks = number(words[0]), low = number(words[1]), high = number(words[2]);
  const std::size_t factor = number(words[3]);
  if (ranks < 2 || ranks > max_ranks) throw std::invalid_argument("RANKS is 2 to " + std::to_string(max_ranks));
  if (low < sizeof(float) || high < low || factor < 2) throw std::invalid_argument("no such sizes");
  if (words[4] != "inplace" && words[4] != "outofplace") throw std::invalid_argument("inplace or outofplace expected");
  if (words.size() == 6) result.algorithm = words[5];
  if (result.algorithm != "direct" && result.algorithm != "ring")
    throw std::invalid_argument("direct or ring expected, not " + result.algorithm);
  result.ranks = int(ranks);
  result.in_place = words[4] == "inplace";
  result.sizes = sizes_between(low, high, factor, also);
  for (const std::size_t bytes : result.sizes)
    if (bytes < sizeof(float) || bytes % sizeof(float) != 0)
      throw std::invalid_argument(std::to_string(bytes) + " bytes are not a whole number of floats");
  return result;
}

/// Runs all sizes on one rank; rank 0 prints.
template <class Algorithm>
void measure(const arguments& a, meeting& place, buffers& user, Algorithm& algorithm, int rank) {
  const std::vector<int> cores = usable_cores();
  const pinned here(cores[std::size_t(rank) % cores.size()]);
  member self(place, rank);
  const page_buffer input(a.sizes.back());
  std::optional<page_buffer> output;
  if (!a.in_place) output.emplace(a.sizes.back());
  std::byte* const in = input.data();
  std::byte* const out = a.in_place ? in : output->data();
  user.in[rank] = reinterpret_cast<float*>(in);
  user.out[rank] = reinterpret_cast<float*>(out);
  typename Algorithm::rank caller(algorithm, rank);

  const auto given = pattern::of<float>([&](std::size_t phase) { return float(phase) + float(rank); });
  const auto wanted = pattern::of<float>(
      [&](std::size_t phase) { return float(a.ranks) * float(phase) + float(a.ranks * (a.ranks - 1) / 2); });

  const double stream = a.sizes.back() >= beyond_cache ? stream_bandwidth(self, a.ranks) : 0;
  std::size_t call = 0;
  for (const std::size_t bytes : a.sizes) {
    const std::size_t count = bytes / sizeof(float);
    const int iterations = a.iterations != 0 ? a.iterations : iterations_for(bytes, place.crowded());
    std::vector<double> medians, probes;
    double least = std::numeric_limits<double>::max();
    for (int run = 0; run < a.repeat; ++run) {
      probes.push_back(self.probe());
      std::vector<double> samples;
      for (int i = 0; i <= iterations; ++i, ++call) {
        given.fill(in, 0, count, call);
        self.barrier();
        self.barrier();
        self.stamp_start();
        caller.all_reduce(count);
        self.stamp_end();
        self.barrier();
        if (rank == 0 && i > 0) samples.push_back(times_of(place).time);
        if (wanted.wrong(out, 0, count, call) != 0) throw std::runtime_error("wrong result");
        if (!a.in_place && given.wrong(in, 0, count, call) != 0) throw std::runtime_error("an input has changed");
        self.barrier();
      }
      probes.push_back(self.probe());
      if (rank != 0) continue;
      medians.push_back(median(samples));
      least = std::min(least, *std::min_element(samples.begin(), samples.end()));
    }
    if (rank != 0) continue;
    const std::string placement(placement_of(probes, place.crowded()));
    std::printf("%s,%d,%s,%zu,%.3f,%.3f,%.0f,%s,%.1f,%.1f\n", a.algorithm.c_str(), a.ranks, a.in_place ? "in" : "out",
                bytes, median(medians), least, median(probes), placement.c_str(), stream,
                bytes >= beyond_cache ? 2.0 * double(bytes) * a.ranks / stream / 1e3 : 0.0);
    std::fflush(stdout);
  }
}

/// Runs one function on every rank, as threads.
///
/// @throws std::runtime_error  with the text of the first error that a rank threw
template <class F>
void on_threads(meeting& place, F f) {
  const auto guarded = [&](int rank) {
    try {
      f(rank);
    } catch (const std::exception& error) {
      place.fail(error.what());
    }
  };
  std::vector<std::thread> threads;
  for (int r = 1; r < place.ranks(); ++r) threads.emplace_back(guarded, r);
  guarded(0);
  for (auto& thread : threads) thread.join();
  if (const std::string why = place.why_failed(); !why.empty()) throw std::runtime_error(why);
}

template <class Algorithm>
void run(const arguments& a) {
  meeting place(a.ranks, a.ranks > int(usable_cores().size()));
  buffers user;
  user.non_temporal_from = a.non_temporal_from;
  const auto algorithm = std::make_unique<Algorithm>(place, user);
  std::printf("algorithm,ranks,place,bytes,median_us,min_us,barrier_ns,placement,stream_gbs,bound_us\n");
  on_threads(place, [&](int rank) { measure(a, place, user, *algorithm, rank); });
}

}  // namespace

int main(int argc, char** argv) {
  arguments a;
  try {
    a = parse(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "yardstick: %s\n", error.what());
    std::fprintf(stderr,
                 "usage: yardstick RANKS MIN_BYTES MAX_BYTES FACTOR inplace|outofplace [direct|ring]\n"
                 "                 [--also BYTES]... [--iterations N] [--repeat N] [--non-temporal-from BYTES]\n");
    return 2;
  }
  if (!__builtin_cpu_supports("avx2")) {
    std::fprintf(stderr, "yardstick: its loops are written for AVX2, which this processor lacks\n");
    return 2;
  }
  try {
    if (a.algorithm == "ring")
      run<ring>(a);
    else
      run<direct>(a);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "yardstick: %s\n", error.what());
    return 1;
  }
  return 0;
}
