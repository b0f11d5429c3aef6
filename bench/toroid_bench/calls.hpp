// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "settings.hpp"

#include <toroid/toroid.hpp>

#include <cstddef>
#include <cstdint>

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

/// The calls for the collective, operator and algorithm of given settings, on elements of type T. Compiled in
/// calls_*.cpp, a few types each.
///
/// @pre  refusal(settings) is empty
template <class T>
struct calls_on {
  static calls<threads_communicator> over_threads(const settings& what);
  static calls<shm_communicator> over_shm(const settings& what);
};

}  // namespace bench
