// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "support/demand.hpp"

#include <toroid/communicator/mpi.hpp>
#include <toroid/toroid.hpp>

#include <cstdio>
#include <exception>

/// What the tests under mpiexec share. All ranks run all test cases in the same order.
namespace world {

/// MPI, from the first test case that needs it to the end of the program.
class session {
 public:
  session() { MPI_Init(nullptr, nullptr); }
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session() { MPI_Finalize(); }

  static void begin() { static const session running; }
};

inline int rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
inline int size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// Runs f on every rank. A rank that finds something wrong says so and ends all: the others may be waiting for it.
template <class F>
void on_every_rank(F&& f) {
  session::begin();
  try {
    f();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d of %d: %s\n", rank(), size(), error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/// The text of the error that all ranks get, each for itself.
template <class Error, class F>
std::string text_on_every_rank(F&& f) {
  const std::string text = support::text_of<Error>(f);
  MPI_Barrier(MPI_COMM_WORLD);
  return text;
}

}  // namespace world
