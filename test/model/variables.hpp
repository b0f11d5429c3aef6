// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/checker.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace model {

/// Stands in for std::atomic<std::uint64_t> in a program.
class atomic {
 public:
  /// A load that takes place when it is looked at, so that the program learns no more than it asks.
  class loading {
   public:
    loading(machine& m, condition c) noexcept : m_machine(m), m_condition(c) {}
    operator std::uint64_t() const { return ask(question::value, 0); }
    template <std::integral I>
    bool operator>=(I v) const {
      return ask(question::at_least, static_cast<std::uint64_t>(v)) != 0;
    }
    template <std::integral I>
    bool operator<(I v) const {
      return !(*this >= v);
    }
    template <std::integral I>
    bool operator==(I v) const {
      return ask(question::equal, static_cast<std::uint64_t>(v)) != 0;
    }
    template <std::integral I>
    std::uint64_t operator&(I v) const {
      return ask(question::bits, static_cast<std::uint64_t>(v));
    }

   private:
    std::uint64_t ask(question q, std::uint64_t operand) const {
      condition c = m_condition;
      c.asked = q;
      c.operand = operand;
      return m_machine.perform({.what = action::load, .place = c.atomic, .operand = operand, .conditions = {c}});
    }
    machine& m_machine;
    condition m_condition;
  };

  atomic(machine& m, std::string name, std::uint64_t value = 0)
      : m_machine(&m), m_index(m.add_atomic(std::move(name), value)) {}

  loading load(std::memory_order order) const noexcept { return {*m_machine, {.atomic = m_index, .order = order}}; }
  void store(std::uint64_t value, std::memory_order order) { perform(action::store, value, order); }
  std::uint64_t exchange(std::uint64_t value, std::memory_order order) {
    return perform(action::exchange, value, order);
  }
  std::uint64_t fetch_add(std::uint64_t value, std::memory_order order) { return perform(action::add, value, order); }
  std::uint64_t fetch_sub(std::uint64_t value, std::memory_order order) {
    return perform(action::add, 0 - value, order);
  }
  std::uint64_t fetch_or(std::uint64_t value, std::memory_order order) { return perform(action::bit_or, value, order); }
  // Where the program does not look at what was there before.
  void exchange(std::uint64_t value, std::memory_order order, unused_t) {
    perform(action::exchange, value, order, true);
  }
  void fetch_add(std::uint64_t value, std::memory_order order, unused_t) { perform(action::add, value, order, true); }
  void fetch_sub(std::uint64_t value, std::memory_order order, unused_t) {
    perform(action::add, 0 - value, order, true);
  }
  void fetch_or(std::uint64_t value, std::memory_order order, unused_t) { perform(action::bit_or, value, order, true); }
  bool compare_exchange_strong(std::uint64_t& expected, std::uint64_t value, std::memory_order order) {
    const std::uint64_t found = m_machine->perform(
        {.what = action::compare_exchange, .place = m_index, .operand = value, .expected = expected, .order = order});
    const bool done = found == expected;
    expected = found;
    return done;
  }

  condition at_least(std::uint64_t value, std::memory_order order) const noexcept {
    return {m_index, question::at_least, value, order};
  }
  condition has(std::uint64_t bits, std::memory_order order) const noexcept {
    return {m_index, question::bits, bits, order};
  }
  /// Spins until the value is at least `value`.
  void await(std::uint64_t value, std::memory_order order) const { m_machine->await_any({at_least(value, order)}); }

  /// Sleeps if the word is `expected`, until somebody wakes.
  /// @return whether it slept
  bool futex_wait(std::uint64_t expected) const {
    return m_machine->perform({.what = action::futex_wait, .place = m_index, .expected = expected}) == 0;
  }
  void futex_wake() const { m_machine->perform({.what = action::futex_wake, .place = m_index}); }

 private:
  std::uint64_t perform(action what, std::uint64_t operand, std::memory_order order, bool is_unused = false) {
    return m_machine->perform(
        {.what = what, .place = m_index, .operand = operand, .order = order, .unused = is_unused});
  }
  machine* m_machine;
  std::size_t m_index;
};

/// Stands in for a variable that is not atomic; an access that is not ordered is a fault.
class plain {
 public:
  plain(machine& m, std::string name, std::uint64_t value = 0)
      : m_machine(&m), m_index(m.add_plain(std::move(name), value)) {}
  std::uint64_t read() const { return m_machine->perform({.what = action::read, .place = m_index}); }
  void write(std::uint64_t value) { m_machine->perform({.what = action::write, .place = m_index, .operand = value}); }

 private:
  machine* m_machine;
  std::size_t m_index;
};

}  // namespace model
