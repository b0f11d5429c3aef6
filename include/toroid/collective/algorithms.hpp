// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/call.hpp>
#include <toroid/core/buffer.hpp>

#include <cstddef>
#include <type_traits>

namespace toroid {

/// How strongly a result is fixed, from weak to strong.
enum class determinism {
  same_on_all_ranks,  ///< all ranks get the same bits
  run_to_run,         ///< and so does every run with the same ranks, algorithm and options
  any_chunking,       ///< and an element's result depends on nothing but that element's inputs
};

/// The library chooses: on ranks that can map each other's memory, `direct`.
///
/// Determinism: any_chunking.
struct automatic {
  static constexpr determinism level = determinism::any_chunking;
  static constexpr bool reorders = false;
};

/// Everyone with everyone, operands in rank order; short messages in one exchange, long ones in two.
///
/// Cost of an all-reduce of S bytes on p ranks: (p - 1) S bytes a rank in one exchange up to 4 KiB, else
/// 2 (p - 1)/p S bytes in two. Takes any operator. Determinism: any_chunking.
struct direct {
  std::size_t segment_bytes = 0;  ///< largest piece handed over at a time; zero: chosen
  static constexpr determinism level = determinism::any_chunking;
  static constexpr bool reorders = false;
};

/// Blocks travel round the ring of ranks, from each to the next.
///
/// Cost of an all-reduce of S bytes on p ranks: 2 (p - 1) steps, 2 (p - 1)/p S bytes a rank. Each block is reduced in
/// ring order, beginning after its owner, so the operator must commute. Determinism: run_to_run.
struct ring {
  std::size_t segment_bytes = 0;  ///< largest piece handed over at a time; zero: chosen. Does not change results.
  static constexpr determinism level = determinism::run_to_run;
  static constexpr bool reorders = true;
};

namespace detail {

template <class T>
inline constexpr algorithm_kind algorithm_of = algorithm_kind::automatic;
template <>
inline constexpr algorithm_kind algorithm_of<direct> = algorithm_kind::direct;
template <>
inline constexpr algorithm_kind algorithm_of<ring> = algorithm_kind::ring;

template <class T>
inline constexpr bool is_algorithm = std::is_same_v<T, automatic> || algorithm_of<T> != algorithm_kind::automatic;

template <class Algorithm>
constexpr std::size_t segment_bytes_of(const Algorithm& a) noexcept {
  if constexpr (requires { a.segment_bytes; })
    return a.segment_bytes;
  else
    return 0;
}

/// Stands for a policy that was not given.
struct not_given {};

}  // namespace detail

/// An algorithm: one of automatic, direct, ring.
template <class T>
concept algorithm = detail::is_algorithm<T>;

/// What may trail the buffers of a collective: an algorithm, or an operator (anything callable that is not a range).
template <class T>
concept policy = algorithm<T> || std::is_same_v<T, detail::not_given> || !any_range<T>;

}  // namespace toroid
