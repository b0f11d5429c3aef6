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

class file {
 public:
  explicit file(int descriptor, const char* what) : m_descriptor(descriptor) {
    if (descriptor < 0) system_failure(what);
  }
  file(const file&) = delete;
  file& operator=(const file&) = delete;
  ~file() { close(m_descriptor); }
  int descriptor() const { return m_descriptor; }

 private:
  int m_descriptor;
};

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

/// Lets ranks that are programs of their own meet as forked ones do: lays one file, which has no name, over the pages
/// of every rank's meeting place.
void share(meeting& place, const mpi_session& mpi) {
  const auto page = std::uintptr_t(sysconf(_SC_PAGESIZE));
  // The place's header and lines follow each other from the beginning of a page.
  const auto header = reinterpret_cast<std::uintptr_t>(&place.total());
  const auto line = reinterpret_cast<std::uintptr_t>(&place.line(0));
  const std::uintptr_t begin = header / page * page;
  if (line / page * page != begin || line < header) throw std::logic_error("the meeting place is laid out otherwise");
  const std::size_t bytes = std::size_t(reinterpret_cast<std::uintptr_t>(&place.line(mpi.ranks() - 1) + 1) - begin);
  void* const memory = reinterpret_cast<void*>(begin);

  long long where[2] = {};  // the process that has the file open, and under which number
  const auto lay = [&](int descriptor) {
    if (mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0) == MAP_FAILED)
      system_failure("mapping the meeting place");
  };
  if (mpi.rank() == 0) {
    const file shared(memfd_create("meeting", MFD_CLOEXEC), "making the meeting place");
    if (pwrite(shared.descriptor(), memory, bytes, 0) != ssize_t(bytes)) system_failure("filling the meeting place");
    lay(shared.descriptor());
    where[0] = getpid();
    where[1] = shared.descriptor();
    check(MPI_Bcast(where, 2, MPI_LONG_LONG, 0, MPI_COMM_WORLD), "MPI_Bcast");
    check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");  // keeps it open until all have it
  } else {
    check(MPI_Bcast(where, 2, MPI_LONG_LONG, 0, MPI_COMM_WORLD), "MPI_Bcast");
    const std::string path = "/proc/" + std::to_string(where[0]) + "/fd/" + std::to_string(where[1]);
    const file shared(open(path.c_str(), O_RDWR | O_CLOEXEC), "opening rank 0's meeting place");
    lay(shared.descriptor());
    check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
  }
}

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
    meeting place(mpi.ranks(), mpi.ranks() > int(cores.size()));
    share(place, mpi);
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
