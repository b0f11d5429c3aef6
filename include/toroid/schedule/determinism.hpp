// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>

#include <cstddef>

namespace toroid::schedule {

/// How strongly a result is fixed, from weak to strong.
enum class determinism {
  same_on_all_ranks,  ///< all ranks get the same bits
  run_to_run,         ///< and so does every run with the same ranks, algorithm and options
  any_chunking,       ///< and an element's result depends on nothing but that element's inputs
};

/// `of / parts`: how much of a vector, or how many times the whole of it.
struct share {
  int of = 0;
  int parts = 1;

  TOROID_HOST_DEVICE constexpr double value() const noexcept { return static_cast<double>(of) / parts; }
  /// Elements, or bytes, of `whole`, which `parts` divides.
  TOROID_HOST_DEVICE constexpr std::size_t times(std::size_t whole) const noexcept {
    return whole / static_cast<std::size_t>(parts) * static_cast<std::size_t>(of);
  }
};

TOROID_HOST_DEVICE constexpr share operator+(share a, share b) noexcept {
  return a.parts == b.parts ? share{a.of + b.of, a.parts} : share{a.of * b.parts + b.of * a.parts, a.parts * b.parts};
}

}  // namespace toroid::schedule
