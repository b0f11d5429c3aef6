// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "pattern.hpp"
#include "settings.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

/// What the ranks bring, and what a reduction of it gives.
struct patterns {
  std::vector<pattern> inputs;  ///< one a rank
  pattern reduced;              ///< of collectives that reduce
};

/// Integers whose reduction is exact in the element type, whatever the order of the operands.
///
/// @param phase  position in the pattern, in [0, pattern::period)
std::int64_t input_value(const settings& what, int rank, std::size_t phase);
std::int64_t reduced_value(const settings& what, std::size_t phase);

/// Whether the above holds for these settings: low-precision types run out of integers when ranks are many.
bool exact(const settings& what);

patterns make_patterns(const settings& what);

}  // namespace bench
