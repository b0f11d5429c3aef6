// SPDX-License-Identifier: Apache-2.0
#include "communicator.hpp"
#include "toroid_bench/calls_definition.hpp"

#include <cstdint>

namespace bench {

template calls<mpi_communicator> calls_over<mpi_communicator, std::int32_t>(const settings&);
template calls<mpi_communicator> calls_over<mpi_communicator, std::int64_t>(const settings&);
template calls<mpi_communicator> calls_over<mpi_communicator, float>(const settings&);
template calls<mpi_communicator> calls_over<mpi_communicator, double>(const settings&);

}  // namespace bench
