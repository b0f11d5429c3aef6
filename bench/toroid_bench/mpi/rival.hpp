// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "toroid_bench/rival.hpp"
#include "toroid_bench/settings.hpp"

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace bench {

/// MPI's own collective over MPI_COMM_WORLD: with blocks of equal length the plain form, otherwise the one with counts.
class mpi_rival final : public rival {
 public:
  /// @pre  refusal(what) is empty
  explicit mpi_rival(const settings& what);
  void bind(const std::byte* in, std::byte* out, std::size_t count) override;
  void call() override { check(m_function(*this)); }

 private:
  static void check(int code);
  int (*function() const)(const mpi_rival&);

  const settings& m_what;
  MPI_Datatype m_type;
  MPI_Op m_operation;
  int (*m_function)(const mpi_rival&) = nullptr;
  const void* m_in = nullptr;  ///< MPI_IN_PLACE where it is the result's
  void* m_out = nullptr;
  int m_count = 0;
  int m_own_block = 0;
  std::vector<int> m_counts, m_begins;  ///< of the blocks, by rank
};

}  // namespace bench
