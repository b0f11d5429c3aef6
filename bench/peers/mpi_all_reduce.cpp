// SPDX-License-Identifier: Apache-2.0
// MPI_Allreduce of float with sum by the timing rule of toroid-bench, for ranks on one host. See README.md.
#include "peers/peer_bench.hpp"

#include <CLI/CLI.hpp>

#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace {

using namespace bench;

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(what) + ": " + text);
}

[[noreturn]] void system_failure(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

class mpi_session {
 public:
  mpi_session(int& argc, char**& argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &m_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &m_ranks);
  }
  mpi_session(const mpi_session&) = delete;
  mpi_session& operator=(const mpi_session&) = delete;
  ~mpi_session() { MPI_Finalize(); }
  int rank() const { return m_rank; }
  int ranks() const { return m_ranks; }

 private:
  int m_rank = 0, m_ranks = 0;
};

/// A file that has no name, open on all ranks.
class shared_file {
 public:
  /// Collective.
  shared_file(const mpi_session& mpi, std::size_t bytes) {
    long long where[2] = {};  // the process that has made it, and under which number
    if (mpi.rank() == 0) {
      open_as(memfd_create("meeting", MFD_CLOEXEC), "making the meeting place");
      if (ftruncate(m_descriptor, off_t(bytes)) != 0) system_failure("sizing the meeting place");
      where[0] = getpid();
      where[1] = m_descriptor;
    }
    check(MPI_Bcast(where, 2, MPI_LONG_LONG, 0, MPI_COMM_WORLD), "MPI_Bcast");
    if (mpi.rank() == 0) return;
    const std::string path = "/proc/" + std::to_string(where[0]) + "/fd/" + std::to_string(where[1]);
    open_as(open(path.c_str(), O_RDWR | O_CLOEXEC), "opening rank 0's meeting place");
  }
  shared_file(const shared_file&) = delete;
  shared_file& operator=(const shared_file&) = delete;
  ~shared_file() { close(m_descriptor); }
  int descriptor() const { return m_descriptor; }

 private:
  void open_as(int descriptor, const char* what) {
    if (descriptor < 0) system_failure(what);
    m_descriptor = descriptor;
  }
  int m_descriptor = -1;
};

/// @throws std::runtime_error  unless all ranks are on this host and may use the same cores
void check_placing(const mpi_session& mpi, const std::vector<int>& cores) {
  MPI_Comm host = MPI_COMM_NULL;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
  int here = 0;
  check(MPI_Comm_size(host, &here), "MPI_Comm_size");
  check(MPI_Comm_free(&host), "MPI_Comm_free");
  if (here != mpi.ranks()) throw std::runtime_error("the ranks are not all on one host");

  const int mine[3] = {int(cores.size()), cores.front(), cores.back()};
  int least[3] = {}, greatest[3] = {};
  check(MPI_Allreduce(mine, least, 3, MPI_INT, MPI_MIN, MPI_COMM_WORLD), "MPI_Allreduce");
  check(MPI_Allreduce(mine, greatest, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD), "MPI_Allreduce");
  if (!std::equal(least, least + 3, greatest))
    throw std::runtime_error(
        "mpiexec has bound ranks to different cores, which this program wants to do itself; "
        "pass --bind-to none");
}

class all_reduce {
 public:
  void bind(float* in, float* out, std::size_t count) {
    if (count > std::size_t(INT_MAX)) throw std::runtime_error("more elements than MPI_Allreduce can count");
    m_in = in == out ? MPI_IN_PLACE : in;
    m_out = out;
    m_count = int(count);
  }
  void call() const { check(MPI_Allreduce(m_in, m_out, m_count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce"); }

 private:
  const void* m_in = nullptr;
  float* m_out = nullptr;
  int m_count = 0;
};

/// What the library says of itself, as one word and as a version.
void name_library(peer_name& name) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  check(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  std::string version = as_column(text);
  version = version.substr(0, version.find(';'));
  std::replace(version.begin(), version.end(), '\t', ' ');
  name.version = version;
  name.transport = version.rfind("Open MPI", 0) == 0 ? "openmpi"
                   : version.rfind("MPICH", 0) == 0  ? "mpich"
                                                     : version.substr(0, version.find(' '));
}

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
    name_library(name);
    const std::vector<int> cores = usable_cores();
    check_placing(mpi, cores);
    const shared_file file(mpi, meeting::bytes_for(mpi.ranks()));
    meeting place(mpi.ranks(), mpi.ranks() > int(cores.size()), file.descriptor(),
                  mpi.rank() == 0 ? meeting::file_role::makes : meeting::file_role::joins);
    check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");  // the place has been made, and all have the file open
    const pinned here(cores[std::size_t(mpi.rank()) % cores.size()]);
    all_reduce peer;
    try {
      peer_rank<all_reduce>(peer, what, place, mpi.rank()).measure(name);
    } catch (const std::exception& error) {
      place.fail(error.what());
      throw;
    }
    check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");  // all is counted
    return place.total().wrong == 0 ? 0 : wrong_result;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi-all-reduce: rank %d: %s\n", mpi.rank(), error.what());
    MPI_Abort(MPI_COMM_WORLD, wrong_result);
  }
  return wrong_result;
}
