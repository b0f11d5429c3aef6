// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>

namespace toroid::topology {

/// The largest k with 2^k <= value, for value >= 1.
TOROID_HOST_DEVICE constexpr int floor_log2(int value) noexcept {
  int k = 0;
  while (value >> 1 >= 1 << k) ++k;
  return k;
}
/// The smallest k with value <= 2^k, for value >= 1.
TOROID_HOST_DEVICE constexpr int ceil_log2(int value) noexcept {
  const int below = floor_log2(value);
  return value == 1 << below ? below : below + 1;
}

static_assert(floor_log2(1) == 0 && floor_log2(7) == 2 && floor_log2(8) == 3 && floor_log2(1 << 30) == 30);
static_assert(ceil_log2(1) == 0 && ceil_log2(7) == 3 && ceil_log2(8) == 3 && ceil_log2(9) == 4);

}  // namespace toroid::topology
