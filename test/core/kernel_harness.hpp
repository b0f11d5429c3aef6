// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "support/catch.hpp"

#include <toroid/core/detail/kernels.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

/// What the tests of the reduction loops share: memory with guards around it, and a plain loop to compare with.
namespace kernel_test {

using toroid::bfloat16;
using toroid::float16;
using toroid::detail::instruction_set;
using toroid::detail::reduce_arguments;
using toroid::detail::reduce_function;

inline std::vector<instruction_set> instruction_sets() {
  std::vector<instruction_set> all;
  for (int i = 0; i <= static_cast<int>(toroid::detail::detected_instruction_set()); ++i)
    all.push_back(static_cast<instruction_set>(i));
  return all;
}

/// Bytes at a chosen distance from a 64-byte boundary, with 64 bytes of 0xA5 on both sides.
class guarded_bytes {
 public:
  static constexpr std::size_t guard = 64;
  static constexpr std::byte mark{0xA5};

  explicit guarded_bytes(std::size_t most) : m_memory(most + 4 * guard) {}

  std::byte* place(std::size_t bytes, std::size_t offset) {
    const auto address = reinterpret_cast<std::uintptr_t>(m_memory.data());
    m_begin = m_memory.data() + guard + (64 - address % 64) % 64 + offset;
    m_bytes = bytes;
    std::memset(m_begin - guard, static_cast<int>(mark), guard);
    std::memset(m_begin + bytes, static_cast<int>(mark), guard);
    return m_begin;
  }
  bool intact() const {
    for (std::size_t i = 0; i < guard; ++i)
      if (*(m_begin - guard + i) != mark || m_begin[m_bytes + i] != mark) return false;
    return true;
  }

