// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/random.hpp"
#include "support/sanitizers.hpp"

#include <toroid/toroid.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

using support::demand;

template <class T>
bool all_zero(std::span<T> values) {
  return std::all_of(values.begin(), values.end(), [](T value) { return value == T{}; });
}

std::uintptr_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

}  // namespace

TEST_CASE("Allocated memory is aligned, zero and apart from the rest", "[allocate]") {
  support::run_both(2, [](auto& comm) {
    support::random_numbers random(static_cast<std::uint64_t>(comm.rank()) + 5);
    std::vector<std::span<std::uint32_t>> held;
    const auto check_apart = [&] {
      std::vector<std::span<std::uint32_t>> sorted = held;
      std::sort(sorted.begin(), sorted.end(), [](auto a, auto b) { return a.data() < b.data(); });
      for (std::size_t i = 1; i < sorted.size(); ++i)
        demand(sorted[i - 1].data() + std::max<std::size_t>(sorted[i - 1].size(), 1) <= sorted[i].data(),
               "two overlap");
    };
    for (int i = 0; i < 300; ++i) {
      if (!held.empty() && random.below(3) == 0) {
        const std::size_t which = random.below(held.size());
        for (const std::uint32_t value : held[which]) demand(value == held[which].size(), "memory was overwritten");
        toroid::deallocate(comm, held[which]);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
        continue;
      }
      const std::size_t count = random.below(4) == 0 ? random.below(20'000) : random.below(40);
      const auto memory = toroid::allocate<std::uint32_t>(comm, count);
      demand(memory.size() == count, "asked for ", count, ", got ", memory.size());
      demand(memory.data() != nullptr, "null for ", count);
      demand(address(memory.data()) % (count * sizeof(std::uint32_t) >= 4096 ? 4096 : 128) == 0,
             "not aligned: ", count);
      demand(all_zero(memory), "memory is not zero");
      std::fill(memory.begin(), memory.end(), static_cast<std::uint32_t>(count));
      held.push_back(memory);
      check_apart();
    }
  });
}

TEST_CASE("Memory given back is used again", "[allocate]") {
  const toroid::options chosen{.shared_bytes = 1 << 20};
  support::run_processes(
      2,
      [](auto& comm) {
        for (int i = 0; i < 50; ++i) {
          const auto memory = toroid::allocate<char>(comm, 1 << 20);  // all there is
          demand(all_zero(memory), "memory is not zero the second time");
          std::fill(memory.begin(), memory.end(), 'x');
          const std::string text =
              support::text_of<toroid::system_error>([&] { (void)toroid::allocate<char>(comm, 1); });
          support::demand_words(text, "1 bytes asked for", std::to_string(1 << 20), "options.shared_bytes");
          toroid::deallocate(comm, memory);
        }
      },
      chosen);
}

TEST_CASE("Peers see what is written to allocated memory, and calls work in it", "[allocate]") {
  support::run_both(3, [](auto& comm) {
    for (int i = 0; i < 20; ++i) {
      // Sizes and times differ from rank to rank: allocating is not collective.
      if (comm.rank() == i % 3) (void)toroid::allocate<char>(comm, static_cast<std::size_t>(1000 * i));
      const auto values = toroid::allocate<int>(comm, 3000);
      std::fill(values.begin(), values.end(), comm.rank() + i);
      toroid::all_reduce(comm, values);
      for (const int value : values) demand(value == 3 + 3 * i, "the sum is ", value);
      toroid::deallocate(comm, values);
    }
  });
}

TEST_CASE("What was not allocated cannot be given back", "[allocate]") {
  support::run_both(2, [](auto& comm) {
    const auto first = toroid::allocate<int>(comm, 1000);
    const auto second = toroid::allocate<int>(comm, 1000);
    std::vector<int> other(1000);
    const auto refused = [&](std::span<int> memory) {
      support::demand_words(support::text_of<toroid::usage_error>([&] { toroid::deallocate(comm, memory); }),
                            "deallocate", "not allocated through this communicator");
    };
    refused(other);
    refused(first.subspan(1));
    refused(first.subspan(0, 10));
    refused(std::span<int>());
    refused(std::span<int>(first.data(), 2000));
    toroid::deallocate(comm, first);
    refused(first);
    const auto third = toroid::allocate<int>(comm, 1000);
    const auto fourth = toroid::allocate<int>(comm, 1000);
    demand(third.data() != fourth.data() && third.data() != second.data(), "memory was given out twice");
  });
}

TEST_CASE("Memory of another communicator is not this one's", "[allocate]") {
  support::run_threads(1, [](auto& outer) {
    const auto memory = toroid::allocate<int>(outer, 10);
    toroid::run_threads(
        1, [&](auto& inner) { support::text_of<toroid::usage_error>([&] { toroid::deallocate(inner, memory); }); });
    toroid::deallocate(outer, memory);
  });
}

TEST_CASE("More memory than there is gives an error, and the communicator goes on", "[allocate]") {
  if (support::sanitized) return;  // sanitizers end the process instead
  support::run_both(2, [](auto& comm) {
    const std::string text =
        support::text_of<toroid::system_error>([&] { (void)toroid::allocate<char>(comm, std::size_t{1} << 50); });
    support::demand_words(text, "allocate", std::to_string(std::size_t{1} << 50));
    std::vector<int> values(10, 1);
    toroid::all_reduce(comm, values);
    demand(values[0] == 2, "the sum is ", values[0]);
  });
}

TEST_CASE("Allocated memory is not reused after an error, when a late peer may still write it", "[allocate]") {
  support::run_processes(2, [](auto& comm) {
    const auto memory = toroid::allocate<int>(comm, 30'000);
    if (comm.rank() == 1) return;
    support::text_of<toroid::peer_lost>([&] { toroid::all_reduce(comm, memory); });
    toroid::deallocate(comm, memory);
    const auto later = toroid::allocate<int>(comm, 30'000);
    demand(later.data() >= memory.data() + memory.size() || later.data() + later.size() <= memory.data(),
           "memory was given out again");
  });
}

TEST_CASE("The footprint is what a rank's end takes", "[allocate]") {
  for (const std::size_t region : {std::size_t{4096}, std::size_t{1} << 20}) {
    support::run_both(2,
                      [&](auto& comm) {
                        const std::size_t before = comm.footprint();
                        const std::size_t least = toroid::transport::region_count * region;
                        demand(before >= least && before <= least + 64 * 1024, "the footprint is ", before);
                        (void)toroid::allocate<char>(comm, 1 << 20);
                        demand(comm.footprint() == before, "allocate() changes the footprint");
                      },
                      {.region_bytes = region});
  }
}
