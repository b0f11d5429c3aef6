// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstring>

namespace toroid::detail {

/// Copies from this many bytes on are worth a string instruction, which takes some tens of cycles to begin.
inline constexpr std::size_t least_string_bytes = 4096;

/// Whether somebody watches every access; a string instruction would escape them.
inline constexpr bool accesses_are_watched =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    true;
#else
    false;
#endif
#else
    false;
#endif

/// Copies into memory whose lines stand in another core's cache, which has read them before.
///
/// An ordinary store to such a line first fetches it, a few lines at a time; a string instruction, which is known to
/// overwrite whole lines, only takes them over: two to five times faster from 8 KiB on, the more the farther the cores
/// are apart.
///
/// @param fast  as has_fast_strings() says
/// @pre  the ranges do not overlap
inline void copy_by_string(std::byte* to, const std::byte* from, std::size_t bytes,
                           [[maybe_unused]] bool fast) noexcept {
#if defined(__x86_64__)
  if constexpr (!accesses_are_watched) {
    if (fast) {
      __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
      return;
    }
  }
#endif
  std::memcpy(to, from, bytes);
}

}  // namespace toroid::detail
