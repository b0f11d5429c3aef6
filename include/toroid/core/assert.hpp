// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cassert>

/// A condition that only a fault inside the library can break. What a caller can get wrong is a usage_error instead.
/// May be defined before the first include, to send failures elsewhere.
#ifndef TOROID_ASSERT
#define TOROID_ASSERT(condition) assert(condition)
#endif
