// SPDX-License-Identifier: Apache-2.0
#include <toroid/communicator/mpi.hpp>
#include <toroid/toroid.hpp>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    auto shared = toroid::mpi::make_communicator<toroid::transport::shm>(MPI_COMM_WORLD);
    auto messages = toroid::mpi::make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD);
    toroid::barrier(shared);
    toroid::barrier(messages);
  }
  MPI_Finalize();
}
