// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/algorithms.hpp>
#include <toroid/collective/detail/collective_call.hpp>
#include <toroid/communicator/communicator.hpp>
#include <toroid/core/buffer.hpp>
#include <toroid/core/detail/kernels.hpp>
#include <toroid/core/element.hpp>
#include <toroid/core/error.hpp>
#include <toroid/core/operators.hpp>
#include <toroid/topology/grid.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

/// Checks of arguments, all before any byte moves, and the step from typed to erased calls.
namespace toroid::detail {

[[noreturn, gnu::noinline, gnu::cold]] inline void refuse(collective_kind kind, const call_site& at,
                                                          const std::string& what) {
  throw usage_error(std::string("toroid: ") + name_of(kind) + " at " + at.file + ":" + std::to_string(at.line) + ": " +
                    what);
}

/// Whether a collective on this group is over when the function that makes it returns.
template <class Group>
inline constexpr bool runs_to_its_end = true;
/// For calls that need memory of the session until they are over.
template <class Group>
constexpr void check_runs_to_its_end() noexcept {
  static_assert(
      runs_to_its_end<Group>,
      "toroid: a started call takes neither wire nor accumulate, nor an average of integers or half types by an "
      "algorithm that keeps partial results; use the function without start_, or toroid::direct");
}

/// Input and result must hold the same type of element.
template <class I, class O>
constexpr void check_same_elements() noexcept {
  if constexpr (buffer<I> && buffer<O>)
    static_assert(std::is_same_v<std::ranges::range_value_t<I>, std::ranges::range_value_t<O>>,
                  "toroid: input and result have different types of elements");
}

[[noreturn, gnu::noinline, gnu::cold]] inline void refuse_null(const char* which, std::size_t count,
                                                               const call_identity& identity) {
  refuse(identity.collective, identity.at,
         std::string(which) + " is a null pointer with " + std::to_string(count) + " elements");
}

/// A buffer must exist if it has elements, and be addressable; where it is wrong the error names it.
template <class T>
void check_span(std::span<T> buffer, const char* which, const call_identity& identity) {
  bytes_of(buffer.size(), sizeof(T), name_of(identity.collective));
  if (buffer.size() != 0 && buffer.data() == nullptr) [[unlikely]]
    refuse_null(which, buffer.size(), identity);
}

[[noreturn, gnu::noinline, gnu::cold]] inline void refuse_overlap(const call_identity& identity) {
  refuse(identity.collective, identity.at, "input and result overlap in part; they may be the same memory or apart");
}

/// Two buffers may be the same or apart, but not overlap in part.
///
/// @param offset  bytes from the result to the input where the call is in place
inline void check_overlap(const void* input, std::size_t input_bytes, const void* result, std::size_t result_bytes,
                          std::ptrdiff_t offset, const call_identity& identity) {
  if (input_bytes == 0 || result_bytes == 0) return;
  const std::uintptr_t in = reinterpret_cast<std::uintptr_t>(input);
  const std::uintptr_t out = reinterpret_cast<std::uintptr_t>(result);
  if (in + input_bytes <= out || out + result_bytes <= in) return;
  if (static_cast<std::ptrdiff_t>(in - out) == offset) [[likely]]
    return;
  refuse_overlap(identity);
}

/// Where input and result may not even be the same.
template <class T>
void check_distinct(std::span<const T> in, std::span<T> out, const call_identity& identity) {
  const std::uintptr_t a = reinterpret_cast<std::uintptr_t>(in.data());
  const std::uintptr_t b = reinterpret_cast<std::uintptr_t>(out.data());
  if (in.empty() || out.empty() || a + in.size_bytes() <= b || b + out.size_bytes() <= a) return;
  refuse(identity.collective, identity.at, "input and result overlap; they must be apart in this call");
}

inline void check_root(int root, int ranks, const call_identity& identity) {
  if (root < 0 || root >= ranks)
    refuse(identity.collective, identity.at,
           "root " + std::to_string(root) + " is not one of the " + std::to_string(ranks) + " ranks");
}

/// Elements of a vector that has `each` of them for every rank.
template <class T>
std::size_t times_ranks(std::size_t each, int ranks, const call_identity& identity) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(each, static_cast<std::size_t>(ranks), &all))
    refuse(identity.collective, identity.at,
           std::to_string(each) + " elements from each of " + std::to_string(ranks) + " ranks are more than can be");
  bytes_of(all, sizeof(T), name_of(identity.collective));
  return all;
}

/// The grid that a torus_2d sees in a group.
inline topology::grid grid_of(const torus_2d& how, int ranks, const call_identity& identity) {
  const topology::grid found = topology::fitting(how.rows, how.columns, ranks);
  if (found.rows == 0)
    refuse(identity.collective, identity.at,
           "torus_2d of " + std::to_string(how.rows) + " rows and " + std::to_string(how.columns) +
               " columns does not fit " + std::to_string(ranks) + " ranks");
  return found;
}

/// Completes a call, whose identity says everything but the types, with what depends on them.
template <class T, class Operation>
void erase(collective_call& call, instruction_set instructions, const Operation* operation) {
  call.identity.element = element_code<T>();
  call.identity.element_size = sizeof(T);
  if constexpr (!std::is_void_v<Operation>) {
    call.identity.operation = operator_code<Operation>();
    call.reduce = reduction_for<T, Operation>(instructions);
    call.functor = operation;
  }
  call.copy = copy_for(instructions);
  call.first_flaw = flaw_finder_for<T>();
}

}  // namespace toroid::detail
