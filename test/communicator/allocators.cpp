// SPDX-License-Identifier: Apache-2.0
#include "communicator/named_group.hpp"
#include "support/catch.hpp"
#include "support/launch.hpp"
#include "support/process_state.hpp"
#include "support/random.hpp"
#include "support/sanitizers.hpp"

#include <toroid/toroid.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// Containers whose elements lie where peers can reach them.

namespace {

using support::demand;
using support::demand_words;
using support::text_of;

template <class T>
using shared_vector = std::vector<T, toroid::allocator<T>>;
using floats = shared_vector<float>;

/// On threads, on forked processes, and on processes that find each other by name.
template <class F>
void on_all(int ranks, F f, toroid::options chosen = {}) {
  if (chosen.shared_bytes == 0) chosen.shared_bytes = std::size_t{1} << 26;
  support::run_threads(ranks, f, chosen);
  support::run_processes(ranks, f, chosen);
}

template <class Communicator>
auto& transport_of(Communicator& comm) {
  return toroid::detail::access::session(comm).transport();
}

/// Whether the last call, which all ranks have left, has gone in place.
template <class Communicator>
bool all_were_reachable(Communicator& comm) {
  auto& session = toroid::detail::access::session(comm);
  for (int r = 0; r < comm.size(); ++r)
    if ((session.entry_of(r).buffers.ways & toroid::transport::buffer_addresses::reachable) == 0) return false;
  return true;
}

/// Sums `values` over all ranks, and tells which path that took: on the staged one the vector leaves its trace in the
/// hand-over regions, in place it does not.
///
/// @pre  more than travels beside a flag, less than is ever pulled
template <class Communicator, class Values>
bool sums_in_place(Communicator& comm, Values& values) {
  std::byte* const region = transport_of(comm).region(comm.rank(), 0);
  const std::size_t bytes = transport_of(comm).region_bytes() * toroid::transport::region_count;
  demand(values.size() * sizeof(values[0]) > toroid::transport::inline_bytes &&
             values.size() * sizeof(values[0]) < toroid::detail::least_pulled_bytes,
         "a length that tells nothing");
  toroid::barrier(comm);
  std::memset(region, 0x77, bytes);
  toroid::barrier(comm);
  toroid::all_reduce(comm, values);
  const bool reachable = all_were_reachable(comm);
  toroid::barrier(comm);
  const bool untouched = std::all_of(region, region + bytes, [](std::byte b) { return b == std::byte{0x77}; });
  demand(reachable == untouched, "reachable: ", reachable, ", regions untouched: ", untouched);
  return untouched;
}

template <class Values>
void demand_all(const Values& values, float expected, const char* what) {
  for (std::size_t i = 0; i < values.size(); ++i)
    demand(values[i] == expected, what, ": element ", i, " is ", values[i], ", not ", expected);
}

}  // namespace

TEST_CASE("A vector that grows element by element stays where peers can reach it", "[allocator]") {
  on_all(3, [](auto& comm) {
    floats values{toroid::allocator<float>(comm)};
    std::size_t moves = 0;
    const float* last = nullptr;
    for (int i = 0; i < 6000; ++i) {
      values.push_back(static_cast<float>(comm.rank() + i));
      if (values.data() != last) ++moves;
      last = values.data();
    }
    demand(moves > 5, "it has not grown");
    demand(reinterpret_cast<std::uintptr_t>(values.data()) % 4096 == 0, "not aligned");
    demand(transport_of(comm).reachable(values.data(), values.size() * sizeof(float)), "not reachable");
    demand(sums_in_place(comm, values), "the sum was staged");
    for (std::size_t i = 0; i < values.size(); ++i)
      demand(values[i] == 3.0f + 3.0f * static_cast<float>(i), "element ", i, " is ", values[i]);
  });
}

