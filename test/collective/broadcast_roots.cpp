// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/memory.hpp"

#include <toroid/collective/broadcast.hpp>

#include <atomic>
#include <cstdint>
#include <span>

namespace {

std::uint8_t byte_of(std::size_t index, int root) {
  return static_cast<std::uint8_t>((index * 131 + static_cast<std::size_t>(root)) % 251);
}

template <class Comm, class Algorithm>
void broadcast_from_all(Comm& comm, const Algorithm& how) {
  const std::size_t p = static_cast<std::size_t>(comm.size());
  for (const std::size_t count : {std::size_t{1}, p - 1, p, p + 1, std::size_t{1000}, std::size_t{65'537}}) {
    const support::fenced_memory memory(support::room_for(count, 1));
    for (int root = 0; root < comm.size(); ++root) {
      const auto where = root % 2 == 0 ? support::placement::at_an_odd_byte : support::placement::at_the_back;
      const support::guarded_bytes guarded(memory.bytes(), count, 1, where, 1 + static_cast<std::size_t>(comm.rank()));
      const std::span<std::uint8_t> bytes(reinterpret_cast<std::uint8_t*>(guarded.data()), count);
      for (std::size_t i = 0; i < count; ++i) bytes[i] = comm.rank() == root ? byte_of(i, root) : std::uint8_t{255};
      toroid::broadcast(comm, bytes, root, how);
      guarded.check_guards("broadcast");
      for (std::size_t i = 0; i < count; ++i)
        support::demand(bytes[i] == byte_of(i, root), "byte ", i, " of ", count, " from ", root, " is ", int{bytes[i]});
    }
  }
}

}  // namespace

TEST_CASE("Every root can broadcast to any number of ranks", "[broadcast]") {
  for (const int ranks : {3, 5, 6, 7, 9, 11, 13})
    support::run_both(ranks, [](auto& comm) {
      broadcast_from_all(comm, toroid::automatic{});
      broadcast_from_all(comm, toroid::direct{});
      broadcast_from_all(comm, toroid::ring{});
      broadcast_from_all(comm, toroid::ring{.segment_bytes = 4096});
    });
}

TEST_CASE("A short broadcast does not hold its root up", "[broadcast]") {
  const support::shared_by_all<std::atomic<bool>> root_is_back(2);
  std::size_t run = 0;
  const auto f = [&](auto& comm) {
    int values[2] = {comm.rank(), 7};
    if (comm.rank() == 1)
      for (int i = 0; i < 10'000 && !root_is_back[run]; ++i) ::usleep(1000);
    toroid::broadcast(comm, values, 0);
    if (comm.rank() == 1) support::demand(root_is_back[run], "the root waits for the other rank");
    root_is_back[run] = true;
    support::demand(values[0] == 0 && values[1] == 7, "rank ", comm.rank(), " has ", values[0]);
  };
  support::run_threads(2, f);
  run = 1;
  support::run_processes(2, f);
}
