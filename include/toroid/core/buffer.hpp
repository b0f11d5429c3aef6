// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/element.hpp>

#include <span>
#include <type_traits>
#include <vector>

namespace toroid {

/// Whatever has a begin and an end. Collectives take these, and then say what is wrong with one that is no buffer.
template <class R>
concept any_range = std::ranges::range<R>;

/// Elements side by side in memory, their number known: std::vector, std::array, std::span, a C array.
template <class R>
concept buffer =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> && element<std::ranges::range_value_t<R>>;

namespace detail {

template <class T>
inline constexpr bool is_vector_of_bool = false;
template <class Allocator>
inline constexpr bool is_vector_of_bool<std::vector<bool, Allocator>> = true;

/// Refuses, with a message that says why, what is no buffer.
template <class B>
constexpr void check_buffer() noexcept {
  using range = std::remove_cvref_t<B>;
  static_assert(!is_vector_of_bool<range>,
                "toroid: std::vector<bool> packs its elements into bits that cannot be sent; use std::vector<char>");
  if constexpr (!is_vector_of_bool<range>) {
    static_assert(std::ranges::contiguous_range<B> && std::ranges::sized_range<B>,
                  "toroid: a buffer must be contiguous and know its size, as std::vector, std::array and std::span do");
    static_assert(
        element<std::ranges::range_value_t<B>>,
        "toroid: the elements of a buffer must be trivially copyable and neither pointers, references, spans, "
        "views nor C arrays: other ranks would get addresses");
  }
}

/// Refuses, besides what is no buffer, one that cannot be written or that is gone after the call.
template <class B>
constexpr void check_output() noexcept {
  check_buffer<B>();
  if constexpr (buffer<B>) {
    static_assert(!std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<B>>>,
                  "toroid: the result cannot be written to: its elements are const");
    static_assert(std::ranges::borrowed_range<B>,
                  "toroid: the result is a temporary and would be lost: pass a variable or a span");
  }
}

/// The elements of a buffer, const where they are const in it.
///
/// @param range lives at least as long as the span
template <buffer B>
constexpr auto as_span(B&& range) noexcept {
  using type = std::remove_reference_t<std::ranges::range_reference_t<B>>;
  return std::span<type>(std::ranges::data(range), std::ranges::size(range));
}

}  // namespace detail
}  // namespace toroid
