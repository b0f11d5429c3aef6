// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/half.hpp>
#include <toroid/core/host_device.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

/// What values of several ranks are combined with. Each operator is an empty type, to be called with two elements.
///
/// * Integers wrap around. Of bool, `sum` and `maximum` are "or", `product` and `minimum` are "and".
/// * float16 and bfloat16 are combined as float. A reduction of several operands at once rounds once, at the end.
/// * `minimum` and `maximum` of floating-point numbers are NaN as soon as one operand is, wherever it stands.
/// * std::array is combined component by component.
/// * Any other functor (T, T) -> T works too: it sees its operands in rank order, unless it is called commutative.
namespace toroid {

namespace detail {

template <class T>
inline constexpr bool is_array_of = false;
template <class T, std::size_t N>
inline constexpr bool is_array_of<std::array<T, N>> = true;

/// Integers but bool, extended ones too where std::numeric_limits knows them.
template <class T>
concept whole_number = std::numeric_limits<T>::is_integer && !std::is_same_v<T, bool>;

template <class T>
concept floating_number = std::is_floating_point_v<T> || half<T>;

__extension__ using int128 = __int128;
__extension__ using uint128 = unsigned __int128;

/// Unsigned, and too wide to be promoted to int: what arithmetic that wraps is done in.
template <whole_number T>
using wrapping =
    std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::conditional_t<sizeof(T) <= 8, std::uint64_t, uint128>>;

template <class T>
concept addable = requires(const T& a, const T& b) {
  static_cast<T>(a + b);
};
template <class T>
concept multipliable = requires(const T& a, const T& b) {
  static_cast<T>(a * b);
};
template <class T>
concept ordered = requires(const T& a, const T& b) {
  static_cast<bool>(a < b);
};
template <class T>
concept bitwise = requires(const T& a, const T& b) {
  static_cast<T>(a & b);
  static_cast<T>(a | b);
  static_cast<T>(a ^ b);
};
template <class T>
concept divisible_by_count = requires(const T& a, int n) {
  static_cast<T>(a / n);
};
/// complex numbers: divided by their own kind of number only
template <class T>
concept divisible_by_value_type = requires(const T& a, int n) {
  static_cast<T>(a / static_cast<typename T::value_type>(n));
};

/// Calls Self::combine on what is neither an array nor a half.
template <class Self>
struct library_operator {
  /// @param a, b two elements, the one of the lower rank first
  template <class T>
  TOROID_HOST_DEVICE constexpr T operator()(const T& a, const T& b) const {
    if constexpr (is_array_of<T>) {
      T result = a;
      for (std::size_t i = 0; i < a.size(); ++i) result[i] = (*this)(a[i], b[i]);
      return result;
    } else {
      Self::template check<T>();
      if constexpr (half<T>)
        return rounded<T>(Self::combine(widened(a), widened(b)));
      else
        return Self::combine(a, b);
    }
  }
};

template <class T>
TOROID_HOST_DEVICE constexpr void check_bitwise() noexcept {
  static_assert(!floating_number<T>,
                "toroid: bit_and, bit_or and bit_xor take integers; the bits of floating-point "
                "numbers are not numbers");
  static_assert(floating_number<T> || bitwise<T>,
                "toroid: bit_and, bit_or and bit_xor need a type with the operators &, | and ^");
}

}  // namespace detail

/// a + b
struct sum : detail::library_operator<sum> {
  template <class T>
  TOROID_HOST_DEVICE static constexpr void check() noexcept {
    static_assert(half<T> || detail::addable<T>,
                  "toroid: sum needs a type with the operator +; pass a functor of your own for structs");
  }
  template <class T>
  TOROID_HOST_DEVICE static constexpr T combine(const T& a, const T& b) {
    if constexpr (std::is_same_v<T, bool>)
      return a || b;
    else if constexpr (detail::whole_number<T>)
      return static_cast<T>(static_cast<detail::wrapping<T>>(a) + static_cast<detail::wrapping<T>>(b));
    else
      return static_cast<T>(a + b);
  }
};

/// a * b
struct product : detail::library_operator<product> {
  template <class T>
  TOROID_HOST_DEVICE static constexpr void check() noexcept {
    static_assert(half<T> || detail::multipliable<T>,
                  "toroid: product needs a type with the operator *; pass a functor of your own for structs");
  }
  template <class T>
  TOROID_HOST_DEVICE static constexpr T combine(const T& a, const T& b) {
    if constexpr (std::is_same_v<T, bool>)
      return a && b;
    else if constexpr (detail::whole_number<T>)
      return static_cast<T>(static_cast<detail::wrapping<T>>(a) * static_cast<detail::wrapping<T>>(b));
    else
      return static_cast<T>(a * b);
  }
};

/// The lesser operand; NaN if one is NaN.
struct minimum : detail::library_operator<minimum> {
  template <class T>
  TOROID_HOST_DEVICE static constexpr void check() noexcept {
    static_assert(half<T> || detail::ordered<T>,
                  "toroid: minimum needs a type with the operator <; pass a functor of your own for structs");
  }
  template <class T>
  TOROID_HOST_DEVICE static constexpr T combine(const T& a, const T& b) {
    if constexpr (std::is_floating_point_v<T>)
      return a != a || a < b ? a : b;
    else
      return a < b ? a : b;
  }
};

/// The greater operand; NaN if one is NaN.
struct maximum : detail::library_operator<maximum> {
  template <class T>
  TOROID_HOST_DEVICE static constexpr void check() noexcept {
    static_assert(half<T> || detail::ordered<T>,
                  "toroid: maximum needs a type with the operator <; pass a functor of your own for structs");
  }
  template <class T>
  TOROID_HOST_DEVICE static constexpr T combine(const T& a, const T& b) {
    if constexpr (std::is_floating_point_v<T>)
      return a != a || b < a ? a : b;
    else
      return b < a ? a : b;
  }
};

/// The sum of all, divided by the number of ranks. Two elements are added up; the division comes once, at the end.
///
/// The sum is exact in its intermediate: integers are added in a wider type and the quotient is cut off towards zero,
/// as C++ divides (the average of -1, -1 and -2 is -1); halves are added as float and rounded once.
struct average : detail::library_operator<average> {
  template <class T>
  TOROID_HOST_DEVICE static constexpr void check() noexcept {
    static_assert(!std::is_same_v<T, bool>,
                  "toroid: average of bool has no meaning; use logical_and, logical_or or numbers");
    static_assert(half<T> || detail::addable<T>,
                  "toroid: average needs a type with the operator +; pass a functor of your own for structs");
    static_assert(half<T> || detail::divisible_by_count<T> || detail::divisible_by_value_type<T>,
                  "toroid: average needs a type that can be divided by a number");
  }
  template <class T>
  TOROID_HOST_DEVICE static constexpr T combine(const T& a, const T& b) {
    return sum::combine(a, b);
  }
  /// @param total the sum of all contributions
  /// @param contributions how many there were, at least 1
  template <class T>
  TOROID_HOST_DEVICE static constexpr T divide(const T& total, int contributions) {
    if constexpr (detail::is_array_of<T>) {
      T result = total;
      for (std::size_t i = 0; i < total.size(); ++i) result[i] = divide(total[i], contributions);
      return result;
    } else if constexpr (half<T>) {
      return detail::rounded<T>(divide(detail::widened(total), contributions));
    } else if constexpr (std::is_floating_point_v<T> || detail::whole_number<T>) {
      // An unsigned type of int's width would turn a signed count, or a signed total, into another number.
      if constexpr (detail::whole_number<T> && sizeof(T) <= sizeof(int))
        return static_cast<T>(static_cast<long long>(total) / contributions);
      else
        return static_cast<T>(total / static_cast<T>(contributions));
    } else if constexpr (detail::divisible_by_count<T>) {
      return static_cast<T>(total / contributions);
    } else {
      return static_cast<T>(total / static_cast<typename T::value_type>(contributions));
    }
  }
};

/// a & b, of integers and std::byte
struct bit_and : detail::library_operator<bit_and> {
  template <class T>
  TOROID_HOST_DEVICE static constexpr void check() noexcept {
    detail::check_bitwise<T>();
  }
  template <class T>
  TOROID_HOST_DEVICE static constexpr T combine(const T& a, const T& b) {
    return static_cast<T>(a & b);
  }
};

/// a | b, of integers and std::byte
struct bit_or : detail::library_operator<bit_or> {
  template <class T>
  TOROID_HOST_DEVICE static constexpr void check() noexcept {
    detail::check_bitwise<T>();
  }
  template <class T>
  TOROID_HOST_DEVICE static constexpr T combine(const T& a, const T& b) {
    return static_cast<T>(a | b);
  }
};

/// a ^ b, of integers and std::byte
struct bit_xor : detail::library_operator<bit_xor> {
  template <class T>
  TOROID_HOST_DEVICE static constexpr void check() noexcept {
    detail::check_bitwise<T>();
  }
  template <class T>
  TOROID_HOST_DEVICE static constexpr T combine(const T& a, const T& b) {
    return static_cast<T>(a ^ b);
  }
};

/// 1 if both operands differ from 0, else 0, in their own type. NaN differs from 0.
struct logical_and : detail::library_operator<logical_and> {
  template <class T>
  TOROID_HOST_DEVICE static constexpr void check() noexcept {
    static_assert(std::numeric_limits<T>::is_specialized || half<T>,
                  "toroid: logical_and takes numbers and bool; pass a functor of your own for other types");
  }
  template <class T>
  TOROID_HOST_DEVICE static constexpr T combine(const T& a, const T& b) {
    return static_cast<T>(a != T{} && b != T{});
  }
};

/// 1 if one of the operands differs from 0, else 0, in their own type. NaN differs from 0.
struct logical_or : detail::library_operator<logical_or> {
  template <class T>
  TOROID_HOST_DEVICE static constexpr void check() noexcept {
    static_assert(std::numeric_limits<T>::is_specialized || half<T>,
                  "toroid: logical_or takes numbers and bool; pass a functor of your own for other types");
  }
  template <class T>
  TOROID_HOST_DEVICE static constexpr T combine(const T& a, const T& b) {
    return static_cast<T>(a != T{} || b != T{});
  }
};

/// A functor whose author promises that the order of its operands does not matter. Made by commutative().
template <class F>
struct commutative_operator {
  [[no_unique_address]] F function;

