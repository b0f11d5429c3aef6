// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/toroid.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

// Rooted calls that are started: several in flight, with roots of their own, waited for from the last to the first.

namespace {

using support::demand;

template <class Comm>
void all_roots_in_flight(Comm& comm, std::size_t each) {
  const std::size_t ranks = static_cast<std::size_t>(comm.size()), me = static_cast<std::size_t>(comm.rank());
  struct buffers {
    std::vector<std::int64_t> mine, sum, all, dealt, own;
    toroid::pending reduced, gathered, scattered;
  };
  std::vector<buffers> by_root(ranks);
  for (std::size_t root = 0; root < ranks; ++root) {
    buffers& b = by_root[root];
    b.mine.resize(each);
    for (std::size_t i = 0; i < each; ++i) b.mine[i] = static_cast<std::int64_t>(1000 * i + 10 * me + root);
    if (root == me) {
      b.sum.assign(each, -1);
      b.all.assign(each * ranks, -1);
      for (std::size_t i = 0; i < each * ranks; ++i) b.dealt.push_back(static_cast<std::int64_t>(7 * i + root));
    }
    b.own.assign(each, -1);
    const int at = static_cast<int>(root);
    b.reduced = toroid::start_reduce(comm, b.mine, b.sum, at);
    b.gathered = toroid::start_gather(comm, b.mine, b.all, at);
    b.scattered = toroid::start_scatter(comm, b.dealt, b.own, at);
  }
  for (std::size_t root = ranks; root-- > 0;) {
    buffers& b = by_root[root];
    b.scattered.wait();
    b.gathered.wait();
    b.reduced.wait();
    for (std::size_t i = 0; i < each; ++i) {
      demand(b.own[i] == static_cast<std::int64_t>(7 * (me * each + i) + root), "scattered ", b.own[i], " at ", i);
      if (root != me) continue;
      const std::size_t total = ranks * (1000 * i + root) + 10 * (ranks * (ranks - 1) / 2);
      demand(b.sum[i] == static_cast<std::int64_t>(total), "reduced to ", b.sum[i], " instead of ", total);
      for (std::size_t r = 0; r < ranks; ++r)
        demand(b.all[r * each + i] == static_cast<std::int64_t>(1000 * i + 10 * r + root), "gathered ",
               b.all[r * each + i], " of rank ", r);
    }
  }
}

}  // namespace

TEST_CASE("Rooted calls in flight between threads", "[pending]") {
  for (const int ranks : {1, 2, 3, 5})
    support::run_threads(ranks, [](auto& comm) {
      for (const std::size_t each : {0u, 1u, 100u, 20'000u}) all_roots_in_flight(comm, each);
    });
}

TEST_CASE("Rooted calls in flight between processes", "[pending]") {
  for (const int ranks : {1, 2, 4})
    support::run_processes(ranks, [](auto& comm) {
      for (const std::size_t each : {0u, 1u, 100u, 20'000u}) all_roots_in_flight(comm, each);
    });
}
