// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/half.hpp>
#include <toroid/core/operators.hpp>
#include <toroid/core/reduction.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

/// Single elements at any address, and short runs of bytes: what the reduction loops are not wide enough for.
namespace toroid::detail {

template <class T>
[[gnu::always_inline]] inline T load_element(const std::byte* from) noexcept {
  struct image {
    std::byte bytes[sizeof(T)];
  } copy;
  std::memcpy(&copy, from, sizeof(T));
  return __builtin_bit_cast(T, copy);  // T need not be default constructible
}

template <class T>
[[gnu::always_inline]] inline void store_element(std::byte* to, const T& value) noexcept {
  std::memcpy(to, static_cast<const void*>(std::addressof(value)), sizeof(T));
}

inline std::uintptr_t address_of(const std::byte* p) noexcept { return reinterpret_cast<std::uintptr_t>(p); }

template <std::size_t Piece>
[[gnu::always_inline]] inline void copy_two_pieces(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  struct piece {
    std::byte bytes[Piece];
  } head, tail;
  std::memcpy(&head, from, Piece);
  std::memcpy(&tail, from + (bytes - Piece), Piece);
  std::memcpy(to, &head, Piece);
  std::memcpy(to + (bytes - Piece), &tail, Piece);
}

/// Copies at most 64 bytes in pieces that may overlap: cheaper than a call of memcpy.
[[gnu::always_inline]] inline void copy_short(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes >= 32)
    copy_two_pieces<32>(to, from, bytes);
  else if (bytes >= 16)
    copy_two_pieces<16>(to, from, bytes);
  else if (bytes >= 8)
    copy_two_pieces<8>(to, from, bytes);
  else if (bytes >= 4)
    copy_two_pieces<4>(to, from, bytes);
  else if (bytes >= 2)
    copy_two_pieces<2>(to, from, bytes);
  else if (bytes == 1)
    *to = *from;
}

/// Less than 16 bytes in two words, the first byte lowest, zero above the last: they reach a register without a detour
/// through memory, where a wide load would wait for narrow stores.
struct short_run {
  std::uint64_t low = 0, high = 0;
};

template <class Word>
[[gnu::always_inline]] inline std::uint64_t word_at(const std::byte* from) noexcept {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}
template <class Word>
[[gnu::always_inline]] inline void put_word(std::byte* to, std::uint64_t value) noexcept {
  const Word word = static_cast<Word>(value);
  std::memcpy(to, &word, sizeof word);
}

[[gnu::always_inline]] inline short_run read_short(const std::byte* from, std::size_t bytes) noexcept {
  if (bytes >= 8)
    return {word_at<std::uint64_t>(from), word_at<std::uint64_t>(from + bytes - 8) >> 8 * (15 - bytes) >> 8};
  if (bytes >= 4)
    return {word_at<std::uint32_t>(from) | word_at<std::uint32_t>(from + bytes - 4) << 8 * (bytes - 4), 0};
  if (bytes >= 2)
    return {word_at<std::uint16_t>(from) | word_at<std::uint16_t>(from + bytes - 2) << 8 * (bytes - 2), 0};
  return {bytes == 1 ? word_at<std::uint8_t>(from) : 0, 0};
}
[[gnu::always_inline]] inline void write_short(std::byte* to, const short_run& run, std::size_t bytes) noexcept {
  if (bytes >= 8) {
    put_word<std::uint64_t>(to, run.low);
    put_word<std::uint64_t>(to + bytes - 8,
                            bytes == 8 ? run.low : run.low >> 8 * (bytes - 8) | run.high << 8 * (16 - bytes));
  } else if (bytes >= 4) {
    put_word<std::uint32_t>(to, run.low);
    put_word<std::uint32_t>(to + bytes - 4, run.low >> 8 * (bytes - 4));
  } else if (bytes >= 2) {
    put_word<std::uint16_t>(to, run.low);
    put_word<std::uint16_t>(to + bytes - 2, run.low >> 8 * (bytes - 2));
  } else if (bytes == 1) {
    put_word<std::uint8_t>(to, run.low);
  }
}

/// Which destinations to store past the caches.
struct streaming {
  std::uint64_t destinations = 0;  ///< bit d stands for destination d; more than 64 are stored as usual
  std::size_t first_line = 0;      ///< bytes before the first line of 64 bytes in all of these

  bool wanted() const noexcept { return destinations != 0; }
  bool includes(int destination) const noexcept { return destination < 64 && (destinations >> destination & 1u) != 0; }
};

/// Not those that are a source, whose lines are in the cache anyway, nor those whose lines begin at other elements.
inline streaming streaming_of(const reduce_arguments& a) noexcept {
  streaming result;
  if (!a.non_temporal) return result;
  for (int d = 0; d < a.destination_count && d < 64; ++d) {
    bool is_source = false;
    for (int s = 0; s < a.source_count; ++s) is_source |= a.sources[s] == a.destinations[d];
    const std::size_t first_line = -address_of(a.destinations[d]) % 64;
    if (is_source || (result.wanted() && first_line != result.first_line)) continue;
    result.first_line = first_line;
    result.destinations |= std::uint64_t{1} << d;
  }
  return result;
}

/// Elements up to this number are combined one by one.
template <class T>
inline constexpr std::size_t few = half<T> ? 1 : 2;

/// One element after another. For so few that the wide loops do not pay, and the reference for what those compute.
template <class T, class Op>
void reduce_one_by_one(const reduce_arguments& a) {
  for (std::size_t at = 0; at < a.count * sizeof(T); at += sizeof(T)) {
    const auto operand = [&](int source) {
      if constexpr (half<T>)
        return widened(load_element<T>(a.sources[source] + at));
      else
        return load_element<T>(a.sources[source] + at);
    };
    auto value = operand(0);
    for (int s = 1; s < a.source_count; ++s) value = Op{}(value, operand(s));
    if constexpr (std::is_same_v<Op, average>)
      if (a.finish) value = average::divide(value, a.divisor);
    for (int d = 0; d < a.destination_count; ++d) {
      if constexpr (half<T>)
        store_element(a.destinations[d] + at, rounded<T>(value));
      else
        store_element(a.destinations[d] + at, value);
    }
  }
}

}  // namespace toroid::detail
