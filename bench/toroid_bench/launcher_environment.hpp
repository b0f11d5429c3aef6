// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>
#include <initializer_list>
#include <optional>

/// What the launchers of MPI programs tell their processes, for use before MPI has been initialized.
namespace bench {

inline std::optional<int> number_in_environment(std::initializer_list<const char*> names) {
  for (const char* const name : names)
    if (const char* const text = std::getenv(name)) return std::atoi(text);
  return std::nullopt;
}
inline std::optional<int> launched_rank() {
  return number_in_environment({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"});
}
inline std::optional<int> launched_ranks() { return number_in_environment({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}); }

}  // namespace bench
