// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "toroid_bench/rival.hpp"

#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

/// What the benchmarks that MPI starts have in common. Nothing of the library.
namespace bench {

inline void check_mpi(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(what) + ": " + text);
}

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

/// A file that has no name, open on all ranks of a host.
class shared_file {
 public:
  /// Collective.
  shared_file(const mpi_session& mpi, std::size_t bytes) {
    long long where[2] = {};  // the process that has made it, and under which number
    if (mpi.rank() == 0) {
      open_as(memfd_create("meeting", MFD_CLOEXEC), "making the meeting place");
      if (ftruncate(m_descriptor, off_t(bytes)) != 0)
        throw std::system_error(errno, std::generic_category(), "sizing the meeting place");
      where[0] = getpid();
      where[1] = m_descriptor;
    }
    check_mpi(MPI_Bcast(where, 2, MPI_LONG_LONG, 0, MPI_COMM_WORLD), "MPI_Bcast");
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
    if (descriptor < 0) throw std::system_error(errno, std::generic_category(), what);
    m_descriptor = descriptor;
  }
  int m_descriptor = -1;
};

/// The cores that the ranks may use, all of them together.
///
/// @param pinning  the program places ranks itself, so all must have been given the same cores
/// @throws std::runtime_error  unless all ranks are on this host, or for the above
inline std::vector<int> cores_of_world(const mpi_session& mpi, bool pinning) {
  MPI_Comm host = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
  int here = 0, fewest = 0;
  check_mpi(MPI_Comm_size(host, &here), "MPI_Comm_size");
  check_mpi(MPI_Comm_free(&host), "MPI_Comm_free");
  check_mpi(MPI_Allreduce(&here, &fewest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), "MPI_Allreduce");
  if (fewest != mpi.ranks()) throw std::runtime_error("the ranks are not all on one host");

  std::vector<unsigned char> mine(CPU_SETSIZE, 0), some(CPU_SETSIZE), all(CPU_SETSIZE);
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) throw std::system_error(errno, std::generic_category(), "affinity");
  for (std::size_t core = 0; core < mine.size(); ++core) mine[core] = CPU_ISSET(core, &set) ? 1 : 0;
  check_mpi(MPI_Allreduce(mine.data(), some.data(), CPU_SETSIZE, MPI_UNSIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD),
            "MPI_Allreduce");
  check_mpi(MPI_Allreduce(mine.data(), all.data(), CPU_SETSIZE, MPI_UNSIGNED_CHAR, MPI_MIN, MPI_COMM_WORLD),
            "MPI_Allreduce");
  if (pinning && some != all)
    throw std::runtime_error(
        "mpiexec has bound ranks to different cores, which this program wants to do itself; pass --bind-to none");
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (some[std::size_t(core)] != 0) cores.push_back(core);
  return cores;
}

/// What the library says of itself, as one word and as a text that may stand in a column.
inline library_name name_of_mpi() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  check_mpi(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  std::string version = text;
  version = version.substr(0, version.find('\n'));
  std::replace(version.begin(), version.end(), ',', ';');
  version = version.substr(0, version.find(';'));
  std::replace(version.begin(), version.end(), '\t', ' ');
  version.erase(std::unique(version.begin(), version.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
                version.end());
  std::string word = version.substr(0, version.find(' '));
  if (version.rfind("Open MPI", 0) == 0) word = "openmpi";
  if (version.rfind("MPICH", 0) == 0) word = "mpich";
  return {word, version};
}

}  // namespace bench