  template <class T>
  TOROID_HOST_DEVICE constexpr auto operator()(const T& a, const T& b) const -> decltype(function(a, b)) {
    return function(a, b);
  }
};

/// Marks a functor as commutative and associative up to rounding, so that algorithms that reorder operands accept it.
///
///     toroid::all_reduce(comm, values, toroid::commutative([](auto a, auto b) { return a * b; }), toroid::ring{});
template <class F>
TOROID_HOST_DEVICE constexpr commutative_operator<F> commutative(F function) {
  return {std::move(function)};
}

namespace detail {

/// 1 and up for the operators of the library, 0 for anything else: equal on all ranks, so that they can be compared.
template <class Op>
constexpr std::uint32_t operator_code() noexcept {
  std::uint32_t code = 0, next = 0;
  const auto consider = [&](bool same) { ++next, code = same ? next : code; };
  consider(std::is_same_v<Op, sum>);
  consider(std::is_same_v<Op, product>);
  consider(std::is_same_v<Op, minimum>);
  consider(std::is_same_v<Op, maximum>);
  consider(std::is_same_v<Op, average>);
  consider(std::is_same_v<Op, bit_and>);
  consider(std::is_same_v<Op, bit_or>);
  consider(std::is_same_v<Op, bit_xor>);
  consider(std::is_same_v<Op, logical_and>);
  consider(std::is_same_v<Op, logical_or>);
  return code;
}

/// The name of what operator_code stands for.
constexpr const char* operator_name(std::uint32_t code) noexcept {
  constexpr const char* names[] = {"a functor", "sum",    "product", "minimum",     "maximum",   "average",
                                   "bit_and",   "bit_or", "bit_xor", "logical_and", "logical_or"};
  return code < std::size(names) ? names[code] : "unknown operator";
}

template <class Op>
inline constexpr bool is_library_operator = operator_code<Op>() != 0;

/// Refuses, with a message that says why, an operator that cannot combine two elements of type T.
template <class Op, class T>
constexpr void check_operator() noexcept {
  if constexpr (is_library_operator<Op>) {
    if constexpr (is_array_of<T>)
      check_operator<Op, typename T::value_type>();
    else
      Op::template check<T>();
  } else {
    constexpr bool callable = std::is_invocable_v<const Op&, const T&, const T&>;
    static_assert(callable, "toroid: the operator must be callable, also when const, with two elements of the buffer");
    if constexpr (callable) {
      using result = std::invoke_result_t<const Op&, const T&, const T&>;
      static_assert(
          requires(result && r) { static_cast<T>(static_cast<result&&>(r)); },
          "toroid: the operator's result does not convert to the element type");
    }
  }
}

}  // namespace detail

/// Whether the order of operands does not matter to an operator: true for those of the library and for what is wrapped
/// in commutative(), else false. May be specialised for a type of your own.
template <class Op>
inline constexpr bool is_commutative = detail::is_library_operator<Op>;
template <class F>
inline constexpr bool is_commutative<commutative_operator<F>> = true;

}  // namespace toroid