TEST_CASE("Ranks grow and shrink their vectors at different times", "[allocator]") {
  on_all(4, [](auto& comm) {
    support::random_numbers random(static_cast<std::uint64_t>(comm.rank()) + 3);
    floats values{toroid::allocator<float>(comm)};
    std::vector<floats> others;  // so that vectors lie at different places
    const int rounds = support::sanitized ? 20 : 60;
    for (int i = 0; i < rounds; ++i) {
      for (std::uint64_t k = random.below(4); k > 0; --k) {
        values.resize(random.below(9000));
        if (random.below(2) == 0) values.shrink_to_fit();
        others.emplace_back(random.below(5000), 7.0f, values.get_allocator());
        if (others.size() > 5) others.erase(others.begin() + static_cast<std::ptrdiff_t>(random.below(5)));
      }
      values.assign(5000, static_cast<float>(comm.rank() + i));
      if (i % 3 == 0) {
        demand(sums_in_place(comm, values), "the sum was staged");
      } else {
        toroid::all_reduce(comm, values, toroid::sum{}, toroid::ring{});
      }
      demand_all(values, static_cast<float>(6 + 4 * i), "the sum");
      for (const floats& other : others) demand_all(other, 7.0f, "a vector that takes no part");
    }
  });
}

TEST_CASE("One private vector makes all ranks take the private path", "[allocator]") {
  support::run_processes(3, [](auto& comm) {
    floats shared(5000, toroid::allocator<float>(comm));
    std::vector<float> own(5000);
    for (int odd_one_out = -1; odd_one_out < 3; ++odd_one_out) {
      std::fill(shared.begin(), shared.end(), static_cast<float>(comm.rank() + 1));
      std::fill(own.begin(), own.end(), static_cast<float>(comm.rank() + 1));
      const bool in_place = comm.rank() == odd_one_out ? sums_in_place(comm, own) : sums_in_place(comm, shared);
      demand(in_place == (odd_one_out < 0), "in place: ", in_place, " where rank ", odd_one_out, "'s is private");
      if (comm.rank() == odd_one_out)
        demand_all(own, 6.0f, "the private one's sum");
      else
        demand_all(shared, 6.0f, "the sum");
    }
  });
}

TEST_CASE("Out of place, between vectors and spans of either kind, sums are right", "[allocator]") {
  on_all(3, [](auto& comm) {
    const toroid::allocator<double> from(comm);
    shared_vector<double> in(7000, 1.5, from), out(7000, from);
    std::vector<double> own(7000);
    toroid::all_reduce(comm, in, out);
    toroid::all_reduce(comm, in, own);
    for (std::size_t i = 0; i < out.size(); ++i) demand(out[i] == 4.5 && own[i] == 4.5, "element ", i);
    toroid::broadcast(comm, out, 1);
  });
}

TEST_CASE("Allocators of one communicator are equal, of two are not", "[allocator]") {
  const auto f = [](auto& comm) {
    const toroid::allocator<float> first(comm), second(comm), copy(first);
    demand(first == second && first == copy && !(first != copy), "allocators of one communicator differ");
    // Of other element types, both ways round.
    const toroid::allocator<int> rebound(first);
    demand(rebound == first && first == rebound && !(rebound != first), "a rebound allocator differs");
    demand(toroid::allocator<float>(rebound) == first, "there and back is another");
    // What one gives out, another takes back.
    toroid::allocator<float> giver(first), taker(rebound);
    taker.deallocate(giver.allocate(1000), 1000);
    using traits = std::allocator_traits<toroid::allocator<float>>;
    static_assert(std::is_same_v<traits::rebind_alloc<char>, toroid::allocator<char>>);
    static_assert(!traits::is_always_equal::value && traits::propagate_on_container_move_assignment::value &&
                  traits::propagate_on_container_swap::value && !traits::propagate_on_container_copy_assignment::value);
    static_assert(std::is_nothrow_copy_constructible_v<toroid::allocator<float>>);

    toroid::run_threads(1, [&](auto& other) {
      const toroid::allocator<float> stranger(other);
      demand(stranger != first && !(stranger == first), "allocators of two communicators are equal");
      floats here(100, 1.0f, first), there(200, 2.0f, stranger);
      // A copy brings elements, a move or a swap brings memory and allocator along.
      here = there;
      demand(here.get_allocator() == first && here.size() == 200 && here[199] == 2.0f, "copied");
      const float* const memory = there.data();
      floats moved(5, 0.0f, first);
      moved = std::move(there);
      demand(moved.get_allocator() == stranger && moved.data() == memory && moved[199] == 2.0f, "moved");
      floats swapped(300, 3.0f, first);
      std::swap(moved, swapped);
      demand(moved.get_allocator() == first && moved.size() == 300 && swapped.get_allocator() == stranger &&
                 swapped.data() == memory,
             "swapped");
      const floats copied(moved);
      demand(copied.get_allocator() == first && copied.data() != moved.data(), "copy constructed");
      const floats elsewhere(moved, stranger);
      demand(elsewhere.get_allocator() == stranger && elsewhere == moved, "copied to elsewhere");
      floats taken(std::move(swapped), first);  // from another's memory: element by element
      demand(taken.get_allocator() == first && taken.size() == 200 && taken[0] == 2.0f, "moved to elsewhere");
    });
  };
  on_all(1, f);
}

