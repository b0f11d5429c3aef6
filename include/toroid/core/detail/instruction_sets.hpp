// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/reduction.hpp>

namespace toroid::detail {

#if defined(__x86_64__)

/// Whether half-precision conversions are there. Asked of the processor itself, since compilers differ in knowing the
/// name.
inline bool has_f16c() noexcept {
  unsigned leaf = 1, c = 0;
  __asm__("cpuid" : "+a"(leaf), "+c"(c) : : "ebx", "edx");
  return (c >> 29 & 1u) != 0;
}

/// The widest instruction set that both this processor and its operating system support.
inline instruction_set detected_instruction_set() noexcept {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !has_f16c()) return instruction_set::baseline;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    return instruction_set::avx512;
  return instruction_set::avx2;
}

/// Whether a string instruction copies by whole lines ("enhanced rep movsb").
inline bool has_fast_strings() noexcept {
  unsigned leaf = 0, b = 0, c = 0;
  __asm__("cpuid" : "+a"(leaf), "=b"(b), "+c"(c) : : "edx");
  if (leaf < 7) return false;
  leaf = 7, c = 0;
  __asm__("cpuid" : "+a"(leaf), "=b"(b), "+c"(c) : : "edx");
  return (b >> 9 & 1u) != 0;
}

#else

inline instruction_set detected_instruction_set() noexcept { return instruction_set::baseline; }
inline bool has_fast_strings() noexcept { return false; }

#endif

}  // namespace toroid::detail
