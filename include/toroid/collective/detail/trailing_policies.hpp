// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/algorithms.hpp>
#include <toroid/collective/detail/policies.hpp>
#include <toroid/collective/detail/schedules.hpp>
#include <toroid/collective/policies.hpp>
#include <toroid/core/detail/converting_loops.hpp>
#include <toroid/core/numbers.hpp>
#include <toroid/core/operators.hpp>

#include <cstdint>
#include <type_traits>

/// Policies of a reduction, picked out of what trails its buffers, and what they come to together.
namespace toroid::detail {

template <class T>
struct is_algorithm_policy : std::bool_constant<is_algorithm<T>> {};
template <class T>
struct is_wire_policy : std::bool_constant<is_wire<T>> {};
template <class T>
struct is_accumulator_policy : std::bool_constant<is_accumulator<T>> {};
template <class T>
struct is_requirement_policy : std::bool_constant<is_requirement<T>> {};
template <class T>
struct is_operator_policy : std::bool_constant<is_operator<T>> {};

/// The first of `Given` that is of a kind, or a default.
template <template <class> class Kind, class Default, class... Given>
struct picked {
  using type = Default;
};
template <template <class> class Kind, class Default, class First, class... Rest>
struct picked<Kind, Default, First, Rest...>
    : std::conditional_t<Kind<First>::value, picked<Kind, First>, picked<Kind, Default, Rest...>> {};

template <template <class> class Kind, class... Given>
inline constexpr int number_of = (int{Kind<Given>::value} + ... + 0);

/// Operator, algorithm, wire, accumulator and level out of trailing policies, in whichever order they came.
///
/// @tparam Given  decayed; detail::not_given stands for nothing
template <class... Given>
struct trailing_policies {
  static_assert(number_of<is_algorithm_policy, Given...> <= 1, "toroid: two algorithms were given");
  static_assert(number_of<is_operator_policy, Given...> <= 1, "toroid: two operators were given");
  static_assert(number_of<is_wire_policy, Given...> <= 1, "toroid: two types were given for the wire");
  static_assert(number_of<is_accumulator_policy, Given...> <= 1, "toroid: two types were given to accumulate in");
  static_assert(number_of<is_requirement_policy, Given...> <= 1, "toroid: two determinism levels were required");

  static_assert(!(std::is_same_v<Given, determinism> || ...),
                "toroid: a determinism level is asked for by toroid::require<level>");

  using algorithm = typename picked<is_algorithm_policy, automatic, Given...>::type;
  using operation = typename picked<is_operator_policy, sum, Given...>::type;
  using wire = typename picked<is_wire_policy, wire_t<void>, Given...>::type::type;                      ///< or void
  using accumulator = typename picked<is_accumulator_policy, accumulate_t<void>, Given...>::type::type;  ///< or void
  static constexpr determinism required =
      picked<is_requirement_policy, require_t<determinism::same_on_all_ranks>, Given...>::type::level;

  algorithm how{};
  operation combine;

  /// Functions that call collectives for others name their callers' line in place of a policy.
  static call_site site(call_site otherwise, const Given&... given) {
    (take_site(otherwise, given), ...);
    return otherwise;
  }

  static trailing_policies of(const Given&... given) { return {find<algorithm>(given...), find<operation>(given...)}; }

 private:
  template <class One>
  static void take_site([[maybe_unused]] call_site& at, [[maybe_unused]] const One& one) noexcept {
    if constexpr (std::is_same_v<One, call_site>) at = one;
  }

  template <class Wanted>
  static Wanted find() {
    return Wanted{};
  }
  template <class Wanted, class First, class... Rest>
  static Wanted find(const First& first, const Rest&... rest) {
    if constexpr (std::is_same_v<Wanted, First>)
      return first;
    else
      return find<Wanted>(rest...);
  }
};

/// Numbers that library operators combine without rounding after each step.
template <class T>
struct natural_accumulator {
  using type = T;
};
template <half T>
struct natural_accumulator<T> {
  using type = float;
};

/// Numbers of ranks have so many bits.
inline constexpr int most_ranks_digits = 31;

/// What integers must be widened to so that the sum over any number of ranks is exact.
template <class T>
using exact_sum =
    std::conditional_t<(sizeof(T) <= 4), std::conditional_t<is_signed_number<T>, std::int64_t, std::uint64_t>,
                       std::conditional_t<is_signed_number<T>, int128, uint128>>;

/// The wider of two types of number, one of which holds the other; else the first.
template <class T, class U>
using wider = std::conditional_t<holds<U, T>(), U, T>;

/// In which types the elements of a call travel and are combined.
template <class T, class Policies>
struct travel {
  using operation = typename Policies::operation;
  using algorithm = typename Policies::algorithm;
  static constexpr bool averages_integers = std::is_same_v<operation, average> && whole_number<T>;
  /// An average that partial results of type T would spoil.
  static constexpr bool must_widen =
      algorithm::keeps_partial_results && std::is_same_v<operation, average> && (whole_number<T> || half<T>);

