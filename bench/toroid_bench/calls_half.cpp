// SPDX-License-Identifier: Apache-2.0
#include "calls_definition.hpp"

namespace bench {

template calls<threads_communicator> calls_over<threads_communicator, toroid::float16>(const settings&);
template calls<shm_communicator> calls_over<shm_communicator, toroid::float16>(const settings&);
template calls<threads_communicator> calls_over<threads_communicator, toroid::bfloat16>(const settings&);
template calls<shm_communicator> calls_over<shm_communicator, toroid::bfloat16>(const settings&);

}  // namespace bench
