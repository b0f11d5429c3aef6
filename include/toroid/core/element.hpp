// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/half.hpp>

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

namespace toroid {

namespace detail {

/// Looks like std::reference_wrapper, whose header is dear: a `type`, `get()` returning a reference to it, and a
/// conversion to that.
template <class T>
concept reference_like = requires(const T& r) {
  typename T::type;
  { r.get() } -> std::same_as<typename T::type&>;
  requires std::is_convertible_v<const T&, typename T::type&>;
};

template <class T>
inline constexpr bool holds_address =
    std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_null_pointer_v<T> || reference_like<T>;
template <class T, std::size_t N>
inline constexpr bool holds_address<std::array<T, N>> = holds_address<T> || std::ranges::enable_view<T>;

}  // namespace detail

/// What a buffer may consist of: a type whose bytes are its value, on any rank. Pointers and views are not: their bytes
/// are addresses, which mean nothing to a peer. (Inside a struct nobody can see them.)
template <class T>
concept element = std::is_object_v<T> && !std::is_const_v<T> && !std::is_volatile_v<T> && !std::is_array_v<T> &&
                  std::is_trivially_copyable_v<T> && !detail::holds_address<T> && !std::ranges::enable_view<T>;

namespace detail {

enum class element_kind : std::uint32_t {
  structure,
  boolean,
  character,
  signed_integer,
  unsigned_integer,
  floating,
  half
};

template <class T>
constexpr element_kind kind_of() noexcept {
  if constexpr (std::is_enum_v<T>)
    return kind_of<std::underlying_type_t<T>>();
  else if constexpr (std::is_same_v<T, bool>)
    return element_kind::boolean;
  else if constexpr (std::is_same_v<T, char>)
    return element_kind::character;
  else if constexpr (half<T>)
    return element_kind::half;
  else if constexpr (std::is_floating_point_v<T>)
    return element_kind::floating;
  else if constexpr (std::is_integral_v<T>)
    return std::is_signed_v<T> ? element_kind::signed_integer : element_kind::unsigned_integer;
  else
    return element_kind::structure;
}

inline constexpr std::uint32_t structure_bit = 0x80000000u;

/// kind and size of a type of this kind, below 256
constexpr std::uint32_t plain_code(element_kind kind, std::size_t size) noexcept {
  return static_cast<std::uint32_t>(kind) << 4 | static_cast<std::uint32_t>(std::countr_zero(size));
}

/// Identifies kind and size of a type, equally in all translation units and programs, so that ranks can compare what
/// they reduce. Types of the same representation share a code (long and long long); structs are known by size and
/// alignment.
template <class T>
constexpr std::uint32_t element_code() noexcept {
  constexpr element_kind kind = kind_of<T>();
  if constexpr (half<T>)
    return plain_code(kind, 2) + (std::is_same_v<as_half<T>, bfloat16> ? 1 : 0);
  else if constexpr (kind != element_kind::structure)
    return plain_code(kind, sizeof(T));
  else
    return structure_bit | static_cast<std::uint32_t>(std::countr_zero(alignof(T))) << 26 |
           (static_cast<std::uint32_t>(sizeof(T)) & 0x3ffffffu);
}

/// The name of what element_code stands for.
constexpr const char* element_name(std::uint32_t code) noexcept {
  struct entry {
    std::uint32_t code;
    const char* name;
  };
  constexpr entry table[] = {
      {element_code<bool>(), "bool"},
      {element_code<char>(), "char"},
      {element_code<std::int8_t>(), "int8"},
      {element_code<std::int16_t>(), "int16"},
      {element_code<std::int32_t>(), "int32"},
      {element_code<std::int64_t>(), "int64"},
      {element_code<std::uint8_t>(), "uint8"},
      {element_code<std::uint16_t>(), "uint16"},
      {element_code<std::uint32_t>(), "uint32"},
      {element_code<std::uint64_t>(), "uint64"},
      {element_code<float>(), "float"},
      {element_code<double>(), "double"},
      {element_code<float16>(), "float16"},
      {element_code<bfloat16>(), "bfloat16"},
      {element_code<long double>(), "long double"},  // behind double, which it may be
      {plain_code(element_kind::signed_integer, 16), "int128"},
      {plain_code(element_kind::unsigned_integer, 16), "uint128"},
  };
  for (const entry& e : table)
    if (e.code == code) return e.name;
  return (code & structure_bit) != 0 ? "struct" : "unknown type";
}

}  // namespace detail
}  // namespace toroid
