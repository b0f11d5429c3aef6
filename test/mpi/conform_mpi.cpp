// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "mpi/world.hpp"
#include "support/catch.hpp"

#include <toroid/collective/fused.hpp>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace {

using conformance::extent;
using conformance::memory_kind;
using support::demand;

std::vector<conformance::choice> every_choice() {
  std::vector<conformance::choice> all = conformance::all_choices();
  for (const conformance::choice& more : conformance::many_rank_choices()) all.push_back(more);
  return all;
}

template <class Transport>
void conform(memory_kind where, extent how_much) {
  toroid::detail::mpi_options<Transport> chosen;
  chosen.region_bytes = 4096;  // many pieces
  auto comm = toroid::mpi::make_communicator<Transport>(MPI_COMM_WORLD, chosen);
  demand(comm.rank() == world::rank() && comm.size() == world::size(), "another rank or size than MPI's");
  conformance::end_of end(comm);
  conformance::check(end, where, how_much, every_choice());
}

/// Values whose sum depends on the order.
std::vector<float> uneven(int rank, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) * 7919U + 1);
  std::uniform_real_distribution<float> values(-1.0F, 1.0F);
  std::vector<float> all(count);
  for (float& value : all) value = values(random) * (random() % 4 == 0 ? 1e6F : 1.0F);
  return all;
}

template <class Algorithm>
void same_bits(std::size_t count, const Algorithm& how, const char* name) {
  auto mapped = toroid::mpi::make_communicator<toroid::transport::shm>(MPI_COMM_WORLD);
  auto messages = toroid::mpi::make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD);
  const std::vector<float> in = uneven(mapped.rank(), count);
  std::vector<float> over_shm(count), over_mpi(count);
  toroid::all_reduce(mapped, in, over_shm, how);
  toroid::all_reduce(messages, in, over_mpi, how);
  demand(std::memcmp(over_shm.data(), over_mpi.data(), count * sizeof(float)) == 0, name, " of ", count,
         " elements: other bits over mpi than over shm");
}

}  // namespace

TEST_CASE("All collectives and algorithms are right over the messages of MPI", "[mpi]") {
  world::on_every_rank([] { conform<toroid::transport::mpi>(memory_kind::ordinary, extent::brief); });
}

TEST_CASE("Memory from allocate is memory like any other over the messages of MPI", "[mpi]") {
  world::on_every_rank([] { conform<toroid::transport::mpi>(memory_kind::shared, extent::brief); });
}

TEST_CASE("All collectives and algorithms are right over shared memory that MPI has set up", "[mpi]") {
  world::on_every_rank([] {
    for (const memory_kind where : {memory_kind::ordinary, memory_kind::shared, memory_kind::mixed})
      conform<toroid::transport::shm>(where, extent::brief);
  });
}

TEST_CASE("Pieces as users get them are right over the messages of MPI", "[mpi]") {
  world::on_every_rank([] {
    auto comm = toroid::mpi::make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD);
    conformance::end_of end(comm);
    conformance::check(end, memory_kind::ordinary, {100'003, 1'000'001},
                       {{conformance::choice::kind::automatic, 0}, {conformance::choice::kind::ring, 0}},
                       extent::brief);
  });
}

TEST_CASE("Results over the messages of MPI have the bits of those over shared memory", "[mpi]") {
  world::on_every_rank([] {
    for (const std::size_t count : {1U, 7U, 1000U, 1025U, 50'021U}) {
      same_bits(count, toroid::automatic{}, "automatic");
      same_bits(count, toroid::direct{.segment_bytes = 1000}, "direct in segments");
      same_bits(count, toroid::ring{}, "ring");
      same_bits(count, toroid::halving_doubling{}, "halving_doubling");
      same_bits(count, toroid::tree{}, "tree");
      same_bits(count, toroid::torus_2d{}, "torus_2d");
    }
  });
}

TEST_CASE("A barrier over the messages of MPI lets nobody out before everybody is in", "[mpi]") {
  world::on_every_rank([] {
    auto comm = toroid::mpi::make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD);
    for (int round = 0; round < 50; ++round) {
      if (comm.rank() == round % comm.size()) ::usleep(1000);
      const std::int64_t came = toroid::transport::detail::monotonic_nanoseconds();
      toroid::barrier(comm);
      const std::int64_t left = toroid::transport::detail::monotonic_nanoseconds();
      std::int64_t last_came = 0, first_left = 0;
      MPI_Allreduce(&came, &last_came, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
      MPI_Allreduce(&left, &first_left, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
      demand(first_left >= last_came, "round ", round, ": out before the last was in");
    }
  });
}

TEST_CASE("A plan says that messages are sent, and how many", "[mpi]") {
  world::on_every_rank([] {
    auto comm = toroid::mpi::make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD);
    const toroid::call_plan long_one = toroid::plan(comm, 1'000'000);
    demand(long_one.pieces_in_place == 0 && long_one.pieces_staged > 0, "no messages: ", long_one.text());
    support::demand_words(long_one.text(), "over mpi", "messages");
    support::demand_words(toroid::plan(comm, 10).text(), "one-shot over mpi");
  });
}

TEST_CASE("Policies and fused buffers go over MPI's messages", "[mpi]") {
  world::on_every_rank([] {
    auto comm = toroid::mpi::make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD);
    const std::size_t before = comm.footprint();
    std::vector<float> values(3000, static_cast<float>(comm.rank())), more(70'000, 1.0F);
    std::vector<int> counts(500, 3 * comm.rank() - 7);
    toroid::all_reduce(comm, values, toroid::wire<toroid::bfloat16>, toroid::ring{}, toroid::accumulate<double>);
    toroid::all_reduce(comm, toroid::fused(counts, more, values), toroid::average{}, toroid::tree{});
    const int p = comm.size();
    const float sum = static_cast<float>(p * (p - 1) / 2);
    int total = 0;
    for (int r = 0; r < p; ++r) total += 3 * r - 7;
    demand(values[2999] == sum && more[69'999] == 1.0F && counts[499] == total / p, values[2999], ' ', more[69'999],
           ' ', counts[499]);
    demand(comm.footprint() > before, "memory is held and not counted");
  });
}
