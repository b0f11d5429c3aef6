// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace toroid {

/// Where a collective was called from. Every call takes one as its last, defaulted argument, so that an error can
/// name the caller's line.
struct call_site {
  const char* file = "";
  int line = 0;

  static constexpr call_site current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

}  // namespace toroid
