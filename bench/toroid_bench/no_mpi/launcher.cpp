// SPDX-License-Identifier: Apache-2.0
#include "toroid_bench/mpi_launcher.hpp"

#include <stdexcept>
#include <string>

namespace bench {

std::unique_ptr<mpi_launcher> join_mpi(int&, char**&) {
  const std::string others = TOROID_BENCH_MPI_PROGRAMS;  // what this build has
  if (others.empty())
    throw std::runtime_error(
        "this program has no MPI in it, nor was an MPI library found when it was configured; see bench/README.md");
  throw std::runtime_error("this program has no MPI in it; start " + others + " under the mpiexec of that library");
}

}  // namespace bench
