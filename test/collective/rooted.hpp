// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "support/demand.hpp"
#include "support/memory.hpp"

#include <toroid/collective/gather.hpp>
#include <toroid/collective/reduce.hpp>
#include <toroid/collective/scatter.hpp>
#include <toroid/communicator/allocator.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Reduce, gather and scatter against plain loops, for every root, between guards; called by all ranks of a group.
namespace rooted {

using element = std::uint32_t;
using support::demand;

inline element value(int rank, std::size_t index) {
  return static_cast<element>(rank + 1) * 1'000'003U + static_cast<element>(index) * 7U;
}

/// A block of a rank's memory: its own, or what peers can reach.
template <class Comm>
class memory_of {
 public:
  memory_of(Comm& comm, std::size_t elements, bool shared)
      : m_comm(comm), m_bytes(support::room_for(elements * sizeof(element), sizeof(element)) + 64), m_shared(shared) {
    if (shared)
      m_memory = toroid::allocate<std::byte>(comm, m_bytes);
    else
      m_memory = {(m_own.resize(m_bytes), m_own.data()), m_bytes};
  }
  memory_of(const memory_of&) = delete;
  memory_of& operator=(const memory_of&) = delete;
  ~memory_of() {
    if (m_shared) toroid::deallocate(m_comm, m_memory);
  }
  std::span<std::byte> bytes() const { return m_memory; }

