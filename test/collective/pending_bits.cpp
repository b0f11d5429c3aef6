// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/random.hpp"

#include <toroid/collective/start.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

// What is started gives the bits of the blocking call: every collective and algorithm, any number of ranks, buffers
// that peers reach and buffers that they do not, in place and not.

namespace {

using support::demand;

/// Over many orders of magnitude, so that another order of adding gives other bits.
void fill(std::span<float> values, int rank, std::uint64_t seed) {
  support::random_numbers random(static_cast<std::uint64_t>(rank) * 977 + seed);
  for (float& value : values)
    value = std::ldexp(static_cast<float>(random.below(1 << 20)) - 5e5f, static_cast<int>(random.below(40)) - 20);
}

bool same(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// Buffers of both kinds. Where peers reach `in` but not `out`, both are copied, as if they reached neither.
template <class Comm>
struct buffers {
  buffers(Comm& group, std::size_t count, bool shared) : comm(group), is_shared(shared) {
    for (auto& v : own) v.resize(count);
    for (int i = 0; i < 3; ++i) views[i] = shared ? toroid::allocate<float>(comm, count) : std::span<float>(own[i]);
  }
  buffers(const buffers&) = delete;
  buffers& operator=(const buffers&) = delete;
  ~buffers() {
    if (is_shared)
      for (const auto& v : views) toroid::deallocate(comm, v);
  }
  Comm& comm;
  bool is_shared;
  std::vector<float> own[3];
  std::span<float> views[3];
};

template <class Comm, class Algorithm>
void check_all_reduce(Comm& comm, std::size_t count, bool shared, const Algorithm& how) {
  buffers<Comm> memory(comm, count, shared);
  const auto [in, out, both] = memory.views;
  std::vector<float> expected(count);
  fill(in, comm.rank(), count);
  fill(both, comm.rank(), count);
  toroid::all_reduce(comm, in, expected, how);
  toroid::pending apart = toroid::start_all_reduce(comm, in, out, how);
  toroid::pending in_place = toroid::start_all_reduce(comm, both, how);
  in_place.wait();
  while (!apart.test()) {
  }
  demand(same(out, expected), "all_reduce of ", count, " on rank ", comm.rank(), " of ", comm.size());
  demand(same(both, expected), "all_reduce in place of ", count, " on rank ", comm.rank(), " of ", comm.size());
}

template <class Comm, class Algorithm>
void check_blocks(Comm& comm, std::size_t count, const Algorithm& how) {
  const toroid::block own = toroid::block_of(count, comm.size(), comm.rank());
  std::vector<float> in(count), out(own.count), expected(own.count), all(count), all_expected(count), in_place(count);
  fill(in, comm.rank(), count);
  toroid::reduce_scatter(comm, in, expected, how);
  toroid::all_gather(comm, expected, all_expected, how);
  toroid::pending scattered = toroid::start_reduce_scatter(comm, in, out, how);
  toroid::pending gathered = toroid::start_all_gather(comm, out, all, how);  // begins when `out` is there
  gathered.wait();
  scattered.wait();
  demand(same(out, expected), "reduce_scatter of ", count, " on rank ", comm.rank(), " of ", comm.size());
  demand(same(all, all_expected), "all_gather of ", count, " on rank ", comm.rank(), " of ", comm.size());
  std::copy(expected.begin(), expected.end(), in_place.begin() + static_cast<std::ptrdiff_t>(own.begin));
  toroid::start_all_gather(comm, in_place, how).wait();
  demand(same(in_place, all_expected), "all_gather in place of ", count, " on rank ", comm.rank());
}

template <class Comm, class Algorithm>
void check_broadcast(Comm& comm, std::size_t count, const Algorithm& how) {
  for (int root = 0; root < comm.size(); ++root) {
    std::vector<float> sent(count), got(count);
    fill(sent, root, count);
    if (comm.rank() == root) got = sent;
    toroid::pending copied = toroid::start_broadcast(comm, got, root, how);
    toroid::pending met = toroid::start_barrier(comm);
    met.wait();
    copied.wait();
    demand(same(got, sent), "broadcast of ", count, " from ", root, " on rank ", comm.rank(), " of ", comm.size());
  }
}

/// Regions are short, so that there are many pieces.
constexpr std::size_t counts[] = {0, 1, 7, 1000, 1025, 40'003};

template <class Comm>
void check_sums(Comm& comm) {
  for (const bool shared : {false, true})
    for (const std::size_t count : counts) {
      check_all_reduce(comm, count, shared, toroid::automatic{});
      check_all_reduce(comm, count, shared, toroid::ring{});
      check_all_reduce(comm, count, shared, toroid::halving_doubling{});
      check_all_reduce(comm, count, shared, toroid::tree{});
      check_all_reduce(comm, count, shared, toroid::torus_2d{});
    }
}

template <class Comm>
void check_others(Comm& comm) {
  for (const std::size_t count : counts) {
    check_blocks(comm, count, toroid::automatic{});
    check_blocks(comm, count, toroid::ring{});
    check_broadcast(comm, count, toroid::automatic{});
    check_broadcast(comm, count, toroid::tree{});
  }
}

const toroid::options many_pieces{.region_bytes = 8192};

}  // namespace

TEST_CASE("Started sums have the bits of blocking ones", "[pending]") {
  for (int ranks = 1; ranks <= 5; ++ranks)
    support::run_both(
        ranks, [](auto& comm) { check_sums(comm); }, many_pieces);
}

TEST_CASE("Started collectives of other kinds have the bits of blocking ones", "[pending]") {
  for (int ranks = 1; ranks <= 5; ++ranks)
    support::run_both(
        ranks, [](auto& comm) { check_others(comm); }, many_pieces);
}

TEST_CASE("Started sums that the kernel copies have the bits of blocking ones", "[pending]") {
  for (const int ranks : {2, 3}) {
    support::run_processes(ranks, [](auto& comm) {
      support::prefer_pulling(comm);
      for (const std::size_t count : {std::size_t{9000}, std::size_t{100'003}}) {
        check_all_reduce(comm, count, false, toroid::automatic{});
        check_all_reduce(comm, count, false, toroid::direct{.segment_bytes = 2048});
      }
    });
  }
}

TEST_CASE("A started call keeps a copy of its operator", "[pending]") {
  support::run_threads(3, [](auto& comm) {
    std::vector<int> values(5000, comm.rank() + 1), few(3, comm.rank() + 1);
    toroid::pending slow, quick;
    {
      const std::vector<int> scale(1, 3);  // on the heap, gone before the call runs
      struct padding {
        long words[16] = {};
      };
      const auto small = [scale](int a, int b) { return a + scale[0] * b; };
      const auto large = [scale, filling = padding{}](int a, int b) {
        return a + scale[0] * b + static_cast<int>(filling.words[7]);
      };
      slow = toroid::start_all_reduce(comm, values, small);
      quick = toroid::start_all_reduce(comm, few, large);
    }
    quick.wait();
    slow.wait();
    for (const int value : values) demand(value == 1 + 3 * 2 + 3 * 3, "another operator: ", value);
    for (const int value : few) demand(value == 1 + 3 * 2 + 3 * 3, "another operator: ", value);
  });
}