 private:
  std::vector<std::byte> m_memory;
  std::byte* m_begin = nullptr;
  std::size_t m_bytes = 0;
};

/// Memory between two pages that cannot be touched.
class fenced_bytes {
 public:
  explicit fenced_bytes(std::size_t most) : m_page(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    m_room = (most + m_page - 1) / m_page * m_page;
    void* const all = mmap(nullptr, m_room + 2 * m_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(all != MAP_FAILED);
    m_memory = static_cast<std::byte*>(all);
    REQUIRE(mprotect(m_memory + m_page, m_room, PROT_READ | PROT_WRITE) == 0);
  }
  ~fenced_bytes() { munmap(m_memory, m_room + 2 * m_page); }
  fenced_bytes(const fenced_bytes&) = delete;
  fenced_bytes& operator=(const fenced_bytes&) = delete;

  std::byte* first() const { return m_memory + m_page; }
  std::byte* last(std::size_t bytes) const { return m_memory + m_page + m_room - bytes; }

 private:
  std::size_t m_page, m_room = 0;
  std::byte* m_memory = nullptr;
};

/// Counts on both sides of every edge: of a short run, a register, four registers, a line, a tile.
template <class T>
std::vector<std::size_t> counts_around_edges() {
  std::vector<bool> chosen(1200 / sizeof(T) + 140);
  const auto around = [&](std::size_t edge) {
    for (std::size_t n = edge < 1 ? 0 : edge - 1; n <= edge + 1 && n < chosen.size(); ++n) chosen[n] = true;
  };
  for (std::size_t n = 0; n < 10; ++n) chosen[n] = true;
  for (const std::size_t bytes : {8u, 16u, 32u, 48u, 64u, 96u, 128u, 192u, 256u, 320u, 512u, 576u, 1024u, 1100u})
    around(bytes / sizeof(T));
  for (const std::size_t elements : {31u, 32u, 64u, 96u, 128u}) around(elements);
  std::vector<std::size_t> counts;
  for (std::size_t n = 0; n < chosen.size(); ++n)
    if (chosen[n]) counts.push_back(n);
  return counts;
}

template <class T>
T any_value(std::mt19937& random) {
  const auto word = static_cast<std::uint32_t>(random());
  if constexpr (std::is_same_v<T, bool>) {
    return (word & 1) != 0;
  } else if constexpr (std::is_integral_v<T>) {
    switch (word % 8) {
      case 0:
        return std::numeric_limits<T>::max();
      case 1:
        return std::numeric_limits<T>::min();
      case 2:
        return 0;
      case 3:
        return static_cast<T>(1);
      default:
        return static_cast<T>(static_cast<std::uint64_t>(random()) << 32 | random());
    }
  } else {
    using limits = std::numeric_limits<float>;
    const float sign = (word & 0x100) != 0 ? -1.0f : 1.0f;
    switch (word % 16) {
      case 0:
        return static_cast<T>(sign * 0.0f);
      case 1:
        return static_cast<T>(sign * limits::infinity());
      case 2:
        return static_cast<T>(limits::quiet_NaN());
      case 3:
        return static_cast<T>(sign * 0x1p-24f);
      case 4:
        return static_cast<T>(sign * 65504.0f);
      case 5:
        return static_cast<T>(sign * 0x1p-14f);
      default:
        return static_cast<T>(sign * static_cast<float>(random() % 4096) / 64.0f);
    }
  }
}

/// The definitions of the operators, once more, in wider types.
template <class T, class Op>
T expected_value(const std::vector<T>& operands, bool finish, int divisor) {
  using namespace toroid;
  if (operands.size() == 1 && !(std::is_same_v<Op, average> && finish)) return operands[0];
  if constexpr (half<T>) {
    std::vector<float> wide(operands.begin(), operands.end());
    return T(expected_value<float, Op>(wide, finish, divisor));
  } else {
    T value = operands[0];
    [[maybe_unused]] toroid::detail::int128 total = 0;
    if constexpr (std::is_integral_v<T>)
      for (const T x : operands) total += x;
    for (std::size_t i = 1; i < operands.size(); ++i) {
      const T x = operands[i];
      if constexpr (std::is_same_v<T, bool>) {
        if constexpr (std::is_same_v<Op, sum> || std::is_same_v<Op, maximum> || std::is_same_v<Op, bit_or> ||
                      std::is_same_v<Op, logical_or>)
          value = value || x;
        else if constexpr (std::is_same_v<Op, bit_xor>)
          value = value != x;
        else
          value = value && x;
      } else if constexpr (std::is_same_v<Op, sum> || std::is_same_v<Op, average>) {
        if constexpr (std::is_integral_v<T>)
          value = static_cast<T>(static_cast<toroid::detail::int128>(value) + x);
        else
          value = value + x;
      } else if constexpr (std::is_same_v<Op, product>) {
        if constexpr (std::is_integral_v<T>)  // modulo 2^128 it is the same in the lower bits
          value = static_cast<T>(static_cast<toroid::detail::uint128>(value) * static_cast<toroid::detail::uint128>(x));
        else
          value = value * x;
      } else if constexpr (std::is_same_v<Op, minimum> || std::is_same_v<Op, maximum>) {
        if constexpr (std::is_floating_point_v<T>) {
          if (std::isnan(value)) continue;
          if (std::isnan(x)) {
            value = x;
            continue;
          }
        }
        if (std::is_same_v<Op, minimum> ? !(value < x) : !(value > x)) value = x;
      } else if constexpr (std::is_same_v<Op, bit_and>) {
        value = static_cast<T>(value & x);
      } else if constexpr (std::is_same_v<Op, bit_or>) {
        value = static_cast<T>(value | x);
      } else if constexpr (std::is_same_v<Op, bit_xor>) {
        value = static_cast<T>(value ^ x);
      } else if constexpr (std::is_same_v<Op, logical_and>) {
        value = static_cast<T>(value != T{} && x != T{} ? 1 : 0);
      } else {
        value = static_cast<T>(value != T{} || x != T{} ? 1 : 0);
      }
    }
    if constexpr (std::is_same_v<Op, average>)
      if (finish)
        value =
            std::is_integral_v<T> ? static_cast<T>(total / divisor) : static_cast<T>(value / static_cast<T>(divisor));
    return value;
  }
}

/// Bit for bit, but for the many patterns of NaN.
template <class T>
bool same(const T& a, const T& b) {
  if constexpr (toroid::half<T>) {
    return a.bits == b.bits || (std::isnan(static_cast<float>(a)) && std::isnan(static_cast<float>(b)));
  } else {
    if constexpr (std::is_floating_point_v<T>)
      return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
    else
      return std::memcmp(&a, &b, sizeof(T)) == 0;
  }
}

/// One call with random operands, compared element by element, with the guards, and with the operands that must not
/// change.
template <class T, class Op>
class kernel_checker {
 public:
  explicit kernel_checker(std::size_t most_elements) {
    for (int i = 0; i < 2 * most; ++i) m_room.emplace_back(most_elements * sizeof(T) + 64);
  }

