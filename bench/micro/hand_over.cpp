// SPDX-License-Identifier: Apache-2.0
#include "micro.hpp"
#include "toroid_bench/timing.hpp"

#include <toroid/transport/threads.hpp>
#include <toroid/transport/waiting.hpp>

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace bench::micro {
namespace {

using toroid::transport::threads;

constexpr std::size_t most_bytes = std::size_t{64} << 10;
constexpr std::uint64_t stop = std::numeric_limits<std::uint64_t>::max();

/// Two flags without the library: as fast as these two cores can be.
class bare_flags {
 public:
  struct end {
    explicit end(bare_flags& all, int rank) : m_all(all), m_rank(rank) {}
    void signal(std::uint64_t value) { m_all.m_flags[m_rank].value.store(value, std::memory_order_release); }
    void wait(std::uint64_t value) const {
      while (load() < value) relax();
    }
    std::uint64_t load() const { return m_all.m_flags[1 - m_rank].value.load(std::memory_order_acquire); }
    std::byte* mine(std::uint64_t turn) const { return m_all.m_slots[m_rank][turn % 2]; }
    const std::byte* theirs(std::uint64_t turn) const { return m_all.m_slots[1 - m_rank][turn % 2]; }

   private:
    bare_flags& m_all;
    int m_rank;
  };
  end join(int rank) { return end(*this, rank); }

 private:
  struct alignas(128) flag {
    std::atomic<std::uint64_t> value{0};
  };
  flag m_flags[2];
  alignas(4096) std::byte m_slots[2][2][most_bytes] = {};
};

/// The library's: endpoints of the transport over threads, as a communicator has them.
class library_flags {
 public:
  class end {
   public:
    end(int rank, std::shared_ptr<threads::shared_memory> memory) : m_rank(rank), m_transport(rank, memory, {}) {}
    void signal(std::uint64_t value) { m_transport.signal(m_transport.box(m_rank).progress, value); }
    void wait(std::uint64_t value) { m_transport.wait(1 - m_rank, m_transport.box(1 - m_rank).progress, value, {}); }
    std::uint64_t load() const { return m_transport.box(1 - m_rank).progress.load(std::memory_order_acquire); }
    std::byte* mine(std::uint64_t turn) const { return m_transport.region(m_rank, int(turn % 2)); }
    const std::byte* theirs(std::uint64_t turn) const { return m_transport.region(1 - m_rank, int(turn % 2)); }

   private:
    int m_rank;
    threads m_transport;
  };
  end join(int rank) { return end(rank, m_memory); }

 private:
  std::shared_ptr<threads::shared_memory> m_memory = std::make_shared<threads::shared_memory>(2, most_bytes);
};

/// There and back: rank 0 writes a slot and signals, rank 1 reads it, writes its own and signals.
template <class Flags>
void there_and_back(benchmark::State& state) {
  const std::vector<int> cores = usable_cores();
  if (cores.size() < 2) {
    state.SkipWithError("needs two cores");
    return;
  }
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto flags = std::make_unique<Flags>();
  const pinned here(cores[0]);
  std::thread peer([&] {
    const pinned there(cores[1]);
    auto end = flags->join(1);
    const page_buffer own(bytes);
    for (std::uint64_t turn = 1;; ++turn) {
      end.wait(turn);
      if (end.load() == stop) return;
      std::memcpy(own.data(), end.theirs(turn), bytes);
      std::memcpy(end.mine(turn), own.data(), bytes);
      end.signal(turn);
    }
  });
  auto end = flags->join(0);
  const page_buffer own(bytes);
  const page_buffer back(bytes);
  std::uint64_t turn = 0;
  std::size_t wrong = 0;
  for (auto _ : state) {
    ++turn;
    if (bytes != 0) std::memcpy(own.data(), &turn, std::min(bytes, sizeof turn));
    std::memcpy(end.mine(turn), own.data(), bytes);
    end.signal(turn);
    end.wait(turn);
    std::memcpy(back.data(), end.theirs(turn), bytes);
    if (bytes != 0 && std::memcmp(back.data(), own.data(), std::min(bytes, sizeof turn)) != 0) ++wrong;
  }
  end.signal(stop);
  peer.join();
  if (wrong != 0) state.SkipWithError("what came back is not what was sent");
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * bytes));
}

template <class Flags>
void add(const char* name) {
  auto* const made = benchmark::RegisterBenchmark(name, there_and_back<Flags>);
  made->ArgName("bytes")->UseRealTime();
  for (const int bytes : {0, 8, 64, 1 << 10, 16 << 10, 64 << 10}) made->Arg(bytes);
}

}  // namespace

void register_hand_over() {
  add<bare_flags>("hand_over/bare_flags");
  add<library_flags>("hand_over/library");
}

}  // namespace bench::micro