  using widened = std::conditional_t<half<T>, float, exact_sum<T>>;
  using wire = std::conditional_t<!std::is_void_v<typename Policies::wire>, typename Policies::wire,
                                  std::conditional_t<must_widen, widened, T>>;
  /// Elements travel as they are.
  static constexpr bool as_stored = std::is_same_v<wire, T>;

  /// Where nothing is said: no narrower than the elements, nor than what travels. A functor sees elements as they are
  /// unless these travel as something else.
  using widest = wider<typename natural_accumulator<T>::type, typename natural_accumulator<wire>::type>;
  using natural = std::conditional_t<as_stored && (averages_integers || !is_library_operator<operation>), T,
                                     std::conditional_t<averages_integers, wider<exact_sum<T>, wire>, widest>>;
  using accumulator =
      std::conditional_t<std::is_void_v<typename Policies::accumulator>, natural, typename Policies::accumulator>;

  /// And are combined as they would be without any of these policies.
  static constexpr bool plain = as_stored && combines_as<T, accumulator, operation>;
};

template <class T, class Policies>
constexpr void check_wire() {
  using wire = typename Policies::wire;
  if constexpr (!std::is_void_v<wire>) {
    static_assert(std::is_same_v<wire, T> || (number<T> && number<wire>),
                  "toroid: wire<W> takes numbers: integers but bool, floating-point numbers and half types");
    if constexpr (number<T> && number<wire>) {
      static_assert(is_floating<T> == is_floating<wire>,
                    "toroid: wire<W>: floating-point numbers travel as floating-point numbers, integers as integers");
      static_assert(is_floating<T> || holds<wire, T>(),
                    "toroid: wire<W>: this W does not hold all integers of the "
                    "elements' type; only a wider one does");
      static_assert(!travel<T, Policies>::must_widen || !half<T> || !half<wire>,
                    "toroid: wire<W>: with this algorithm an average of half types is exact only if it travels wider");
      static_assert(
          !travel<T, Policies>::must_widen || half<T> || digits_of<wire>() >= digits_of<T>() + most_ranks_digits,
          "toroid: wire<W>: with this algorithm an average of integers is exact only if W holds the sum of as "
          "many as there may be ranks; leave wire out and one that does is taken");
    }
  }
}

template <class T, class Policies>
constexpr void check_accumulator() {
  using accumulator = typename Policies::accumulator;
  if constexpr (!std::is_void_v<accumulator>) {
    static_assert(std::is_same_v<accumulator, T> || (number<T> && number<accumulator>),
                  "toroid: accumulate<A> takes numbers: integers but bool, floating-point numbers and half types");
    if constexpr (number<T> && number<accumulator>) {
      static_assert(holds<accumulator, T>(),
                    "toroid: accumulate<A>: this A does not hold all values of the elements; "
                    "only one as wide, or wider, and of the same kind does");
      static_assert(!travel<T, Policies>::averages_integers || travel<T, Policies>::plain ||
                        digits_of<accumulator>() >= digits_of<T>() + most_ranks_digits,
                    "toroid: accumulate<A>: an average of integers is exact only if A holds the sum; leave it out");
    }
  }
}

/// Refuses, at compile time, what check_policies() refuses, types that cannot stand in for the elements, and an
/// algorithm that fixes results less than was required.
template <class T, class Policies>
constexpr void check_trailing_policies() {
  using algorithm = typename Policies::algorithm;
  using operation = typename Policies::operation;
  using carried_out = algorithm_for<algorithm, is_commutative<operation>>;
  static_assert(Policies::required <= carried_out::level,
                "toroid: this algorithm does not fix results as strongly as toroid::require asks; take toroid::direct "
                "for any_chunking, or require less");
  check_wire<T, Policies>();
  check_accumulator<T, Policies>();
  check_order<operation, algorithm>();
  check_operator<operation, typename travel<T, Policies>::accumulator>();
}

}  // namespace toroid::detail
