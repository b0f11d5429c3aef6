// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <type_traits>

namespace toroid::schedule::detail {

/// Words and numbers, one after the other. (GCC 12 warns, wrongly, of many a `"literal" + std::string`.)
template <class... Parts>
std::string joined(const Parts&... parts) {
  std::string all;
  const auto add = [&](const auto& part) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(part)>>)
      all += std::to_string(part);
    else
      all += part;
  };
  (add(parts), ...);
  return all;
}

}  // namespace toroid::schedule::detail
