// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/schedule/determinism.hpp>
#include <toroid/schedule/operation.hpp>

#include <concepts>
#include <type_traits>

namespace toroid::schedule {

/// What executors, checker, cost model and drawing ask of a schedule; schedule/operation.hpp says what the answers
/// mean.
///
/// A schedule is an empty type, all of whose functions can be called at compile time and inside a kernel. It needs no
/// base class; to add one, write the functions and let test/schedule prove them.
template <class S>
concept schedule_type = std::is_empty_v<S> && requires(problem p, int i) {
  { S::blocks(p) }
  noexcept->std::same_as<int>;
  { S::steps(p) }
  noexcept->std::same_as<int>;
  { S::touching_steps(p) }
  noexcept->std::same_as<int>;
  { S::operations(p, i) }
  noexcept->std::same_as<int>;
  { S::at(p, i, i) }
  noexcept->std::same_as<operation>;
  { S::class_count(p) }
  noexcept->std::same_as<int>;
  { S::class_at(p, i) }
  noexcept->std::same_as<step_class>;
  requires std::same_as<decltype(S::pipelined), const bool>;
  // Usable at compile time, asked of a problem that every schedule has to know: rank 0 of two.
  typename std::bool_constant<S::pipelined>;
  typename std::integral_constant<int, S::blocks(problem{0, 2, 0}) + S::steps(problem{0, 2, 0}) +
                                           S::touching_steps(problem{0, 2, 0}) + S::class_count(problem{0, 2, 0}) +
                                           S::class_at(problem{0, 2, 0}, 0).count + S::operations(problem{0, 2, 0}, 0)>;
};

/// A schedule that states what it promises, as those of the library do.
template <class S>
concept stated_schedule = schedule_type<S> && requires(problem p) {
  { S::sent(p) }
  noexcept->std::same_as<share>;
  requires std::same_as<decltype(S::level), const determinism>;
  typename std::bool_constant<S::level >= determinism::same_on_all_ranks>;
};

/// Whether ranks are alike only in what no rank arithmetic says.
template <class S>
constexpr bool ranks_differ() noexcept {
  if constexpr (requires { S::ranks_differ; })
    return S::ranks_differ;
  else
    return false;
}

/// Whether operations use only what plain ones do.
template <class S>
constexpr bool has_plain_operations() noexcept {
  if constexpr (requires { S::plain_operations; })
    return S::plain_operations;
  else
    return false;
}

}  // namespace toroid::schedule
