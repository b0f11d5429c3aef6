// SPDX-License-Identifier: Apache-2.0
#include "rival.hpp"
#include "world.hpp"

#include <toroid/topology/block.hpp>

#include <cstddef>

namespace bench {
namespace {

MPI_Datatype type_of(const settings& what) {
  if (!what.has_data()) return MPI_BYTE;
  switch (what.element) {
    case element::int8:
      return MPI_INT8_T;
    case element::uint8:
      return MPI_UINT8_T;
    case element::int32:
      return MPI_INT32_T;
    case element::uint32:
      return MPI_UINT32_T;
    case element::int64:
      return MPI_INT64_T;
    case element::uint64:
      return MPI_UINT64_T;
    case element::float16:
    case element::bfloat16:
      return MPI_UINT16_T;  // only moved: MPI has no arithmetic for them
    case element::float32:
      return MPI_FLOAT;
    case element::float64:
      return MPI_DOUBLE;
  }
  return MPI_BYTE;
}

MPI_Op operation_of(const settings& what) {
  switch (what.reduction) {
    case reduction::sum:
      return MPI_SUM;
    case reduction::product:
      return MPI_PROD;
    case reduction::minimum:
      return MPI_MIN;
    case reduction::maximum:
      return MPI_MAX;
    case reduction::bit_and:
      return MPI_BAND;
    case reduction::bit_or:
      return MPI_BOR;
    case reduction::bit_xor:
      return MPI_BXOR;
    case reduction::logical_and:
      return MPI_LAND;
    case reduction::logical_or:
      return MPI_LOR;
    case reduction::average:
      break;
  }
  return MPI_OP_NULL;
}

}  // namespace

mpi_rival::mpi_rival(const settings& what) : m_what(what), m_type(type_of(what)), m_operation(operation_of(what)) {}

void mpi_rival::check(int code) { check_mpi(code, "MPI's collective"); }

void mpi_rival::bind(const std::byte* in, std::byte* out, std::size_t count) {
  m_in = in == out ? MPI_IN_PLACE : static_cast<const void*>(in);
  m_out = out;
  m_count = int(count);
  m_counts.clear();
  m_begins.clear();
  for (int r = 0; r < m_what.ranks; ++r) {
    const toroid::block part = toroid::block_of(count, m_what.ranks, r);
    m_counts.push_back(int(part.count));
    m_begins.push_back(int(part.begin));
  }
  int rank = 0;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  m_own_block = m_counts[std::size_t(rank)];
  m_function = function();
}

int (*mpi_rival::function() const)(const mpi_rival&) {
  const bool equal = m_count % m_what.ranks == 0;
  switch (m_what.collective) {
    case collective::all_reduce:
      return [](const mpi_rival& m) {
        return MPI_Allreduce(m.m_in, m.m_out, m.m_count, m.m_type, m.m_operation, MPI_COMM_WORLD);
      };
    case collective::reduce_scatter:
      if (equal)
        return [](const mpi_rival& m) {
          return MPI_Reduce_scatter_block(m.m_in, m.m_out, m.m_own_block, m.m_type, m.m_operation, MPI_COMM_WORLD);
        };
      return [](const mpi_rival& m) {
        return MPI_Reduce_scatter(m.m_in, m.m_out, m.m_counts.data(), m.m_type, m.m_operation, MPI_COMM_WORLD);
      };
    case collective::all_gather:
      if (equal)
        return [](const mpi_rival& m) {
          return MPI_Allgather(m.m_in, m.m_own_block, m.m_type, m.m_out, m.m_own_block, m.m_type, MPI_COMM_WORLD);
        };
      return [](const mpi_rival& m) {
        return MPI_Allgatherv(m.m_in, m.m_own_block, m.m_type, m.m_out, m.m_counts.data(), m.m_begins.data(), m.m_type,
                              MPI_COMM_WORLD);
      };
    case collective::broadcast:
      return [](const mpi_rival& m) { return MPI_Bcast(m.m_out, m.m_count, m.m_type, m.m_what.root, MPI_COMM_WORLD); };
    case collective::barrier:
      return [](const mpi_rival&) { return MPI_Barrier(MPI_COMM_WORLD); };
  }
  return nullptr;
}

}  // namespace bench
