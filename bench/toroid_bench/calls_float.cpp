// SPDX-License-Identifier: Apache-2.0
#include "calls_definition.hpp"

namespace bench {

template calls<threads_communicator> calls_over<threads_communicator, float>(const settings&);
template calls<shm_communicator> calls_over<shm_communicator, float>(const settings&);

}  // namespace bench