  /// @return what is wrong, or nothing
  std::string check(reduce_function f, int sources, int destinations, std::size_t count) {
    // Bits of one word choose the variant, so that all of them meet all counts.
    const auto variant = static_cast<std::uint32_t>(m_random());
    const bool in_place = (variant & 1) != 0, non_temporal = (variant & 2) != 0, finish = (variant & 4) != 0;
    const bool aligned = (variant & 24) == 0, same_offsets = (variant & 32) != 0;
    const std::size_t bytes = count * sizeof(T);
    const auto offset = [&](int i) -> std::size_t {
      if (aligned) return 0;
      const std::size_t k = same_offsets ? variant >> 8 : (variant >> 8) + 7u * static_cast<unsigned>(i);
      return (variant & 64) != 0 ? k % 64 : k % 16 * sizeof(T) % 64;  // an odd address, or whole elements
    };
    std::array<std::vector<T>, most> operands;
    std::array<const std::byte*, most> from{};
    std::array<std::byte*, most> to{};
    for (int s = 0; s < sources; ++s) {
      auto& values = operands[index(s)];
      for (std::size_t i = 0; i < count; ++i) values.push_back(any_value<T>(m_random));
      std::byte* const p = m_room[index(s)].place(bytes, offset(s));
      for (std::size_t i = 0; i < count; ++i) put(p + i * sizeof(T), values[i]);
      from[index(s)] = p;
    }
    for (int d = 0; d < destinations; ++d) {
      if (in_place && d < sources)
        to[index(d)] = const_cast<std::byte*>(from[index(d)]);
      else
        to[index(d)] = m_room[index(most + d)].place(bytes, offset(most + d));
    }
    reduce_arguments a;
    a.sources = from.data();
    a.source_count = sources;
    a.destinations = to.data();
    a.destination_count = destinations;
    a.count = count;
    a.finish = finish;
    a.divisor = sources + static_cast<int>(variant >> 7 & 1);  // some contributions may have been added before
    a.non_temporal = non_temporal;
    f(a);

    const auto describe = [&](const char* what, std::size_t i) {
      return std::string(what) + " at " + std::to_string(i) + " of " + std::to_string(count) + ", " +
             std::to_string(sources) + " sources, " + std::to_string(destinations) + " destinations" +
             (in_place ? ", in place" : "") + (non_temporal ? ", streamed" : "") + (finish ? ", finished" : "");
    };
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<T> column;
      for (int s = 0; s < sources; ++s) column.push_back(operands[index(s)][i]);
      const T expected = expected_value<T, Op>(column, finish, a.divisor);
      for (int d = 0; d < destinations; ++d)
        if (!same(get(to[index(d)] + i * sizeof(T)), expected)) return describe("wrong result", i);
      for (int s = 0; s < sources; ++s)
        if (!(in_place && s < destinations) && !same<T>(get(from[index(s)] + i * sizeof(T)), column[index(s)]))
          return describe("changed operand", i);
    }
    for (int i = 0; i < sources; ++i)
      if (!m_room[index(i)].intact()) return describe("guard of operand", index(i));
    for (int i = 0; i < destinations; ++i)
      if (!(in_place && i < sources) && !m_room[index(most + i)].intact()) return describe("guard of result", index(i));
    return {};
  }

 private:
  static constexpr int most = 8;

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  static void put(std::byte* to, const T& value) { std::memcpy(to, &value, sizeof value); }
  static T get(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }

  std::vector<guarded_bytes> m_room;
  std::mt19937 m_random{20};
};

template <class T, class Op>
void check_kernel() {
  const auto counts = counts_around_edges<T>();
  kernel_checker<T, Op> checker(counts.back());
  for (const instruction_set set : instruction_sets()) {
    const reduce_function f = toroid::detail::reduction_for<T, Op>(set);
    std::string fault;
    for (const int sources : {1, 2, 3, 4, 5, 8})
      for (const int destinations : {1, 2, 4})
        for (const std::size_t count : counts)
          for (int variant = 0; variant < 2 && fault.empty(); ++variant)
            fault = checker.check(f, sources, destinations, count);
    INFO(toroid::detail::operator_name(toroid::detail::operator_code<Op>())
         << " of " << toroid::detail::element_name(toroid::detail::element_code<T>()) << ", instruction set "
         << static_cast<int>(set));
    CHECK(fault == "");
  }
}

template <class T, class... Ops>
void check_kernels() {
  (check_kernel<T, Ops>(), ...);
}

/// The result of reducing one vector per rank.
template <class T, class Op>
std::vector<T> reduced(instruction_set set, const std::vector<std::vector<T>>& ranks, const void* functor = nullptr) {
  const std::size_t count = ranks[0].size();
  std::vector<std::vector<std::byte>> operands;
  std::vector<const std::byte*> from;
  for (const auto& values : ranks) {
    auto& bytes = operands.emplace_back(count * sizeof(T) + 1);
    for (std::size_t i = 0; i < count; ++i) {
      const T value = values[i];
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof value);
    }
    from.push_back(bytes.data());
  }
  std::vector<std::byte> result(count * sizeof(T) + 1);
  std::byte* const to = result.data();
  reduce_arguments a;
  a.sources = from.data();
  a.source_count = static_cast<int>(from.size());
  a.destinations = &to;
  a.destination_count = 1;
  a.count = count;
  a.finish = true;
  a.divisor = a.source_count;
  a.functor = functor;
  toroid::detail::reduction_for<T, Op>(set)(a);
  std::vector<T> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(toroid::detail::load_element<T>(to + i * sizeof(T)));
  return values;
}

}  // namespace kernel_test
