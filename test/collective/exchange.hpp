// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collective/rooted.hpp"

#include <toroid/collective/all_to_all.hpp>

#include <cstddef>
#include <span>
#include <vector>

/// Exchanges of blocks against plain loops, called by all ranks of a group.
namespace exchange {

using rooted::element;
using rooted::elements_of;
using rooted::memory_of;
using support::demand;

/// Element i of what `from` sends to `to`.
inline element value(int from, int to, std::size_t i) { return rooted::value(from * 64 + to, i); }

template <class Comm, class Algorithm>
void all_to_all(Comm& comm, std::size_t each, bool shared, const Algorithm& how) {
  const std::size_t p = static_cast<std::size_t>(comm.size()), all = each * p;
  const memory_of room(comm, all, shared), other_room(comm, all, shared);
  const auto place = support::placement::at_an_odd_element;
  const support::guarded_bytes in(room.bytes(), all * sizeof(element), sizeof(element), place, 1),
      out(other_room.bytes(), all * sizeof(element), sizeof(element), place, 3);
  const std::span<element> input = elements_of(in), result = elements_of(out);
  for (std::size_t i = 0; i < all; ++i) input[i] = value(comm.rank(), static_cast<int>(i / each), i % each);
  out.fill(support::junk_value);
  toroid::all_to_all(comm, input, result, how);
  for (std::size_t i = 0; i < all; ++i) {
    demand(result[i] == value(static_cast<int>(i / each), comm.rank(), i % each), "all_to_all of ", each, " on ",
           comm.size(), ": element ", i, " of rank ", comm.rank(), " is ", result[i]);
    demand(input[i] == value(comm.rank(), static_cast<int>(i / each), i % each), "all_to_all has changed its input");
  }
  in.check_guards("all_to_all, input");
  out.check_guards("all_to_all, result");
}

/// Everything that has equal blocks, in ordinary or in shared memory.
template <class Comm>
void check(Comm& comm, bool shared) {
  for (const std::size_t each : rooted::counts_for(comm.size())) {
    all_to_all(comm, each, shared, toroid::automatic{});
    all_to_all(comm, each, shared, toroid::direct{.segment_bytes = 1000});
  }
}

}  // namespace exchange
