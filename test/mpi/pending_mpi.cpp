// SPDX-License-Identifier: Apache-2.0
#include "collective/pending_calls.hpp"
#include "mpi/world.hpp"
#include "support/catch.hpp"

#include <toroid/collective/start.hpp>

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

// Started calls over the messages of MPI.

namespace {

using support::demand;
using namespace pending_calls;
using over_mpi = toroid::transport::mpi;

toroid::communicator<over_mpi> make(const toroid::mpi::options& chosen = {.region_bytes = 16'384}) {
  return toroid::mpi::make_communicator<over_mpi>(MPI_COMM_WORLD, chosen);
}

template <class Comm, class Algorithm>
void same_bits(Comm& comm, std::size_t count, const Algorithm& how) {
  std::vector<float> in(count), out(count), expected(count);
  support::random_numbers random(static_cast<std::uint64_t>(comm.rank()) + count);
  for (float& value : in) value = 1e-3f * static_cast<float>(random.below(1 << 30));
  toroid::all_reduce(comm, in, expected, how);
  toroid::pending apart = toroid::start_all_reduce(comm, in, out, how);
  toroid::pending in_place = toroid::start_all_reduce(comm, in, how);
  in_place.wait();
  while (!apart.test()) {
  }
  const auto same = [&](const std::vector<float>& v) {
    return std::memcmp(v.data(), expected.data(), count * sizeof(float)) == 0;
  };
  demand(same(out) && same(in), "other bits in a sum of ", count, " on rank ", comm.rank());
}

}  // namespace

TEST_CASE("Started sums over the messages of MPI have the bits of blocking ones", "[mpi]") {
  world::on_every_rank([] {
    auto comm = make();
    for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{40'003}}) {
      same_bits(comm, count, toroid::automatic{});
      same_bits(comm, count, toroid::ring{});
      same_bits(comm, count, toroid::halving_doubling{});
      same_bits(comm, count, toroid::tree{});
      same_bits(comm, count, toroid::torus_2d{});
    }
  });
}

TEST_CASE("Started collectives of other kinds are right over the messages of MPI", "[mpi]") {
  world::on_every_rank([] {
    auto comm = make();
    const toroid::block own = toroid::block_of(10'001, comm.size(), comm.rank());
    std::vector<int> in(10'001, comm.rank()), mine(own.count), all(10'001), copied(5000, comm.rank());
    toroid::pending scattered = toroid::start_reduce_scatter(comm, in, mine);
    toroid::pending gathered = toroid::start_all_gather(comm, mine, all);
    toroid::pending sent = toroid::start_broadcast(comm, copied, comm.size() - 1);
    toroid::pending met = toroid::start_barrier(comm);
    met.wait();
    const int sum = comm.size() * (comm.size() - 1) / 2;
    for (const int value : all) demand(value == sum, "a sum of ", value);
    demand(copied.front() == comm.size() - 1, "a copy of ", copied.front());
    gathered.wait();
    scattered.wait();
    sent.wait();
  });
}

TEST_CASE("Many calls over the messages of MPI complete in any order, beside blocking ones", "[mpi]") {
  world::on_every_rank([] {
    auto comm = make();
    hundred_in_reverse(comm);
    mixed(comm, 60);
  });
}

TEST_CASE("Calls on several communicators over the messages of MPI complete in the order that each rank likes",
          "[mpi]") {
  world::on_every_rank([] {
    std::vector<toroid::communicator<over_mpi>> comms;
    for (int i = 0; i < 6; ++i) comms.push_back(make());
    in_own_order(comms, 4, 30'000);
    // Over messages and over shared memory at once, waited for in opposite orders.
    auto shared = toroid::mpi::make_communicator<toroid::transport::shm>(MPI_COMM_WORLD);
    for (int i = 0; i < 4; ++i) {
      sum one(comms[0], 70'001, i), two(shared, 70'001, i);
      toroid::pending* order[] = {&one.pending, &two.pending};
      order[comms[0].rank() % 2]->wait();
      order[1 - comms[0].rank() % 2]->wait();
      one.check(comms[0].rank());
      two.check(comms[0].rank());
    }
  });
}

TEST_CASE("A thread of the communicator's own is refused where MPI admits only one", "[mpi]") {
  world::on_every_rank([] {
    const toroid::mpi::options by_thread{.progress = toroid::progress::thread};
    support::demand_words(world::text_on_every_rank<toroid::usage_error>([&] { (void)make(by_thread); }),
                          "MPI_THREAD_MULTIPLE");
  });
}

TEST_CASE("A rank that starts late over the messages of MPI is missed where it is waited for", "[mpi]") {
  world::on_every_rank([] {
    if (world::size() == 1) return;
    auto comm = make({.timeout = std::chrono::milliseconds(300)});
    toroid::barrier(comm);
    if (comm.rank() == 0) ::usleep(1'500'000);
    std::vector<sum> sums;
    for (const std::size_t count : {std::size_t{3000}, std::size_t{3}, std::size_t{5}})
      sums.emplace_back(comm, count, static_cast<int>(count));
    const std::string text = support::text_of<toroid::timeout_error>([&] {
      for (sum& s : sums)
        s.pending.wait();  // what the late rank missed may all have come meanwhile: not its third call
    });
    support::demand_words(text, "all_reduce (call ", "no answer within 300 ms", "waited for rank 0");
    demand(support::text_of<toroid::timeout_error>([&] { sums[2].pending.wait(); }) == text, "another than ", text);
    demand(support::text_of<toroid::timeout_error>([&] { toroid::barrier(comm); }) == text, "another than ", text);
    sums.clear();
  });
}

TEST_CASE("A rank that only looks for its calls over the messages of MPI misses the late one, too", "[mpi]") {
  world::on_every_rank([] {
    if (world::size() == 1) return;
    auto comm = make({.timeout = std::chrono::milliseconds(300)});
    toroid::barrier(comm);
    if (comm.rank() == 0) {
      ::usleep(1'500'000);
      (void)support::text_of<toroid::timeout_error>([&] {
        for (int i = 0; i < 3; ++i) sum(comm, 3000, i).pending.wait();
      });
      return;
    }
    sum one(comm, 3000, 1);
    (void)support::text_of<toroid::timeout_error>([&] {
      while (!one.pending.test()) ::usleep(100);
    });
  });
}

TEST_CASE("A communicator over the messages of MPI is destroyed with calls in flight", "[mpi]") {
  world::on_every_rank([] {
    std::vector<sum> sums;
    {
      auto comm = make({.timeout = std::chrono::milliseconds(300)});
      toroid::barrier(comm);
      MPI_Barrier(MPI_COMM_WORLD);
      if (comm.rank() == 0 && comm.size() > 1)
        for (int i = 0; i < 3; ++i) sums.emplace_back(comm, std::size_t{3000}, i);
    }
    for (sum& s : sums) {
      s.values = {};
      (void)support::text_of<toroid::peer_lost>([&] { s.pending.wait(); });
    }
  });
}

// A program of its own: it begins MPI in another way.
TEST_CASE("A thread goes on with calls over the messages of MPI", "[.multiple]") {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) {
    WARN("skipped: this MPI does not provide MPI_THREAD_MULTIPLE");
  } else {
    try {
      auto comm = make({.progress = toroid::progress::thread, .region_bytes = 16'384});
      mixed(comm, 60);
      hundred_in_reverse(comm);
      for (const std::size_t count : {std::size_t{3}, std::size_t{70'001}}) {
        // Rank 0 does not come back to this communicator until the others have the result.
        sum started(comm, count, 1);
        if (comm.rank() != 0) started.pending.wait();
        MPI_Barrier(MPI_COMM_WORLD);
        started.pending.wait();
        started.check(comm.rank());
      }
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", world::rank(), error.what());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  MPI_Finalize();
}
