// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstddef>

namespace toroid::detail {

/// Memory of a session that it takes when it is first needed, and keeps: it ends with all that was allocated there.
class staging_memory {
 public:
  std::size_t bytes() const noexcept { return m_bytes; }

  /// At least so many bytes; what stood there is lost where they did not suffice.
  template <class Session>
  std::byte* grown_to(std::size_t bytes, Session& session) {
    if (bytes > m_bytes) [[unlikely]] {
      if (m_memory != nullptr) session.deallocate(m_memory, m_bytes);
      m_memory = nullptr;
      m_bytes = 0;
      const std::size_t rounded = std::bit_ceil(bytes < least ? least : bytes);
      m_memory = static_cast<std::byte*>(session.allocate(rounded));
      m_bytes = rounded;
    }
    return m_memory;
  }

 private:
  static constexpr std::size_t least = std::size_t{16} << 10;
  std::byte* m_memory = nullptr;
  std::size_t m_bytes = 0;
};

}  // namespace toroid::detail
