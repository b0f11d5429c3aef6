// SPDX-License-Identifier: Apache-2.0
#include "communicator.hpp"
#include "rival.hpp"
#include "toroid_bench/launcher_environment.hpp"
#include "toroid_bench/mpi_launcher.hpp"
#include "toroid_bench/output.hpp"
#include "toroid_bench/rank_of_benchmark.hpp"
#include "toroid_bench/timing.hpp"
#include "world.hpp"

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {
namespace {

class launcher final : public mpi_launcher {
 public:
  launcher(int& argc, char**& argv) : m_mpi(argc, argv) {
    // Under the mpiexec of another library every process believes to be alone.
    if (const auto asked = launched_ranks(); asked && *asked != ranks())
      throw std::runtime_error("mpiexec has started " + std::to_string(*asked) + " ranks, but the world of " +
                               name_of_mpi().version + ", which this program is linked with, has " +
                               std::to_string(ranks()) + ": use the mpiexec of that library");
  }
  int rank() const override { return m_mpi.rank(); }
  int ranks() const override { return m_mpi.ranks(); }

  std::size_t run(const settings& what) override {
    const std::vector<int> cores = cores_of_world(m_mpi, what.pin);  // throws on all ranks, or on none
    try {
      return measured(what, cores);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "toroid-bench: rank %d: %s\n", rank(), error.what());
      MPI_Abort(MPI_COMM_WORLD, 1);
      throw;
    }
  }

 private:
  std::size_t measured(const settings& what, const std::vector<int>& cores) {
    const shared_file file(m_mpi, meeting::bytes_for(ranks()));
    meeting place(ranks(), ranks() > int(cores.size()), file.descriptor(),
                  rank() == 0 ? meeting::file_role::makes : meeting::file_role::joins);
    check_mpi(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");  // the place has been made, and all have the file open
    std::optional<mpi_rival> against;
    if (what.vs) against.emplace(what);
    output print(what, cores, what.vs ? std::optional(name_of_mpi()) : std::nullopt);
    if (rank() == 0) {
      print.header();
      print.flush();
    }
    try {
      if (what.transport == transport::shm) {
        toroid::options options;
        options.checking = what.checking == checking::none ? toroid::check::none : toroid::check::calls;
        auto comm = toroid::mpi::make_communicator<toroid::transport::shm>(MPI_COMM_WORLD, options);
        measure(comm, what, place, cores, against ? &*against : nullptr, print);
      } else {
        auto comm = toroid::mpi::make_communicator<toroid::transport::mpi>(MPI_COMM_WORLD);
        measure(comm, what, place, cores, against ? &*against : nullptr, print);
      }
      check_mpi(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");  // all is counted
    } catch (const std::exception& error) {
      place.fail(error.what());
      end_all(place, print);
    }
    if (rank() == 0) print.footer(place.total());
    return place.total().wrong + place.total().vs_wrong;
  }

  template <class Communicator>
  void measure(Communicator& comm, const settings& what, meeting& place, const std::vector<int>& cores, rival* against,
               output& print) {
    std::optional<pinned> here;
    if (what.pin) here.emplace(cores[std::size_t(rank()) % cores.size()]);
    rank_of_benchmark<Communicator>(comm, what, place, chosen_calls<Communicator>(what), against).measure(print);
  }

  /// MPI does not come back from an error. Rank 0 says what it was and ends all; the others leave it the time to do so.
  [[noreturn]] void end_all(meeting& place, const output& print) {
    constexpr unsigned patience_s = 30;
    if (rank() == 0) {
      const std::string why = place.why_failed();
      print.footer(place.total(), why);
      std::fprintf(stderr, "toroid-bench: %s\n", why.c_str());
    } else {
      sleep(patience_s);
    }
    MPI_Abort(MPI_COMM_WORLD, 1);
    throw std::runtime_error("MPI_Abort has come back");
  }

  mpi_session m_mpi;
};

}  // namespace

std::unique_ptr<mpi_launcher> join_mpi(int& argc, char**& argv) {
  if (!launched_rank())
    throw std::runtime_error("--launch mpi, but no mpiexec has started this program: mpiexec -n RANKS " +
                             std::string(argv[0]) + " …");
  return std::make_unique<launcher>(argc, argv);
}

}  // namespace bench
