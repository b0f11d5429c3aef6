// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/algorithms.hpp>

/// What may trail a reduction's buffers besides an operator and an algorithm, in any order.
namespace toroid {

/// The type of `wire<W>`.
template <class W>
struct wire_t {
  using type = W;
};

/// Values travel between ranks as W, which may be narrower than the elements, or wider.
///
/// Narrower, as bfloat16 for gradients in float: half the bytes. Each rank's numbers are rounded to W before they
/// travel, and so is every value that travels further: the partial results of `ring`, `halving_doubling`, `tree` and
/// `torus_2d`, and the result itself, also on the rank that has computed it. What is too great for W becomes infinity;
/// infinities and NaN stay what they are. Wider, as float for elements in bfloat16: twice the bytes, and partial
/// results are not rounded at every hop.
///
/// @tparam W  a floating-point type for floating-point elements, a wider integer for integers
///
/// Cost: the elements are converted into memory of the communicator that peers can read, up to 4 MiB of it that it
/// keeps (see footprint()), and back: two passes over the rank's own memory. Longer vectors go piece by piece. That
/// pays where bytes are dear, as between hosts; ranks that share memory lose by it. The same on all ranks.
///
///     toroid::all_reduce(comm, gradient, toroid::wire<toroid::bfloat16>);
template <class W>
inline constexpr wire_t<W> wire{};

/// The type of `accumulate<A>`.
template <class A>
struct accumulate_t {
  using type = A;
};

/// Values are combined as numbers of type A, and rounded once after each pass: `direct` makes one pass over the
/// operands of all ranks; algorithms with partial results round these to the type that travels (see `wire`).
///
/// Where nothing is said, half types are combined as float by the operators of the library, all others as what they are
/// or, if that is wider, as what travels. A functor of your own is called with two values of type A.
///
/// @tparam A  as wide as the elements, or wider
///
/// Cost: no memory and no message more; fewer numbers fit a register. The same on all ranks.
///
///     toroid::all_reduce(comm, residuals, toroid::accumulate<double>);  // of float
template <class A>
inline constexpr accumulate_t<A> accumulate{};

/// The type of `require<Level>`.
template <determinism Level>
struct require_t {
  static constexpr determinism level = Level;
};

/// Asks for a determinism level: a call whose algorithm gives less does not compile. Costs nothing.
///
///     toroid::all_reduce(comm, values, toroid::require<toroid::determinism::any_chunking>);
template <determinism Level>
inline constexpr require_t<Level> require{};

namespace detail {

template <class T>
inline constexpr bool is_wire = false;
template <class W>
inline constexpr bool is_wire<wire_t<W>> = true;
template <class T>
inline constexpr bool is_accumulator = false;
template <class A>
inline constexpr bool is_accumulator<accumulate_t<A>> = true;
template <class T>
inline constexpr bool is_requirement = false;
template <determinism Level>
inline constexpr bool is_requirement<require_t<Level>> = true;

/// Policies beyond operator and algorithm, which not every collective takes.
template <class T>
inline constexpr bool is_further_policy = is_wire<T> || is_accumulator<T> || is_requirement<T>;

}  // namespace detail
}  // namespace toroid
