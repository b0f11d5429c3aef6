// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/options.hpp>
#include <toroid/communicator/split.hpp>
#include <toroid/transport/mpi.hpp>

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <utility>

namespace toroid::detail {

/// Ranks that send each other messages of MPI: MPI divides its communicator. Its colours and keys are of its type
/// `int`: it is told the founders' and the new ranks, which fit. MPI_Comm_split has no deadline; but all ranks have
/// just been heard of.
template <>
class splitter<transport::mpi> {
 public:
  struct offer {
    std::uint64_t identity = 0;
  };

  splitter(transport::mpi& old, const new_group& group, const options& chosen, const split_call&) noexcept
      : m_old(old), m_group(group), m_chosen(chosen) {}

  offer begin() { return {random_number("split")}; }
  std::optional<transport::mpi> finish(const offer& there) {
    MPI_Comm made = MPI_COMM_NULL;
    transport::detail::check_mpi(
        MPI_Comm_split(m_old.group().get(), m_group.is_none() ? MPI_UNDEFINED : m_group.founder(), m_group.rank, &made),
        "MPI_Comm_split");
    if (m_group.is_none()) return std::nullopt;
    return transport::mpi(transport::mpi_group(made), there.identity, waiting_of_split(m_old.how(), m_chosen));
  }

 private:
  transport::mpi& m_old;
  const new_group& m_group;
  const options& m_chosen;
};

}  // namespace toroid::detail
