// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/random.hpp"
#include "support/sanitizers.hpp"

#include <toroid/communicator/communicator.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace {

using namespace conformance;
using support::demand;

bool all_are(std::span<const std::byte> memory, int value) {
  return std::all_of(memory.begin(), memory.end(), [=](std::byte b) { return b == static_cast<std::byte>(value); });
}

void fill(std::span<std::byte> memory, int value) {
  if (!memory.empty()) std::memset(memory.data(), value, memory.size());
}

std::span<element> elements(std::span<std::byte> memory) {
  return {reinterpret_cast<element*>(memory.data()), memory.size() / sizeof(element)};
}

void demand_goes_on(group_end& end) {
  std::vector<element> values(10, 1);
  end.all_reduce(values, values, {});
  demand(values[0] == static_cast<element>(end.size()), "the sum is ", values[0]);
}

}  // namespace

TEST_CASE("Allocated memory is aligned, zero and apart from the rest", "[allocate]") {
  on_both(2, {}, [](group_end& end) {
    support::random_numbers random(static_cast<std::uint64_t>(end.rank()) + 5);
    struct held_memory {
      std::span<std::byte> bytes;
      int value;
    };
    std::vector<held_memory> held;
    for (int i = 0; i < 300; ++i) {
      if (!held.empty() && random.below(3) == 0) {
        const std::size_t which = random.below(held.size());
        demand(all_are(held[which].bytes, held[which].value), "memory was overwritten");
        end.deallocate(held[which].bytes);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
        continue;
      }
      const std::size_t bytes = random.below(4) == 0 ? random.below(80'000) : random.below(160);
      const std::span<std::byte> memory = end.allocate(bytes);
      demand(memory.size() == bytes && memory.data() != nullptr, "asked for ", bytes, ", got ", memory.size());
      demand(reinterpret_cast<std::uintptr_t>(memory.data()) % (bytes >= 4096 ? 4096 : 128) == 0,
             "not aligned: ", bytes);
      demand(all_are(memory, 0), "memory is not zero");
      held.push_back({memory, 1 + i % 255});
      fill(memory, held.back().value);
    }
    for (const held_memory& mine : held) demand(all_are(mine.bytes, mine.value), "memory was overwritten");
  });
}

TEST_CASE("Memory given back is used again", "[allocate]") {
  constexpr std::size_t all = 1 << 20;
  on_processes(2, {.shared_bytes = all}, [](group_end& end) {
    for (int i = 0; i < 50; ++i) {
      const std::span<std::byte> memory = end.allocate(all);
      demand(all_are(memory, 0), "memory is not zero the second time");
      fill(memory, 'x');
      const std::string text = support::text_of<toroid::system_error>([&] { (void)end.allocate(1); });
      support::demand_words(text, "1 bytes asked for", std::to_string(all), "options.shared_bytes");
      end.deallocate(memory);
    }
  });
}

TEST_CASE("Ranks allocate when and what they like, and calls work in it", "[allocate]") {
  on_both(3, {}, [](group_end& end) {
    for (int i = 0; i < 20; ++i) {
      if (end.rank() == i % 3) (void)end.allocate(static_cast<std::size_t>(1000 * i));
      const std::span<std::byte> memory = end.allocate(3000 * sizeof(element));
      const std::span<element> values = elements(memory);
      std::fill(values.begin(), values.end(), static_cast<element>(end.rank() + i));
      end.all_reduce(values, values, {});
      for (const element value : values) demand(value == static_cast<element>(3 + 3 * i), "the sum is ", value);
      end.deallocate(memory);
    }
  });
}

TEST_CASE("What was not allocated cannot be given back", "[allocate]") {
  on_both(2, {}, [](group_end& end) {
    const std::span<std::byte> first = end.allocate(4000), second = end.allocate(4000);
    std::vector<std::byte> other(4000);
    const auto refused = [&](std::span<std::byte> memory) {
      support::demand_words(support::text_of<toroid::usage_error>([&] { end.deallocate(memory); }), "deallocate",
                            "not allocated through this communicator");
    };
    refused(other);
    refused(first.subspan(4));
    refused(first.subspan(0, 10));
    refused({});
    refused({first.data(), 8000});
    end.deallocate(first);
    refused(first);
    const std::span<std::byte> third = end.allocate(4000), fourth = end.allocate(4000);
    demand(third.data() != fourth.data() && third.data() != second.data() && fourth.data() != second.data(),
           "memory was given out twice");
  });
}

TEST_CASE("Memory of another communicator is not this one's", "[allocate]") {
  on_threads(1, {}, [](group_end& outer) {
    const std::span<std::byte> memory = outer.allocate(10);
    on_threads(1, {},
               [&](group_end& inner) { support::text_of<toroid::usage_error>([&] { inner.deallocate(memory); }); });
    outer.deallocate(memory);
  });
}

TEST_CASE("More memory than there is gives an error, and the communicator goes on", "[allocate]") {
  if (support::sanitized) {
    WARN("skipped: sanitizers end the process where memory cannot be had");
    return;
  }
  on_both(2, {}, [](group_end& end) {
    const std::string text = support::text_of<toroid::system_error>([&] { (void)end.allocate(std::size_t{1} << 50); });
    support::demand_words(text, "allocate", std::to_string(std::size_t{1} << 50));
    demand_goes_on(end);
  });
}

TEST_CASE("Allocated memory is not reused after an error, when a late peer may still write it", "[allocate]") {
  on_processes(2, {}, [](group_end& end) {
    const std::span<std::byte> memory = end.allocate(100'000);
    if (end.rank() == 1) return;
    support::text_of<toroid::peer_lost>([&] { end.all_reduce(elements(memory), elements(memory), {}); });
    end.deallocate(memory);
    const std::span<std::byte> later = end.allocate(100'000);
    demand(later.data() >= memory.data() + memory.size() || later.data() + later.size() <= memory.data(),
           "memory was given out again");
  });
}

TEST_CASE("The footprint is what a rank's end takes", "[allocate]") {
  for (const std::size_t region : {std::size_t{4096}, std::size_t{1} << 20}) {
    on_both(2, {.region_bytes = region}, [&](group_end& end) {
      const std::size_t before = end.footprint();
      const std::size_t least = toroid::transport::region_count * region;
      demand(before >= least && before <= least + 64 * 1024, "the footprint is ", before);
      (void)end.allocate(1 << 20);
      demand(end.footprint() == before, "allocate() changes the footprint");
    });
  }
}
