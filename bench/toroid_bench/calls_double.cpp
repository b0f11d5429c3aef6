// SPDX-License-Identifier: Apache-2.0
#include "calls_definition.hpp"

namespace bench {

template calls<threads_communicator> calls_over<threads_communicator, double>(const settings&);
template calls<shm_communicator> calls_over<shm_communicator, double>(const settings&);

}  // namespace bench
