// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "settings.hpp"

#include <toroid/toroid.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace bench {

/// The library's calls behind one signature, so that the measuring loop is compiled once for each transport and not for
/// each element type and operator.
template <class Communicator>
struct calls {
  /// @param in     own input; of all_gather the own block
  /// @param out    own result; of reduce_scatter the own block. In place it is the only buffer
  /// @param count  elements of the whole buffer
  using function = void (*)(Communicator&, const settings&, const std::byte* in, std::byte* out, std::size_t count);

  function in_place = nullptr;      ///< null where the collective has no such form
  function out_of_place = nullptr;  ///< likewise
};

using threads_communicator = toroid::communicator<toroid::transport::threads>;
using shm_communicator = toroid::communicator<toroid::transport::shm>;

/// Whether ranks can reach memory of each other. Over the other transport, MPI's messages, the element types are few,
/// because each is compiled once more for each MPI library.
template <class Communicator>
inline constexpr bool is_mapped =
    std::is_same_v<Communicator, threads_communicator> || std::is_same_v<Communicator, shm_communicator>;

/// The calls for the collective, operator and algorithm of given settings, on elements of type T. Compiled in
/// calls_*.cpp, a few types each, and in mpi/calls.cpp.
///
/// @pre  refusal(settings) is empty
template <class Communicator, class T>
calls<Communicator> calls_over(const settings& what);

}  // namespace bench
