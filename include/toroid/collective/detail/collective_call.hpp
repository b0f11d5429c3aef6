// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/finite.hpp>
#include <toroid/communicator/call.hpp>
#include <toroid/core/reduction.hpp>
#include <toroid/topology/block.hpp>

#include <cstddef>

namespace toroid::detail {

/// A collective with its types erased: what the byte core needs to run it.
struct collective_call {
  /// Not an aggregate: compilers clear one of this size by a string instruction, which takes 9 ns to start.
  collective_call() noexcept {}

  call_identity identity{};
  const std::byte* input = nullptr;
  std::byte* result = nullptr;
  bool input_is_block = false;   ///< the input holds the own block only (all_gather, gather)
  bool result_is_block = false;  ///< the result holds the own block only (reduce_scatter, scatter)
  bool input_at_root = false;    ///< the others bring nothing (broadcast, scatter)
  bool result_at_root = false;   ///< the others get nothing (reduce, gather)
  reduce_function reduce = nullptr;
  reduce_function copy = nullptr;  ///< counts bytes
  const void* functor = nullptr;
  flaw_finder first_flaw = nullptr;  ///< searches elements for what is not finite

  /// Elements that a rank's input holds.
  std::size_t input_count(int ranks, int rank) const noexcept {
    if (input_at_root && rank != identity.root) return 0;
    return input_is_block ? block_of(identity.count, ranks, rank).count : identity.count;
  }
  /// Elements that a rank's result holds.
  std::size_t result_count(int ranks, int rank) const noexcept {
    if (result_at_root && rank != identity.root) return 0;
    return result_is_block ? block_of(identity.count, ranks, rank).count : identity.count;
  }
  std::size_t bytes() const noexcept { return identity.count * identity.element_size; }

  /// Elements of the vector before the first one that a rank's input or result holds.
  std::size_t input_origin(int ranks, int rank) const noexcept {
    return input_is_block ? block_of(identity.count, ranks, rank).begin : 0;
  }
  std::size_t result_origin(int ranks, int rank) const noexcept {
    return result_is_block ? block_of(identity.count, ranks, rank).begin : 0;
  }
};

}  // namespace toroid::detail
