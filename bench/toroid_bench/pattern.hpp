// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

namespace bench {

/// A sequence of elements that repeats with a prime period, so that a block, slot or segment put at a wrong place
/// shows.
///
/// Element i of a buffer in call number c has phase (i + c) % period.
class pattern {
 public:
  static constexpr std::size_t period = 61;

  pattern() = default;

  /// @param value  value(phase) -> T, for phase in [0, period)
  template <class T, class Value>
  static pattern of(Value value) {
    pattern result;
    result.m_element = sizeof(T);
    result.m_tile.resize((tile_elements + period) * sizeof(T));
    for (std::size_t i = 0; i < tile_elements + period; ++i) {
      const T element = value(i % period);
      std::memcpy(result.m_tile.data() + i * sizeof(T), &element, sizeof(T));
    }
    return result;
  }

  /// Writes elements [first, first + count) of a buffer to `out`.
  void fill(std::byte* out, std::size_t first, std::size_t count, std::size_t call) const {
    for_each_tile(first, count, call, [&](std::size_t offset, const std::byte* tile, std::size_t bytes) {
      copy_through_caches(out + offset, tile, bytes);
    });
  }

  /// How many of the elements [first, first + count) at `data` are not what they should be, bit for bit.
  std::size_t wrong(const std::byte* data, std::size_t first, std::size_t count, std::size_t call) const {
    std::size_t result = 0;
    for_each_tile(first, count, call, [&](std::size_t offset, const std::byte* tile, std::size_t bytes) {
      if (std::memcmp(data + offset, tile, bytes) == 0) return;
      for (std::size_t i = 0; i < bytes; i += m_element)
        if (std::memcmp(data + offset + i, tile + i, m_element) != 0) ++result;
    });
    return result;
  }

 private:
  static constexpr std::size_t tile_elements = period * 32;

  template <class F>
  void for_each_tile(std::size_t first, std::size_t count, std::size_t call, F f) const {
    const std::byte* tile = m_tile.data() + (first % period + call % period) % period * m_element;
    for (std::size_t i = 0; i < count; i += tile_elements)
      f(i * m_element, tile, std::min(tile_elements, count - i) * m_element);
  }

  /// Plain stores whatever the size: memcpy may go past the caches, a program that computes does not.
  static void copy_through_caches(std::byte* out, const std::byte* in, std::size_t bytes) {
    std::size_t i = 0;
    for (; i + 64 <= bytes; i += 64) {
      std::memcpy(out + i, in + i, 64);
      asm volatile("" : : : "memory");
    }
    if (i < bytes) std::memcpy(out + i, in + i, bytes - i);
  }

  std::size_t m_element = 1;
  std::vector<std::byte> m_tile;
};

}  // namespace bench
