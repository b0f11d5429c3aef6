// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/prepare.hpp>
#include <toroid/collective/detail/staged_call.hpp>
#include <toroid/collective/detail/trailing_policies.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

/// The step from typed to erased calls where elements travel, or are combined, as other types than they are stored in.
namespace toroid::detail {

/// element_code, also of those integers that the standard library does not call integers.
template <class T>
constexpr std::uint32_t travelling_code() noexcept {
  if constexpr (is_wide_integer<T>)
    return plain_code(is_signed_number<T> ? element_kind::signed_integer : element_kind::unsigned_integer, sizeof(T));
  else
    return element_code<T>();
}

/// Completes a call, as erase() does, and its details but for the count.
template <class T, class Policies, class Operation>
void erase_travelling(collective_call& call, call_details& details, instruction_set instructions,
                      const Operation* operation) {
  using choice = travel<T, Policies>;
  using wire = typename choice::wire;
  using accumulator = typename choice::accumulator;
  details.storage = element_code<T>();
  details.storage_size = sizeof(T);
  details.accumulator = combines_as<wire, accumulator, Operation> ? 0 : travelling_code<accumulator>();
  call.identity.element = travelling_code<wire>();
  call.identity.element_size = sizeof(wire);
  call.identity.operation = operator_code<Operation>();
  call.reduce = reduction_through<wire, accumulator, Operation>(instructions);
  call.functor = operation;
  call.copy = copy_for(instructions);
}

/// Makes the details part of what all ranks agree on. To be called once they are complete.
inline void attach(collective_call& call, const call_details& details) noexcept {
  call.identity.details = &details;
  call.identity.operation |= details.signature() << 8;
}

template <class T, class Policies>
staging_plan staging_plan_for([[maybe_unused]] instruction_set instructions) noexcept {
  using wire = typename travel<T, Policies>::wire;
  staging_plan plan;
  plan.stored_size = sizeof(T);
  plan.staged_size = sizeof(wire);
  if constexpr (!std::is_same_v<T, wire>) {
    plan.in = conversion_for<T, wire>(instructions);
    plan.out = conversion_for<wire, T>(instructions);
  }
  return plan;
}

/// A reduction with one input and one result, of which everything but types and buffers is said in `call` already.
///
/// @param run  called as run(call): the collective, for elements as they travel
template <class Policies, class T, class Session, class Run>
void run_travelling(Session& session, collective_call& call, std::span<const T> in, std::span<T> out,
                    const Policies& given, Run run) {
  call_details details;
  erase_travelling<T, Policies>(call, details, session.instructions(), &given.combine);
  details.count = in.size();
  const inspected_run looked_at{reinterpret_cast<const std::byte*>(in.data()), in.size(), flaw_finder_for<T>()};
  details.inspected = &looked_at;
  details.inspected_runs = 1;
  attach(call, details);
  const auto* const input = reinterpret_cast<const std::byte*>(in.data());
  auto* const result = reinterpret_cast<std::byte*>(out.data());
  if constexpr (travel<T, Policies>::as_stored) {
    call.input = input;
    call.result = result;
    run(call);
  } else {
    const staging_plan plan = staging_plan_for<T, Policies>(session.instructions());
    const element_run whole{input, result, in.size()};
    if (call.result_is_block)
      reduce_scatter_staged(session, call, details, plan, input, result, in.size(), run);
    else
      all_reduce_staged(session, call, details, plan, {&whole, 1}, run);
  }
}

}  // namespace toroid::detail
