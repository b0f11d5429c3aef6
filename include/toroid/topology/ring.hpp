// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>

namespace toroid::topology {

/// `value` modulo `ranks`, in [0, ranks), for `value` no less than -ranks.
TOROID_HOST_DEVICE constexpr int wrap(int value, int ranks) noexcept { return (value + ranks) % ranks; }

/// The rank before and after `rank` on a ring of `ranks`.
TOROID_HOST_DEVICE constexpr int left_of(int rank, int ranks) noexcept { return wrap(rank - 1, ranks); }
TOROID_HOST_DEVICE constexpr int right_of(int rank, int ranks) noexcept { return wrap(rank + 1, ranks); }

static_assert(left_of(0, 5) == 4 && right_of(4, 5) == 0 && left_of(0, 1) == 0);

}  // namespace toroid::topology
