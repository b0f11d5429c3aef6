// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/algorithms.hpp>
#include <toroid/collective/policies.hpp>
#include <toroid/core/call_site.hpp>
#include <toroid/core/operators.hpp>

#include <type_traits>
#include <utility>

namespace toroid::detail {

template <class T>
inline constexpr bool is_operator =
    !is_algorithm<T> && !is_further_policy<T> && !std::is_same_v<T, not_given> && !std::is_same_v<T, call_site>;

/// Picks the algorithm and the operator out of two trailing policies, in whichever order they came.
template <class First, class Second>
struct chosen_policies {
  static_assert(!is_further_policy<First> && !is_further_policy<Second>,
                "toroid: this collective takes an operator and an algorithm, but neither wire, accumulate nor require");
  static_assert(!(is_algorithm<First> && is_algorithm<Second>), "toroid: two algorithms were given");
  static_assert(!(is_operator<First> && is_operator<Second>), "toroid: two operators were given");
  static constexpr bool has_operator = is_operator<First> || is_operator<Second>;

  using algorithm =
      std::conditional_t<is_algorithm<First>, First, std::conditional_t<is_algorithm<Second>, Second, automatic>>;
  using operation = std::conditional_t<is_operator<First>, First, std::conditional_t<is_operator<Second>, Second, sum>>;

  algorithm how{};
  operation combine;

  static chosen_policies of(const First& first, const Second& second) {
    if constexpr (is_algorithm<First>)
      return {first, pick_operator(first, second)};
    else if constexpr (is_algorithm<Second>)
      return {second, pick_operator(first, second)};
    else
      return {{}, pick_operator(first, second)};
  }

 private:
  static operation pick_operator(const First& first, const Second& second) {
    if constexpr (is_operator<First>)
      return first;
    else if constexpr (is_operator<Second>)
      return second;
    else
      return operation{};
  }
};

/// Refuses, at compile time, an algorithm that reorders operands for an operator that does not commute.
template <class Operation, class Algorithm>
constexpr void check_order() {
  static_assert(!Algorithm::reorders || is_commutative<Operation>,
                "toroid: this algorithm combines operands in another order, and the operator is not known to commute; "
                "wrap it in toroid::commutative(f), or use toroid::direct or toroid::tree");
}

/// Refuses, besides, an operator that does not fit the elements, and averages that an algorithm with partial results
/// would round more than once.
template <class T, class Operation, class Algorithm>
constexpr void check_policies() {
  check_operator<Operation, T>();
  check_order<Operation, Algorithm>();
  static_assert(
      !Algorithm::keeps_partial_results || !std::is_same_v<Operation, average> || !(whole_number<T> || half<T>),
      "toroid: an average of integers or of half types is exact only with toroid::direct");
}

}  // namespace toroid::detail
