// SPDX-License-Identifier: Apache-2.0
#include "communicator/split_tables.hpp"
#include "mpi/world.hpp"
#include "support/catch.hpp"

#include <string>
#include <vector>

// What holds for threads and processes, over MPI's messages and over shared memory that MPI has set up.

namespace {

using support::demand;

/// The tables are for more ranks than there may be: those that are missing are left out.
splits::table cut_to(const splits::table& whole, int ranks) {
  splits::table cut{whole.name, {}, {}};
  for (std::size_t r = 0; r < whole.wishes.size() && r < static_cast<std::size_t>(ranks); ++r)
    cut.wishes.push_back(whole.wishes[r]);
  for (const std::vector<int>& group : whole.groups) {
    std::vector<int> members;
    for (const int r : group)
      if (r < ranks) members.push_back(r);
    if (!members.empty()) cut.groups.push_back(members);
  }
  return cut;
}

template <class Transport>
void split_by_all_tables() {
  auto comm = toroid::mpi::make_communicator<Transport>(MPI_COMM_WORLD);
  for (const splits::table& one : splits::tables())
    if (static_cast<int>(one.wishes.size()) >= comm.size()) splits::check(comm, cut_to(one, comm.size()));
}

template <class Transport>
void outlive_each_other() {
  auto comm = toroid::mpi::make_communicator<Transport>(MPI_COMM_WORLD);
  auto half = comm.split(comm.rank() % 2);
  auto alone = half.split(half.rank());
  auto same = comm.split(0);
  splits::check_sum(alone, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  half.abort();
  if (half.size() > 1) (void)support::text_of<toroid::peer_lost>([&] { toroid::barrier(half); });
  splits::check_sum(comm, comm.size());
  { const auto ended = std::move(comm); }
  splits::check_sum(same, same.size());
  auto again = same.split(1, -same.rank());
  demand(again.rank() == same.size() - 1 - same.rank(), "keys that are not heeded");
  splits::check_sum(again, again.size());
}

}  // namespace

TEST_CASE("A split puts ranks of one colour together over the messages of MPI", "[mpi]") {
  world::on_every_rank([] { split_by_all_tables<toroid::transport::mpi>(); });
}

TEST_CASE("A split puts ranks of one colour together over shared memory that MPI has set up", "[mpi]") {
  world::on_every_rank([] { split_by_all_tables<toroid::transport::shm>(); });
}

TEST_CASE("Groups that were split off outlive the old one over the messages of MPI", "[mpi]") {
  world::on_every_rank([] { outlive_each_other<toroid::transport::mpi>(); });
}

TEST_CASE("Groups that were split off outlive the old one over shared memory that MPI has set up", "[mpi]") {
  world::on_every_rank([] { outlive_each_other<toroid::transport::shm>(); });
}

TEST_CASE("Two hundred groups over the messages of MPI come and go", "[mpi]") {
  world::on_every_rank([] {
    auto comm = toroid::mpi::make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD);
    for (int i = 0; i < 200; ++i) {
      auto group = comm.split((comm.rank() + i) % 2);
      splits::check_sum(group, group.size());
    }
  });
}