TEST_CASE("The communicator may be moved while containers use it", "[allocator]") {
  on_all(2, [](auto& comm) {
    std::optional<std::remove_reference_t<decltype(comm)>> moved;  // outlives the container
    floats values(5000, 1.0f, toroid::allocator<float>(comm));
    moved.emplace(std::move(comm));
    values.resize(6000, 1.0f);
    demand(sums_in_place(*moved, values), "the sum was staged");
    demand_all(values, 2.0f, "the sum");
    demand_words(text_of<toroid::usage_error>([&] { (void)toroid::allocator<float>(comm); }), "moved from");
  });
}

TEST_CASE("Containers of other shapes work", "[allocator]") {
  on_all(2, [](auto& comm) {
    const toroid::allocator<int> from(comm);
    {
      std::list<int, toroid::allocator<int>> list(from);
      std::deque<double, toroid::allocator<double>> deque(from);
      std::map<int, std::uint64_t, std::less<int>, toroid::allocator<std::pair<const int, std::uint64_t>>> map(from);
      std::basic_string<char, std::char_traits<char>, toroid::allocator<char>> string(from);
      for (int i = 0; i < 500; ++i) {
        list.push_back(i);
        deque.push_front(i);
        map[i] = static_cast<std::uint64_t>(i);
        string += 'x';
        if (i % 3 == 0) list.pop_front();
      }
      demand(deque.back() == 0.0 && map.at(499) == 499 && string.size() == 500 && list.back() == 499, "contents");
      for (auto& [key, value] : map)
        demand(reinterpret_cast<std::uintptr_t>(&value) % alignof(std::uint64_t) == 0, key);
    }
    std::vector<float> sum(10, 1.0f);
    toroid::all_reduce(comm, sum);
    demand_all(sum, 2.0f, "the sum afterwards");
  });
}

TEST_CASE("No elements need no memory, and do no harm", "[allocator]") {
  on_all(2, [](auto& comm) {
    toroid::allocator<float> from(comm);
    float* const first = from.allocate(0);
    float* const second = from.allocate(0);
    from.deallocate(second, 0);
    from.deallocate(first, 0);
    floats empty(0, from), values(from);
    toroid::all_reduce(comm, empty);
    values.resize(10);
    values.clear();
    values.shrink_to_fit();
    toroid::all_reduce(comm, values);
    demand(values.empty() && empty.empty(), "elements have come");
  });
}