 private:
  Comm& m_comm;
  std::size_t m_bytes;
  bool m_shared;
  std::vector<std::byte> m_own;
  std::span<std::byte> m_memory;
};

inline std::span<element> elements_of(const support::guarded_bytes& bytes) {
  return {reinterpret_cast<element*>(bytes.data()), bytes.size() / sizeof(element)};
}

/// The counts around every edge.
inline std::vector<std::size_t> counts_for(int ranks) {
  const std::size_t p = static_cast<std::size_t>(ranks);
  std::vector<std::size_t> all{0, 1, p, 1024 / p, 1024 / p + 1, 1025, 8 * 1024 * p + 3};
  if (p > 1) all.push_back(p - 1);
  return all;
}

template <class Comm, class Algorithm>
void reduces(Comm& comm, std::size_t count, bool shared, const Algorithm& how) {
  const memory_of room(comm, count, shared), other_room(comm, count, shared);
  const auto place = support::placement::at_an_odd_element;
  std::vector<element> sums(count);
  for (std::size_t i = 0; i < count; ++i)
    for (int r = 0; r < comm.size(); ++r) sums[i] += value(r, i);
  for (int root = 0; root < comm.size(); ++root) {
    for (const bool in_place : {false, true}) {
      const support::guarded_bytes in(room.bytes(), count * sizeof(element), sizeof(element), place, 1),
          out(other_room.bytes(), count * sizeof(element), sizeof(element), place, 3);
      const std::span<element> input = elements_of(in), result = elements_of(out);
      for (std::size_t i = 0; i < count; ++i) input[i] = value(comm.rank(), i);
      out.fill(support::junk_value);
      if (in_place)
        toroid::reduce(comm, input, root, how);
      else if (comm.rank() == root)
        toroid::reduce(comm, input, result, root, how);
      else
        toroid::reduce(comm, input, std::span<element>(), root, how);
      const bool is_root = comm.rank() == root;
      const std::span<element> got = in_place ? input : result;
      for (std::size_t i = 0; i < count && is_root; ++i)
        demand(got[i] == sums[i], "reduce of ", count, " to ", root, " of ", comm.size(), in_place ? " in place" : "",
               ": element ", i, " is ", got[i], " instead of ", sums[i]);
      for (std::size_t i = 0; i < count && !(in_place && is_root); ++i)
        demand(input[i] == value(comm.rank(), i), "reduce of ", count, " has changed an input");
      in.check_guards("reduce, input");
      out.check_guards("reduce, result");
    }
  }
}

template <class Comm, class Algorithm>
void gathers(Comm& comm, std::size_t each, bool shared, const Algorithm& how) {
  const std::size_t p = static_cast<std::size_t>(comm.size()), all = each * p;
  const memory_of room(comm, each, shared), other_room(comm, all, shared);
  const auto place = support::placement::at_an_odd_element;
  for (int root = 0; root < comm.size(); ++root) {
    for (const bool in_place : {false, true}) {
      const support::guarded_bytes in(room.bytes(), each * sizeof(element), sizeof(element), place, 1),
          out(other_room.bytes(), all * sizeof(element), sizeof(element), place, 3);
      out.fill(support::junk_value);
      const bool is_root = comm.rank() == root;
      std::span<element> input = elements_of(in);
      const std::span<element> result = elements_of(out);
      if (in_place && is_root) input = result.subspan(static_cast<std::size_t>(root) * each, each);
      for (std::size_t i = 0; i < each; ++i) input[i] = value(comm.rank(), i);
      toroid::gather(comm, input, is_root ? result : std::span<element>(), root, how);
      for (std::size_t i = 0; i < all && is_root; ++i)
        demand(result[i] == value(static_cast<int>(i / each), i % each), "gather of ", each, " to ", root, " of ",
               comm.size(), in_place ? " in place" : "", ": element ", i, " is ", result[i]);
      for (std::size_t i = 0; i < each; ++i) demand(input[i] == value(comm.rank(), i), "gather has changed an input");
      in.check_guards("gather, input");
      out.check_guards("gather, result");
    }
  }
}

template <class Comm, class Algorithm>
void scatters(Comm& comm, std::size_t each, bool shared, const Algorithm& how) {
  const std::size_t p = static_cast<std::size_t>(comm.size()), all = each * p;
  const memory_of room(comm, all, shared), other_room(comm, each, shared);
  const auto place = support::placement::at_an_odd_element;
  for (int root = 0; root < comm.size(); ++root) {
    for (const bool in_place : {false, true}) {
      const support::guarded_bytes in(room.bytes(), all * sizeof(element), sizeof(element), place, 1),
          out(other_room.bytes(), each * sizeof(element), sizeof(element), place, 3);
      out.fill(support::junk_value);
      const bool is_root = comm.rank() == root;
      const std::span<element> input = elements_of(in);
      std::span<element> result = elements_of(out);
      if (in_place && is_root) result = input.subspan(static_cast<std::size_t>(root) * each, each);
      for (std::size_t i = 0; i < all; ++i) input[i] = value(comm.rank(), i);
      toroid::scatter(comm, is_root ? input : std::span<element>(), result, root, how);
      for (std::size_t i = 0; i < each; ++i)
        demand(result[i] == value(root, static_cast<std::size_t>(comm.rank()) * each + i), "scatter of ", each,
               " from ", root, " of ", comm.size(), in_place ? " in place" : "", ": element ", i, " is ", result[i]);
      for (std::size_t i = 0; i < all; ++i) demand(input[i] == value(comm.rank(), i), "scatter has changed its input");
      in.check_guards("scatter, input");
      out.check_guards("scatter, result");
    }
  }
}

/// Everything, in ordinary or in shared memory.
template <class Comm>
void check(Comm& comm, bool shared) {
  for (const std::size_t count : counts_for(comm.size())) {
    reduces(comm, count, shared, toroid::automatic{});
    reduces(comm, count, shared, toroid::direct{.segment_bytes = 1000});
    reduces(comm, count, shared, toroid::ring{.segment_bytes = 1000});
    reduces(comm, count, shared, toroid::tree{});
  }
  for (const std::size_t each : counts_for(comm.size())) {
    gathers(comm, each, shared, toroid::automatic{});
    gathers(comm, each, shared, toroid::direct{.segment_bytes = 1000});
    scatters(comm, each, shared, toroid::automatic{});
    scatters(comm, each, shared, toroid::direct{.segment_bytes = 1000});
  }
}

/// Affine maps x -> a x + b, whose composition does not commute.
struct map {
  std::uint32_t a, b;
  friend bool operator==(const map&, const map&) = default;
};
inline map compose(map first, map second) { return {first.a * second.a, first.b * second.a + second.b}; }

/// Operands meet in rank order, whoever the root is.
template <class Comm>
void keeps_order(Comm& comm) {
  const auto of = [](int rank, std::size_t i) {
    return map{static_cast<std::uint32_t>(2 * rank + 3), static_cast<std::uint32_t>(i) + 1};
  };
  for (const std::size_t count : {std::size_t{1}, std::size_t{5000}}) {
    std::vector<map> in(count), expected(count), out(count);
    for (std::size_t i = 0; i < count; ++i) {
      in[i] = of(comm.rank(), i);
      expected[i] = of(0, i);
      for (int r = 1; r < comm.size(); ++r) expected[i] = compose(expected[i], of(r, i));
    }
    for (int root = 0; root < comm.size(); ++root) {
      const auto holds = [&](const auto&... how) {
        out.assign(count, map{});
        toroid::reduce(comm, in, out, root, compose, how...);
        demand(comm.rank() != root || out == expected, "reduce of ", count, " to ", root, " of ", comm.size(),
               " not in rank order");
      };
      holds();
      holds(toroid::direct{});
      holds(toroid::tree{});
    }
  }
}

}  // namespace rooted
