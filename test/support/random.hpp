// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace support {

/// Numbers that look random and are the same in every run (splitmix64).
class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) : m_state(seed) {}

  std::uint64_t next() noexcept {
    std::uint64_t z = (m_state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  /// In [0, limit).
  std::uint64_t below(std::uint64_t limit) noexcept { return next() % limit; }

 private:
  std::uint64_t m_state;
};

}  // namespace support