TEST_CASE("Memory that a vector gives back is used again", "[allocator]") {
  constexpr std::size_t room = std::size_t{1} << 20;
  support::run_processes(
      2,
      [&](auto& comm) {
        const toroid::allocator<std::byte> from(comm);
        std::vector<const std::byte*> places;
        for (int i = 0; i < 50; ++i) {
          shared_vector<std::byte> most(room * 3 / 4, from);
          demand(std::all_of(most.begin(), most.end(), [](std::byte b) { return b == std::byte{0}; }), "not zero");
          std::fill(most.begin(), most.end(), std::byte{9});
          if (std::find(places.begin(), places.end(), most.data()) == places.end()) places.push_back(most.data());
        }
        demand(places.size() == 1, "the memory moves about: ", places.size());
        // Growing needs old and new at once; three quarters never fit twice.
        shared_vector<std::byte> most(room * 3 / 4, from);
        const std::byte* const before = most.data();
        const std::string text = text_of<toroid::system_error>([&] { most.resize(room * 3 / 4 + 1); });
        demand_words(text, "bytes asked for", "shared_bytes");
        demand(most.data() == before && most.size() == room * 3 / 4, "a refused vector has changed");
      },
      {.shared_bytes = room});
}

TEST_CASE("Too much gives the named error, and the communicator goes on", "[allocator]") {
  if (support::sanitized) {
    WARN("skipped: sanitizers end the process where memory cannot be had");
    return;
  }
  on_all(2, [](auto& comm) {
    toroid::allocator<double> from(comm);
    floats values(5000, 1.0f, toroid::allocator<float>(comm));
    demand_words(text_of<toroid::system_error>([&] { (void)from.allocate(std::size_t{1} << 47); }), "allocate",
                 std::to_string(std::size_t{1} << 50));
    for (const std::size_t count : {~std::size_t{0}, ~std::size_t{0} / 8, ~std::size_t{0} / 16 + 1})
      demand_words(text_of<toroid::usage_error>([&] { (void)from.allocate(count); }), "allocator",
                   "more than can be addressed", std::to_string(count));
    demand_words(text_of<toroid::system_error>([&] { values.resize(std::size_t{1} << 47); }), "allocate");
    demand(values.size() == 5000, "a refused vector has changed");
    demand(sums_in_place(comm, values), "the sum was staged");
    demand_all(values, 2.0f, "the sum");
  });
}

TEST_CASE("A broken communicator still takes memory back", "[allocator]") {
  support::run_processes(2, [](auto& comm) {
    floats values(5000, 1.0f, toroid::allocator<float>(comm));
    if (comm.rank() == 1) return;
    text_of<toroid::peer_lost>([&] { toroid::all_reduce(comm, values); });
    const float* const before = values.data();
    values = floats(toroid::allocator<float>(comm));
    floats again(5000, toroid::allocator<float>(comm));
    demand(again.data() != before, "memory of a broken group was given out again");
    values.resize(100'000);
  });
}

TEST_CASE("Containers of named groups are reached in place", "[allocator]") {
  using namespace named;
  const support::watchdog guard(support::patience);
  const std::string name = fresh_name("allocator");
  processes all(3);
  for (int r = 0; r < 3; ++r)
    all.start(r, [&, r] {
      auto comm = toroid::shm::make_communicator(name, r, 3, patient());
      floats values{toroid::allocator<float>(comm)};
      for (int i = 0; i < 5000; ++i) values.push_back(static_cast<float>(r));
      demand(sums_in_place(comm, values), "the sum was staged");
      demand_all(values, 3.0f, "the sum");
    });
  demand_right(all.join());
}

TEST_CASE("Vectors come and go without leaving descriptors or mappings", "[allocator]") {
  support::run_processes(2, [](auto& comm) {
    const auto grow = [&] {
      floats values{toroid::allocator<float>(comm)};
      for (std::size_t count = 1; count < 100'000; count *= 3) values.resize(count, 1.0f);
      toroid::all_reduce(comm, values);
    };
    grow();
    const support::process_state before = support::process_state::now();
    for (int i = 0; i < (support::sanitized ? 20 : 100); ++i) grow();
    const support::process_state after = support::process_state::now();
    demand(after.descriptors == before.descriptors, before.descriptors, " descriptors became ", after.descriptors);
    demand(after.mappings <= before.mappings + (support::sanitized ? 80 : 8), before.mappings, " mappings became ",
           after.mappings);
  });
}
