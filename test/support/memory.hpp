// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "support/demand.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string>

namespace support {

/// Memory between two pages that can be neither read nor written.
class fenced_memory {
 public:
  /// @param bytes  at least this much lies between the fences, whole pages
  explicit fenced_memory(std::size_t bytes) : m_bytes((bytes + page() - 1) / page() * page()) {
    void* const all = ::mmap(nullptr, m_bytes + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    m_data = static_cast<std::byte*>(all) + page();
    if (::mprotect(m_data, m_bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  }
  fenced_memory(const fenced_memory&) = delete;
  fenced_memory& operator=(const fenced_memory&) = delete;
  ~fenced_memory() { ::munmap(m_data - page(), m_bytes + 2 * page()); }

  std::span<std::byte> bytes() const noexcept { return {m_data, m_bytes}; }
  static std::size_t page() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

 private:
  std::size_t m_bytes;
  std::byte* m_data = nullptr;
};

/// Bytes that must not change, on each side of a buffer.
inline constexpr std::size_t guard_bytes = 64;
inline constexpr std::byte guard_value{0xa5};
/// What a result buffer holds before the call.
inline constexpr std::byte junk_value{0x5a};

/// Where in its memory a buffer begins.
enum class placement {
  aligned,            ///< to 64 bytes
  at_an_odd_element,  ///< `shift` elements after an aligned address
  at_an_odd_byte,     ///< `shift` bytes after an aligned address
  at_the_front,       ///< its first byte is the first of the memory
  at_the_back,        ///< its last byte is the last of the memory
};
inline constexpr int placements = 5;

/// Room that a buffer of `bytes` needs, wherever it is placed with a shift below 16.
constexpr std::size_t room_for(std::size_t bytes, std::size_t element_size) noexcept {
  return bytes + 4 * guard_bytes + 16 * element_size;
}

/// A buffer inside larger memory, with guards around it as far as the memory goes.
class guarded_bytes {
 public:
  /// @param memory  64-byte aligned, at least room_for(bytes, element_size) long
  guarded_bytes(std::span<std::byte> memory, std::size_t bytes, std::size_t element_size, placement where,
                std::size_t shift)
      : m_memory(memory), m_bytes(bytes) {
    std::size_t begin = guard_bytes;
    if (where == placement::at_an_odd_element) begin += shift * element_size;
    if (where == placement::at_an_odd_byte) begin += shift;
    if (where == placement::at_the_front) begin = 0;
    if (where == placement::at_the_back) begin = memory.size() - bytes;
    m_begin = begin;
    for (std::span<std::byte> guard : {before(), after()})
      if (!guard.empty()) std::memset(guard.data(), static_cast<int>(guard_value), guard.size());
  }

  std::byte* data() const noexcept { return m_memory.data() + m_begin; }
  std::size_t size() const noexcept { return m_bytes; }
  void fill(std::byte value) const noexcept {
    if (m_bytes != 0) std::memset(data(), static_cast<int>(value), m_bytes);
  }

  /// Throws check_failed if a guard has changed.
  void check_guards(const std::string& what) const {
    const std::span<std::byte> guards[] = {before(), after()};
    for (int side = 0; side < 2; ++side)
      for (std::size_t i = 0; i < guards[side].size(); ++i)
        if (guards[side][i] != guard_value)
          throw check_failed(
              joined(what, ": byte ", i, " of the guard ", side == 0 ? "before" : "after", " has changed"));
  }

 private:
  std::span<std::byte> before() const noexcept {
    const std::size_t length = m_begin < guard_bytes ? m_begin : guard_bytes;
    return m_memory.subspan(m_begin - length, length);
  }
  std::span<std::byte> after() const noexcept {
    const std::size_t end = m_begin + m_bytes;
    const std::size_t rest = m_memory.size() - end;
    return m_memory.subspan(end, rest < guard_bytes ? rest : guard_bytes);
  }

  std::span<std::byte> m_memory;
  std::size_t m_bytes;
  std::size_t m_begin = 0;
};

}  // namespace support
