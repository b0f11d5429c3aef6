// SPDX-License-Identifier: Apache-2.0
#include "mpi/world.hpp"
#include "support/catch.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using support::demand;
using support::demand_words;
using support::text_of;
using toroid::mpi::make_communicator;
using world::text_on_every_rank;

}  // namespace

TEST_CASE("A rank that stays away is missed by its deadline, by all, again and again", "[mpi]") {
  world::on_every_rank([] {
    if (world::size() == 1) return;
    auto comm = make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD, {.timeout = 300ms});
    std::vector<float> values(1000, 1.0F);
    toroid::all_reduce(comm, values);
    const auto call = [&] { toroid::all_reduce(comm, values); };
    // What it missed may all have come meanwhile, so that its first call is none too many; the next is.
    const auto calls = [&] {
      call();
      call();
    };
    if (comm.rank() == 0) ::usleep(1'500'000);
    const std::string text = text_of<toroid::timeout_error>(calls);
    demand_words(text, "all_reduce (call", "errors_mpi.cpp", "no answer within 300 ms in step", "bytes",
                 "waited for rank 0");
    demand(text.find(comm.rank() == 0 ? "reports" : "call 2") != text.npos, "not told by others: ", text);
    demand(text_of<toroid::timeout_error>(call) == text, "another error in the next call");
    demand(text_of<toroid::timeout_error>([&] { toroid::barrier(comm); }) == text, "another error in a barrier");
    // What was under way may come still, but not to the caller's memory.
    std::fill(values.begin(), values.end(), 7.0F);
    MPI_Barrier(MPI_COMM_WORLD);
    ::usleep(100'000);
    for (const float value : values) demand(value == 7.0F, "a buffer was written to after its call had failed");
  });
}

TEST_CASE("The others learn of a rank that has aborted", "[mpi]") {
  world::on_every_rank([] {
    auto comm = make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD, {.timeout = 20s});
    std::vector<float> values(100'000, 1.0F);
    const int last = comm.size() - 1;
    if (comm.rank() == last) comm.abort();
    const std::string text = text_of<toroid::peer_lost>([&] { toroid::all_reduce(comm, values, toroid::ring{}); });
    demand_words(text, "all_reduce (call 1", "rank " + std::to_string(last) + " has aborted");
    MPI_Barrier(MPI_COMM_WORLD);
  });
}

TEST_CASE("Arguments of set-up that are wrong on one rank are errors on all", "[mpi]") {
  world::on_every_rank([] {
    const bool odd = world::rank() == world::size() - 1;
    const auto over_mpi = [](toroid::mpi::options chosen) {
      return text_on_every_rank<toroid::usage_error>(
          [&] { make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD, chosen); });
    };
    demand_words(over_mpi({.checking = odd ? toroid::check::calls : toroid::check::none}), "check::none",
                 "transport::mpi");
    demand_words(over_mpi({.timeout = odd ? 0s : 5s}), "options.timeout");
    demand_words(over_mpi({.region_bytes = odd ? 7U : 8192U}), "options.region_bytes");
    demand_words(text_on_every_rank<toroid::usage_error>(
                     [&] { make_communicator<toroid::transport::shm>(MPI_COMM_WORLD, {.timeout = odd ? 0s : 5s}); }),
                 "options.timeout");
    demand_words(text_of<toroid::usage_error>([] { make_communicator<toroid::transport::mpi>(MPI_COMM_NULL); }),
                 "MPI_COMM_NULL");
    if (world::size() == 1) return;
    demand_words(over_mpi({.region_bytes = odd ? 4096U : 8192U}), "options.region_bytes is 4096", "8192");
    demand_words(text_on_every_rank<toroid::usage_error>([&] {
                   make_communicator<toroid::transport::shm>(MPI_COMM_WORLD,
                                                             {.timeout = 5s, .region_bytes = odd ? 4096U : 8192U});
                 }),
                 "region_bytes", "4096", "8192");
  });
}

TEST_CASE("Wrong arguments of a call leave a communicator over MPI whole", "[mpi]") {
  world::on_every_rank([] {
    auto comm = make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD, {.region_bytes = 4096});
    std::vector<float> values(100, 1.0F);
    text_of<toroid::usage_error>([&] { toroid::broadcast(comm, values, comm.size()); });
    struct large {
      char bytes[5000];
    };
    std::vector<large> rows(2);
    demand_words(text_of<toroid::usage_error>([&] { toroid::broadcast(comm, rows, 0); }), "options.region_bytes");
    toroid::all_reduce(comm, values);
    demand(values[99] == static_cast<float>(comm.size()), "the next call gives ", values[99]);
    auto moved = std::move(comm);
    text_of<toroid::usage_error>([&] { toroid::barrier(comm); });
    toroid::barrier(moved);
  });
}

TEST_CASE("Communicators come and go without leaving anything behind", "[mpi]") {
  world::on_every_rank([] {
    // For two ranks, more than MPICH has names for communicators, should one be lost each time; with more ranks than
    // cores its collectives of set-up take milliseconds each.
    const int times = world::size() <= 2 ? 2500 : 50;
    for (int i = 0; i < times; ++i) {
      auto comm = make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD);
      if (i % 100 == 0) toroid::barrier(comm);
    }
    for (int i = 0; i < 20; ++i) {
      auto comm = make_communicator<toroid::transport::shm>(MPI_COMM_WORLD);
      toroid::barrier(comm);
    }
  });
}

TEST_CASE("Several communicators, of parts of the world too, do not mix up their messages", "[mpi]") {
  world::on_every_rank([] {
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, world::rank() % 2, -world::rank(), &half);
    {
      auto all = make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD);
      auto some = make_communicator<toroid::transport::mpi>(half);
      auto mapped = make_communicator<toroid::transport::shm>(half);
      MPI_Comm_free(&half);
      for (int i = 0; i < 100; ++i) {
        int ranks = 1, in_half = 1, parity = world::rank() % 2;
        toroid::all_reduce(all, std::span(&ranks, 1));
        toroid::all_reduce(some, std::span(&in_half, 1));
        demand(ranks == world::size() && in_half == some.size(), "wrong sums ", ranks, " and ", in_half);
        toroid::all_reduce(mapped, std::span(&parity, 1), toroid::maximum{});
        demand(parity == world::rank() % 2, "a rank of the other half took part");
      }
    }
  });
}

// MPICH can be told to take the ranks of one host for ranks of several.
TEST_CASE("Ranks that MPI holds to be on several hosts are refused shared memory", "[.several_hosts]") {
  world::on_every_rank([] {
    const std::string text =
        text_on_every_rank<toroid::usage_error>([] { make_communicator<toroid::transport::shm>(MPI_COMM_WORLD); });
    demand_words(text, "not on one host", "rank 0 on", "rank " + std::to_string(world::size() - 1) + " on");
    auto comm = make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD);
    std::vector<float> values(100'000, 1.0F);
    toroid::all_reduce(comm, values);
    demand(values[5] == static_cast<float>(comm.size()), "the messages of MPI bring ", values[5]);
  });
}
