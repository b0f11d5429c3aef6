// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/call.hpp>
#include <toroid/core/buffer.hpp>
#include <toroid/schedule/determinism.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace toroid {

/// How strongly a result is fixed: same_on_all_ranks, run_to_run, any_chunking.
using schedule::determinism;

/// The library chooses: on ranks that can map each other's memory, `direct`.
///
/// Determinism: any_chunking.
struct automatic {
  static constexpr determinism level = determinism::any_chunking;
  static constexpr bool reorders = false;
  static constexpr bool keeps_partial_results = false;
};

/// Everyone with everyone, operands in rank order; short messages in one exchange, long ones in two.
///
/// Cost of an all-reduce of S bytes on p ranks: (p - 1) S bytes a rank in one exchange up to 4 KiB, else
/// 2 (p - 1)/p S bytes in two. Takes any operator. Determinism: any_chunking.
struct direct {
  std::size_t segment_bytes = 0;  ///< largest piece handed over at a time; zero: chosen
  static constexpr determinism level = determinism::any_chunking;
  static constexpr bool reorders = false;
  static constexpr bool keeps_partial_results = false;
};

/// Blocks travel round the ring of ranks, from each to the next.
///
/// Cost of an all-reduce of S bytes on p ranks: 2 (p - 1) steps, 2 (p - 1)/p S bytes a rank. Each block is reduced in
/// ring order, beginning after its owner, so the operator must commute. Determinism: run_to_run.
struct ring {
  std::size_t segment_bytes = 0;  ///< largest piece handed over at a time; zero: chosen. Does not change results.
  static constexpr determinism level = determinism::run_to_run;
  static constexpr bool reorders = true;
  static constexpr bool keeps_partial_results = true;
};

/// Each round halves what is still to be combined, or doubles what has been gathered, with the rank a power of two
/// further on; for every number of ranks.
///
/// Cost of an all-reduce of S bytes on p ranks: 2 ceil(log2 p) rounds, 2 (p - 1)/p S bytes a rank. Operands meet in an
/// order of their own, so the operator must commute. Also for reduce_scatter and all_gather: half of that each.
/// Determinism: run_to_run.
///
/// Source: J. L. Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", arXiv 2410.14234.
///
///     toroid::all_reduce(comm, values, toroid::halving_doubling{});
struct halving_doubling {
  std::size_t segment_bytes = 0;  ///< largest piece handed over at a time; zero: chosen. Does not change results.
  static constexpr determinism level = determinism::run_to_run;
  static constexpr bool reorders = true;
  static constexpr bool keeps_partial_results = true;
};

/// Up a binary tree and down again, piece after piece. An operator that commutes has two trees, each with half of the
/// vector, so that all ranks have as much to do; any other has one, in which operands combine in rank order.
///
/// Cost of an all-reduce of S bytes on p ranks: 2 floor(log2 p) rounds a piece; up to 2 S bytes a rank in two trees, up
/// to 3 S in one. Takes any operator. Also for broadcast: floor(log2 (p - 1)) + 1 rounds a piece, S bytes a rank.
/// Determinism: run_to_run; in rank order even any_chunking.
///
/// Source: P. Sanders, J. Speck, J. L. Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
/// Parallel Computing 35 (2009).
///
///     toroid::all_reduce(comm, values, [](auto a, auto b) { return a * b; }, toroid::tree{});
struct tree {
  std::size_t segment_bytes = 0;  ///< largest piece handed over at a time; zero: chosen. Does not change results.
  static constexpr determinism level = determinism::run_to_run;
  static constexpr bool reorders = false;
  static constexpr bool keeps_partial_results = true;
};

/// Rings along the rows and columns of a grid of ranks, in both directions and on both axes at once.
///
/// Rank r stands in row r / columns and column r % columns. Where neither rows nor columns are given, they are the
/// divisors of the number of ranks nearest to its root, rows not more than columns; where one is, the other follows.
///
/// Cost of an all-reduce of S bytes on X columns and Y rows, p = X Y: 2 (X + Y - 2) rounds a piece, 2 (p - 1)/p S bytes
/// a rank, as much over each of its four links. Operands meet in an order of their own, so the operator must commute.
/// Determinism: run_to_run, for a given grid.
///
/// Source: C. Ying, S. Kumar, D. Chen, T. Wang, Y. Cheng, "Image classification at supercomputer scale", arXiv
/// 1811.06992.
///
///     toroid::all_reduce(comm, values, toroid::torus_2d{.rows = 2, .columns = 3});  // comm.size() == 6
struct torus_2d {
  int rows = 0;                   ///< zero: chosen
  int columns = 0;                ///< zero: chosen; rows * columns is the number of ranks, or the call throws
  std::size_t segment_bytes = 0;  ///< largest piece handed over at a time; zero: chosen. Does not change results.
  static constexpr determinism level = determinism::run_to_run;
  static constexpr bool reorders = true;
  static constexpr bool keeps_partial_results = true;
};

/// An algorithm of the program's own: it names the schedules that carry it out, by collective, and states what those of
/// the library state. docs/extending.md shows one.
///
/// Ranks that name different ones in the same call are not told so.
template <class T>
concept own_algorithm = requires {
  typename T::schedules;
  requires std::same_as<decltype(T::level), const determinism>;
  requires std::same_as<decltype(T::reorders), const bool>;               ///< operands do not meet in rank order
  requires std::same_as<decltype(T::keeps_partial_results), const bool>;  ///< one rank hands sums on to another
};

namespace detail {

template <class T>
inline constexpr algorithm_kind algorithm_of = own_algorithm<T> ? algorithm_kind::own : algorithm_kind::automatic;
template <>
inline constexpr algorithm_kind algorithm_of<direct> = algorithm_kind::direct;
template <>
inline constexpr algorithm_kind algorithm_of<ring> = algorithm_kind::ring;
template <>
inline constexpr algorithm_kind algorithm_of<halving_doubling> = algorithm_kind::halving_doubling;
template <>
inline constexpr algorithm_kind algorithm_of<tree> = algorithm_kind::tree;
template <>
inline constexpr algorithm_kind algorithm_of<torus_2d> = algorithm_kind::torus_2d;

template <class T>
inline constexpr bool is_algorithm = std::is_same_v<T, automatic> || algorithm_of<T> != algorithm_kind::automatic;

template <class Algorithm>
constexpr std::size_t segment_bytes_of(const Algorithm& a) noexcept {
  if constexpr (requires { a.segment_bytes; })
    return a.segment_bytes;
  else
    return 0;
}

template <class Algorithm, class... Offered>
inline constexpr bool is_one_of = (std::is_same_v<Algorithm, Offered> || ...);

/// Stands for a policy that was not given.
struct not_given {};

}  // namespace detail

/// An algorithm: one of automatic, direct, ring, halving_doubling, tree, torus_2d, or the program's own.
template <class T>
concept algorithm = detail::is_algorithm<T>;

/// What may trail the buffers of a collective: an algorithm, or an operator (anything callable that is not a range).
template <class T>
concept policy = algorithm<T> || std::is_same_v<T, detail::not_given> || !any_range<T>;

}  // namespace toroid
