// SPDX-License-Identifier: Apache-2.0
#include "collective/exchange.hpp"
#include "collective/rooted.hpp"
#include "mpi/world.hpp"
#include "support/catch.hpp"

// Collectives beyond those of the conformance suite, over messages and over shared memory that MPI has set up.

namespace {

/// Runs f(communicator&) over both transports, with regions so small that there are many pieces.
template <class F>
void over_both(F f) {
  world::on_every_rank([&] {
    toroid::detail::mpi_options<toroid::transport::mpi> messages;
    messages.region_bytes = 4096;
    auto sent = toroid::mpi::make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD, messages);
    f(sent);
    toroid::detail::mpi_options<toroid::transport::shm> mapped;
    mapped.region_bytes = 4096;
    auto shared = toroid::mpi::make_communicator<toroid::transport::shm>(MPI_COMM_WORLD, mapped);
    f(shared);
  });
}

}  // namespace

TEST_CASE("Reduce, gather and scatter are right under MPI for every root", "[mpi]") {
  over_both([](auto& comm) {
    rooted::check(comm, false);
    rooted::keeps_order(comm);
  });
}

TEST_CASE("Blocks of equal and of any length are exchanged under MPI", "[mpi]") {
  over_both([](auto& comm) {
    exchange::check(comm, false);
    exchange::check_v(comm, false);
  });
}
