// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// What programs under the checker can ask of it.
namespace model {

/// Says that a program does not look at a result, so that executions need not be told apart by it.
struct unused_t {};
inline constexpr unused_t unused;

/// What a program does next.
enum class action : std::uint8_t {
  load,
  store,
  exchange,
  add,
  bit_or,
  compare_exchange,
  await,  ///< loads until one of some conditions holds
  fence,
  membarrier,
  futex_wait,
  futex_wake,
  choose,
  read,  ///< of a plain variable, as all below: these need no interleaving
  write,
  forget,
  fault,
  finish,
};

/// What a program wants to know of a loaded value: the less it asks, the fewer states there are.
enum class question : std::uint8_t { value, bits, at_least, equal };

struct condition {
  std::size_t atomic = 0;
  question asked = question::value;
  std::uint64_t operand = 0;
  std::memory_order order = std::memory_order_seq_cst;

  std::uint64_t answer(std::uint64_t value) const noexcept {
    switch (asked) {
      case question::value:
        return value;
      case question::bits:
        return value & operand;
      case question::at_least:
        return value >= operand;
      default:
        return value == operand;
    }
  }
};

struct operation {
  action what = action::finish;
  std::size_t place = 0;  ///< atomic or plain variable
  std::uint64_t operand = 0;
  std::uint64_t expected = 0;
  std::memory_order order = std::memory_order_seq_cst;
  std::vector<condition> conditions{};
  bool may_give_up = false;  ///< an await that may also end without its condition
  bool unused = false;       ///< the program does not look at the result
  std::string text{};
  const char* inside = "";  ///< function that the program is in
};

}  // namespace model
