// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "settings.hpp"

#include <cstddef>
#include <memory>

namespace bench {

/// Ranks that mpiexec has started: for --launch mpi. A program is linked with one MPI library at most, so that there is
/// one program for each (mpi/), and one that has none (no_mpi/).
class mpi_launcher {
 public:
  virtual ~mpi_launcher() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  /// Measures, and prints on rank 0. Returns the number of wrong elements, on all ranks; ends all ranks after an error
  /// from which MPI cannot come back.
  virtual std::size_t run(const settings& what) = 0;
};

/// Takes part in what mpiexec has started. To be called once.
///
/// @throws std::runtime_error  if this program has no MPI, or was not started by its mpiexec: how to do it
std::unique_ptr<mpi_launcher> join_mpi(int& argc, char**& argv);

}  // namespace bench
