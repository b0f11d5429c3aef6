// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

/// The seam between the typed shell and the byte core: a schedule's operation becomes one call of one of these
/// functions, which alone know the element type and the operator.
namespace toroid::detail {

/// One pass over one run of elements.
///
/// Sources are combined from left to right; every destination gets the value. A destination may be exactly one of the
/// sources (in place); partial overlaps do not occur. Pointers may have any alignment, each another one.
struct reduce_arguments {
  const std::byte* const* sources = nullptr;
  int source_count = 0;  ///< at least 1; with 1 it is a copy (still finished, if asked for)
  std::byte* const* destinations = nullptr;
  int destination_count = 0;      ///< at least 1
  std::size_t count = 0;          ///< elements, possibly none
  bool finish = false;            ///< the sum is complete: `average` divides by `divisor`; other operators do nothing
  int divisor = 1;                ///< number of contributions
  bool non_temporal = false;      ///< results will not be read again soon: store past the caches, then fence
  bool hands_over = false;        ///< the last destination is a slot, whose lines stand in its readers' caches
  const void* functor = nullptr;  ///< a user's operator, else null
};

using reduce_function = void (*)(const reduce_arguments&);

/// The instruction sets that reduction loops are compiled for, whatever flags the user compiles with.
enum class instruction_set : int { baseline, avx2, avx512 };

}  // namespace toroid::detail
