// SPDX-License-Identifier: Apache-2.0
// Inside an MPI program: a communicator of MPI's ranks, over shared memory where all are on one host, else over MPI's
// own messages. The calls are the same, and so is every bit of their results.
//
//   mpiexec -n 4 example_03_mpi
#include <toroid/communicator/mpi.hpp>
#include <toroid/toroid.hpp>

#include <mpi.h>

#include <cstdio>
#include <exception>
#include <vector>

namespace {

template <class Communicator>
std::vector<float> sums(Communicator& comm) {
  std::vector<float> values(1000, 1.0F / static_cast<float>(comm.rank() + 1));
  toroid::all_reduce(comm, values);
  if (comm.rank() == 0)
    std::printf("over %s: 1 + 1/2 + 1/3 + 1/4 = %.7f\n", Communicator::transport_type::name,
                static_cast<double>(values.front()));
  return values;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    // MPI only brings the ranks together here, and takes no part in the calls.
    auto shared = toroid::mpi::make_communicator<toroid::transport::shm>(MPI_COMM_WORLD);
    // Here all bytes travel in its messages, between hosts too.
    auto messages = toroid::mpi::make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD);
    const std::vector<float> over_shared = sums(shared), over_messages = sums(messages);
    if (shared.rank() == 0) std::printf("the same bits: %s\n", over_shared == over_messages ? "yes" : "no");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "03_mpi: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);  // MPI_Finalize would wait for messages that nobody takes
  }
  // Both communicators are gone by now: the one over MPI's messages cannot be used after this.
  MPI_Finalize();
}
