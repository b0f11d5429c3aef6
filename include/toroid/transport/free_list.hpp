// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

namespace toroid::transport {

/// Which parts of a range of bytes are free; first fit, neighbours merged. Knows offsets only, not memory.
class free_list {
 public:
  explicit free_list(std::size_t bytes = 0) {
    if (bytes > 0) m_free.push_back({0, bytes});
  }

  /// @param bytes  at least 1
  /// @param alignment  a power of two
  /// @return offset of a run of `bytes`, or nothing if no run is long enough
  std::optional<std::size_t> take(std::size_t bytes, std::size_t alignment) {
    for (std::size_t i = 0; i < m_free.size(); ++i) {
      const run r = m_free[i];
      const std::size_t begin = (r.begin + alignment - 1) & ~(alignment - 1);
      if (begin > r.end || r.end - begin < bytes) continue;
      const run behind{begin + bytes, r.end};
      const auto here = m_free.begin() + static_cast<std::ptrdiff_t>(i);
      if (r.begin < begin) {
        here->end = begin;
        if (behind.begin < behind.end) m_free.insert(here + 1, behind);
      } else if (behind.begin < behind.end) {
        *here = behind;
      } else {
        m_free.erase(here);
      }
      return begin;
    }
    return std::nullopt;
  }

  /// Gives back what take() gave out.
  void give_back(std::size_t begin, std::size_t bytes) {
    auto after = m_free.begin();
    while (after != m_free.end() && after->begin < begin) ++after;
    const auto here = m_free.insert(after, run{begin, begin + bytes});
    if (here + 1 != m_free.end() && here->end == (here + 1)->begin) {
      here->end = (here + 1)->end;
      m_free.erase(here + 1);
    }
    if (here != m_free.begin() && (here - 1)->end == here->begin) {
      (here - 1)->end = here->end;
      m_free.erase(here);
    }
  }

  std::size_t runs() const noexcept { return m_free.size(); }

 private:
  struct run {
    std::size_t begin, end;
  };
  std::vector<run> m_free;
};

}  // namespace toroid::transport
