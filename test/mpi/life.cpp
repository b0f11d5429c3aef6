// SPDX-License-Identifier: Apache-2.0
#include "mpi/world.hpp"
#include "support/catch.hpp"

#include <optional>

using support::demand_words;
using support::text_of;

// A program of its own: MPI can be begun and ended once.
TEST_CASE("Before MPI_Init and after MPI_Finalize nothing is made, and nothing breaks", "[.life]") {
  const auto make_both = [](const char* words) {
    const auto over_mpi = [] { toroid::mpi::make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD); };
    const auto over_shm = [] { toroid::mpi::make_communicator<toroid::transport::shm>(MPI_COMM_WORLD); };
    demand_words(text_of<toroid::usage_error>(over_mpi), words);
    demand_words(text_of<toroid::usage_error>(over_shm), words);
  };
  make_both("MPI is not initialized");
  MPI_Init(nullptr, nullptr);
  {
    auto outlives = toroid::mpi::make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD);
    auto mapped = toroid::mpi::make_communicator<toroid::transport::shm>(MPI_COMM_WORLD);
    toroid::barrier(outlives);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    toroid::barrier(mapped);  // MPI takes no part
    make_both("MPI has been finalized");
  }
  SUCCEED("what fails has thrown");
}
