// SPDX-License-Identifier: Apache-2.0
#include "calls_definition.hpp"

#include <cstdint>

namespace bench {

template struct calls_on<std::int32_t>;
template struct calls_on<std::uint32_t>;

}  // namespace bench
