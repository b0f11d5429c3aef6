// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collective/rooted.hpp"

#include <toroid/collective/all_gather_v.hpp>
#include <toroid/collective/all_to_all.hpp>
#include <toroid/collective/gather_v.hpp>
#include <toroid/collective/reduce_scatter_v.hpp>
#include <toroid/collective/scatter_v.hpp>

#include <cstddef>
#include <span>
#include <utility>
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

/// A layout with gaps, in which blocks stand in reverse order.
struct layout {
  std::vector<int> counts;
  std::vector<std::size_t> displacements;
  std::size_t elements = 0;

  explicit layout(std::vector<int> c) : counts(std::move(c)), displacements(counts.size()) {
    for (std::size_t r = counts.size(); r-- > 0;) {
      displacements[r] = elements + 2;
      elements += 2 + static_cast<std::size_t>(counts[r]);
    }
  }
  bool covers(std::size_t i) const {
    for (std::size_t r = 0; r < counts.size(); ++r)
      if (i >= displacements[r] && i - displacements[r] < static_cast<std::size_t>(counts[r])) return true;
    return false;
  }
};

/// Elements from one rank to another: some none.
inline int count_of(int from, int to, std::size_t scale) {
  return static_cast<int>(scale) * ((from * 3 + to * 5) % 4) + (from + to) % 2;
}

constexpr element gap = 0x5a5a5a5a;  // support::junk_value in each byte

/// Blocks of `got` are what each rank sends to `to`, and what is between them is as it was.
template <class Expected>
void check_blocks(std::span<const element> got, const layout& where, const char* what, Expected expected) {
  for (std::size_t r = 0; r < where.counts.size(); ++r)
    for (std::size_t i = 0; i < static_cast<std::size_t>(where.counts[r]); ++i)
      demand(got[where.displacements[r] + i] == expected(static_cast<int>(r), i), what, ": element ", i, " of block ",
             r, " is ", got[where.displacements[r] + i]);
  for (std::size_t i = 0; i < got.size(); ++i)
    demand(where.covers(i) || got[i] == gap, what, ": element ", i, " between blocks has changed");
}

/// Buffers of given lengths between guards, filled with gaps.
template <class Comm>
struct buffers {
  memory_of<Comm> room, other_room;
  support::guarded_bytes in, out;
  std::span<element> input, result;

  buffers(Comm& comm, std::size_t inputs, std::size_t results, bool shared)
      : room(comm, inputs, shared),
        other_room(comm, results, shared),
        in(room.bytes(), inputs * sizeof(element), sizeof(element), support::placement::at_an_odd_element, 1),
        out(other_room.bytes(), results * sizeof(element), sizeof(element), support::placement::at_an_odd_element, 3),
        input(elements_of(in)),
        result(elements_of(out)) {
    in.fill(support::junk_value);
    out.fill(support::junk_value);
  }
  void check(const char* what) const {
    in.check_guards(what);
    out.check_guards(what);
  }
};

template <class Comm>
void all_to_all_v(Comm& comm, std::size_t scale, bool shared) {
  std::vector<int> sent, received;
  for (int r = 0; r < comm.size(); ++r) {
    sent.push_back(count_of(comm.rank(), r, scale));
    received.push_back(count_of(r, comm.rank(), scale));
  }
  const layout from(sent), to(received);
  const buffers<Comm> b(comm, from.elements, to.elements, shared);
  for (std::size_t r = 0; r < sent.size(); ++r)
    for (std::size_t i = 0; i < static_cast<std::size_t>(sent[r]); ++i)
      b.input[from.displacements[r] + i] = value(comm.rank(), static_cast<int>(r), i);
  toroid::all_to_all_v(comm, b.input, from.counts, from.displacements, b.result, to.counts, to.displacements);
  check_blocks(b.result, to, "all_to_all_v", [&](int r, std::size_t i) { return value(r, comm.rank(), i); });
  check_blocks(b.input, from, "input of all_to_all_v", [&](int r, std::size_t i) { return value(comm.rank(), r, i); });
  b.check("all_to_all_v");
}

template <class Comm>
void gathers_v(Comm& comm, std::size_t scale, bool shared, bool in_place) {
  std::vector<int> counts;
  for (int r = 0; r < comm.size(); ++r) counts.push_back(count_of(r, 0, scale));
  const layout to(counts);
  const std::size_t me = static_cast<std::size_t>(comm.rank()), own = static_cast<std::size_t>(counts[me]);
  const auto expected = [](int r, std::size_t i) { return value(r, 0, i); };
  for (int root = -1; root < comm.size(); ++root) {  // -1: to all
    const buffers<Comm> b(comm, own, to.elements, shared);
    const bool gets = root < 0 || root == comm.rank();
    const std::span<element> mine = in_place && gets ? b.result.subspan(to.displacements[me], own) : b.input;
    for (std::size_t i = 0; i < own; ++i) mine[i] = value(comm.rank(), 0, i);
    if (root < 0)
      toroid::all_gather_v(comm, mine, b.result, to.counts, to.displacements);
    else if (gets)
      toroid::gather_v(comm, mine, b.result, to.counts, to.displacements, root);
    else
      toroid::gather_v(comm, mine, std::span<element>(), std::span<int>(), root);
    if (gets) check_blocks(b.result, to, root < 0 ? "all_gather_v" : "gather_v", expected);
    b.check("gather_v");
    if (root < 0) continue;
    // And back again.
    b.in.fill(support::junk_value);
    if (gets)
      toroid::scatter_v(comm, b.result, mine, to.counts, to.displacements, root);
    else
      toroid::scatter_v(comm, std::span<element>(), mine, std::span<int>(), root);
    for (std::size_t i = 0; i < own; ++i)
      demand(mine[i] == value(comm.rank(), 0, i), "scatter_v: element ", i, " is ", mine[i]);
    if (gets) check_blocks(b.result, to, "input of scatter_v", expected);
    b.check("scatter_v");
  }
}

template <class Comm>
void reduces_scatter_v(Comm& comm, std::size_t scale, bool shared, bool in_place) {
  std::vector<int> counts;
  std::size_t all = 0, begin = 0;
  for (int r = 0; r < comm.size(); ++r) {
    if (r == comm.rank()) begin = all;
    counts.push_back(count_of(r, 1, scale));
    all += static_cast<std::size_t>(counts.back());
  }
  const std::size_t own = static_cast<std::size_t>(counts[static_cast<std::size_t>(comm.rank())]);
  const buffers<Comm> b(comm, all, own, shared);
  for (std::size_t i = 0; i < all; ++i) b.input[i] = rooted::value(comm.rank(), i);
  const std::span<element> mine = in_place ? b.input.subspan(begin, own) : b.result;
  toroid::reduce_scatter_v(comm, b.input, mine, counts);
  for (std::size_t i = 0; i < own; ++i) {
    element sum = 0;
    for (int r = 0; r < comm.size(); ++r) sum += rooted::value(r, begin + i);
    demand(mine[i] == sum, "reduce_scatter_v: element ", i, " is ", mine[i], " instead of ", sum);
  }
  b.check("reduce_scatter_v");
}

/// Blocks of any length, in ordinary or in shared memory.
template <class Comm>
void check_v(Comm& comm, bool shared) {
  for (const std::size_t scale : {0U, 1U, 100U, 1024U, 9000U}) {
    all_to_all_v(comm, scale, shared);
    for (const bool in_place : {false, true}) {
      gathers_v(comm, scale, shared, in_place);
      reduces_scatter_v(comm, scale, shared, in_place);
    }
  }
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
