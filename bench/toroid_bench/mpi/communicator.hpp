// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/mpi.hpp>

namespace bench {

using mpi_communicator = toroid::communicator<toroid::transport::mpi>;

}  // namespace bench
