// SPDX-License-Identifier: Apache-2.0
#include "calls_definition.hpp"

#include <cstdint>

namespace bench {

template calls<threads_communicator> calls_over<threads_communicator, std::int32_t>(const settings&);
template calls<shm_communicator> calls_over<shm_communicator, std::int32_t>(const settings&);
template calls<threads_communicator> calls_over<threads_communicator, std::uint32_t>(const settings&);
template calls<shm_communicator> calls_over<shm_communicator, std::uint32_t>(const settings&);

}  // namespace bench
