// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/detail/element_access.hpp>
#include <toroid/core/half.hpp>
#include <toroid/core/operators.hpp>
#include <toroid/core/reduction.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

/// The reduction loops of vector_loops.inc, once for each instruction set, whatever flags this file is compiled with.
namespace toroid::detail {

inline namespace streams {

/// Makes what was streamed visible before what is stored afterwards.
inline void order_streams() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace streams

namespace baseline {

inline constexpr std::size_t width = 16;
typedef float floats __attribute__((vector_size(width)));
typedef std::int32_t integers __attribute__((vector_size(width)));
typedef std::uint16_t halves __attribute__((vector_size(width / 2)));

/// float_of_float16 in every lane: all cases are computed, and one of them chosen.
[[gnu::always_inline]] inline void widen_halves(floats& to, const halves& from) noexcept {
  const integers bits = __builtin_convertvector(from, integers);
  const integers magnitude = bits & 0x7fff;
  const integers normal = (magnitude << 13) + 0x38000000;
  const integers special = (magnitude << 13) | 0x7f800000 | ((magnitude > 0x7c00) & 0x400000);
  const integers tiny = __builtin_bit_cast(integers, __builtin_convertvector(magnitude, floats) * 0x1p-24f);
  const integers finite = magnitude < 0x400 ? tiny : normal;
  const integers value = magnitude < 0x7c00 ? finite : special;
  to = __builtin_bit_cast(floats, value | ((bits & 0x8000) << 16));
}
/// float16_of_float in every lane.
[[gnu::always_inline]] inline void narrow_halves(halves& to, const floats& from) noexcept {
  const integers bits = __builtin_bit_cast(integers, from);
  const integers magnitude = bits & 0x7fffffff;
  const integers rebiased = magnitude - 0x38000000;
  const integers normal = (rebiased + ((rebiased >> 13) & 1) + 0xfff) >> 13;
  // The last bit of 0.5 is the least subnormal: an addition rounds there.
  const integers tiny = __builtin_bit_cast(integers, __builtin_bit_cast(floats, magnitude) + 0.5f) - 0x3f000000;
  const integers infinity = (magnitude & 0) + 0x7c00;
  const integers nan = (magnitude >> 13 & 0x3ff) | 0x7e00;
  const integers finite = magnitude < 0x38800000 ? tiny : normal;
  const integers number = magnitude < 0x47800000 ? finite : infinity;
  const integers value = magnitude > 0x7f800000 ? nan : number;
  to = __builtin_convertvector(value | (bits >> 16 & 0x8000), halves);
}
[[gnu::always_inline]] inline void stream_register(std::byte* to, const floats& value) noexcept {
#if defined(__clang__)
  __builtin_nontemporal_store(value, reinterpret_cast<floats*>(to));
#elif defined(__x86_64__)
  __builtin_ia32_movntps(reinterpret_cast<float*>(to), value);
#else
  std::memcpy(to, &value, sizeof value);
#endif
}
[[gnu::always_inline]] inline void stream_halves(std::byte* to, const halves& value) noexcept {
  std::memcpy(to, &value, sizeof value);  // converting by hand is slower than the caches
}
template <class T, class Op>
void reduce_narrower(const reduce_arguments&) noexcept {}  // never called: there is none

#include <toroid/core/detail/vector_loops.inc>

}  // namespace baseline

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,f16c")
#endif
namespace avx2 {

inline constexpr std::size_t width = 32;
typedef float floats __attribute__((vector_size(width)));
typedef short halves __attribute__((vector_size(width / 2)));

[[gnu::always_inline]] inline void stream_register(std::byte* to, const floats& value) noexcept {
#if defined(__clang__)
  __builtin_nontemporal_store(value, reinterpret_cast<floats*>(to));
#else
  __builtin_ia32_movntps256(reinterpret_cast<float*>(to), value);
#endif
}
[[gnu::always_inline]] inline void stream_halves(std::byte* to, const halves& value) noexcept {
#if defined(__clang__)
  __builtin_nontemporal_store(value, reinterpret_cast<halves*>(to));
#else
  __builtin_ia32_movntps(reinterpret_cast<float*>(to), __builtin_bit_cast(baseline::floats, value));
#endif
}
[[gnu::always_inline]] inline void widen_halves(floats& to, const halves& from) noexcept {
#if defined(__clang__)
  typedef __fp16 numbers __attribute__((vector_size(width / 2)));
  to = __builtin_convertvector(__builtin_bit_cast(numbers, from), floats);
#else
  to = __builtin_ia32_vcvtph2ps256(from);
#endif
}
[[gnu::always_inline]] inline void narrow_halves(halves& to, const floats& from) noexcept {
  to = __builtin_ia32_vcvtps2ph256(from, 0);  // 0: to nearest, ties to even
}
template <class T, class Op>
void reduce_narrower(const reduce_arguments& a) {
  baseline::reduce<T, Op>(a);
}

#include <toroid/core/detail/vector_loops.inc>

}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq")
#endif
namespace avx512 {

inline constexpr std::size_t width = 64;
typedef float floats __attribute__((vector_size(width)));
typedef short halves __attribute__((vector_size(width / 2)));

[[gnu::always_inline]] inline void stream_register(std::byte* to, const floats& value) noexcept {
#if defined(__clang__)
  __builtin_nontemporal_store(value, reinterpret_cast<floats*>(to));
#else
  __builtin_ia32_movntps512(reinterpret_cast<float*>(to), value);
#endif
}
[[gnu::always_inline]] inline void stream_halves(std::byte* to, const halves& value) noexcept {
#if defined(__clang__)
  __builtin_nontemporal_store(value, reinterpret_cast<halves*>(to));
#else
  __builtin_ia32_movntps256(reinterpret_cast<float*>(to), __builtin_bit_cast(avx2::floats, value));
#endif
}
[[gnu::always_inline]] inline void widen_halves(floats& to, const halves& from) noexcept {
#if defined(__clang__)
  typedef __fp16 numbers __attribute__((vector_size(width / 2)));
  to = __builtin_convertvector(__builtin_bit_cast(numbers, from), floats);
#else
  to = __builtin_ia32_vcvtph2ps512_mask(from, floats{}, -1, 4);
#endif
}
[[gnu::always_inline]] inline void narrow_halves(halves& to, const floats& from) noexcept {
  to = __builtin_ia32_vcvtps2ph512_mask(from, 0, halves{},
                                        static_cast<unsigned short>(-1));  // 0: to nearest, ties to even
}
template <class T, class Op>
void reduce_narrower(const reduce_arguments& a) {
  avx2::reduce<T, Op>(a);
}

#include <toroid/core/detail/vector_loops.inc>

}  // namespace avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif  // x86-64

}  // namespace toroid::detail
