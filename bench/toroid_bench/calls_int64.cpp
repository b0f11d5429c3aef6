// SPDX-License-Identifier: Apache-2.0
#include "calls_definition.hpp"

#include <cstdint>

namespace bench {

template struct calls_on<std::int64_t>;
template struct calls_on<std::uint64_t>;

}  // namespace bench
