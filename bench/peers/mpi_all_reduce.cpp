// SPDX-License-Identifier: Apache-2.0
// MPI_Allreduce of float with sum by the timing rule of toroid-bench, for ranks on one host. See README.md.
#include "peers/peer_bench.hpp"
#include "toroid_bench/mpi/world.hpp"

#include <CLI/CLI.hpp>

#include <mpi.h>

#include <climits>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace bench;

class all_reduce {
 public:
  void bind(float* in, float* out, std::size_t count) {
    if (count > std::size_t(INT_MAX)) throw std::runtime_error("more elements than MPI_Allreduce can count");
    m_in = in == out ? MPI_IN_PLACE : in;
    m_out = out;
    m_count = int(count);
  }
  void call() const {
    check_mpi(MPI_Allreduce(m_in, m_out, m_count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
  }

 private:
  const void* m_in = nullptr;
  float* m_out = nullptr;
  int m_count = 0;
};

}  // namespace

int main(int argc, char** argv) {
  constexpr int wrong_result = 1, wrong_argument = 2;
  const mpi_session mpi(argc, argv);
  peer_settings what;
  peer_name name{{}, "default", {}};
  CLI::App app("Times MPI_Allreduce of float, sum, over message sizes and checks every result.", "mpi-all-reduce");
  peer_options options(app, what);
  app.add_option("--label", name.algorithm, "what to call mpiexec's settings in the output")->capture_default_str();
  try {
    app.parse(argc, argv);
    options.complete();
  } catch (const CLI::ParseError& error) {
    const int status = mpi.rank() == 0 ? app.exit(error) : error.get_exit_code();
    return status == 0 ? 0 : wrong_argument;
  }
  try {
    const library_name library = name_of_mpi();
    name.transport = library.word;
    name.version = library.version;
    const std::vector<int> cores = cores_of_world(mpi, true);
    const shared_file file(mpi, meeting::bytes_for(mpi.ranks()));
    meeting place(mpi.ranks(), mpi.ranks() > int(cores.size()), file.descriptor(),
                  mpi.rank() == 0 ? meeting::file_role::makes : meeting::file_role::joins);
    check_mpi(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");  // the place has been made, and all have the file open
    const pinned here(cores[std::size_t(mpi.rank()) % cores.size()]);
    all_reduce peer;
    try {
      peer_rank<all_reduce>(peer, what, place, mpi.rank()).measure(name);
    } catch (const std::exception& error) {
      place.fail(error.what());
      throw;
    }
    check_mpi(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");  // all is counted
    return place.total().wrong == 0 ? 0 : wrong_result;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi-all-reduce: rank %d: %s\n", mpi.rank(), error.what());
    MPI_Abort(MPI_COMM_WORLD, wrong_result);
  }
  return wrong_result;
}
