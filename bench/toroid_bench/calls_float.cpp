// SPDX-License-Identifier: Apache-2.0
#include "calls_definition.hpp"

namespace bench {

template struct calls_on<float>;

}  // namespace bench
