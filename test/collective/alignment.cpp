// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/memory.hpp"

#include <toroid/collective/all_gather.hpp>
#include <toroid/collective/all_reduce.hpp>
#include <toroid/core/half.hpp>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

// Buffers that begin anywhere, elsewhere on each rank: ranks must still do the same, and touch nothing beside them.

namespace {

using support::demand;
using support::guarded_bytes;
using support::placement;

template <class T>
T number(std::size_t value) {
  if constexpr (toroid::half<T>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

template <class T>
T load(const guarded_bytes& buffer, std::size_t index) {
  T value;
  std::memcpy(&value, buffer.data() + index * sizeof(T), sizeof value);
  return value;
}

/// Small whole numbers: exact in every type, in every order.
template <class T>
T contribution(int rank, std::size_t index) {
  return number<T>(index % 7 + static_cast<std::size_t>(rank));
}

template <class T, class Comm, class Algorithm>
void sum_at(Comm& comm, placement where, std::size_t shift, std::size_t count, const Algorithm& how) {
  const std::size_t p = static_cast<std::size_t>(comm.size());
  const support::fenced_memory in_memory(support::room_for(count * sizeof(T), sizeof(T)));
  const support::fenced_memory out_memory(support::room_for(count * sizeof(T), sizeof(T)));
  const guarded_bytes in(in_memory.bytes(), count * sizeof(T), sizeof(T), where, shift);
  const guarded_bytes out(out_memory.bytes(), count * sizeof(T), sizeof(T), where, 16 - shift);
  const auto elements = [&](const guarded_bytes& b) { return std::span<T>(reinterpret_cast<T*>(b.data()), count); };
  for (std::size_t i = 0; i < count; ++i) {
    const T value = contribution<T>(comm.rank(), i);
    std::memcpy(in.data() + i * sizeof(T), &value, sizeof(T));
  }
  const auto check = [&](const guarded_bytes& result, const char* what) {
    for (std::size_t i = 0; i < count; ++i)
      demand(load<T>(result, i) == number<T>(p * (i % 7) + p * (p - 1) / 2), what, ": element ", i, " of ", count,
             " is ", +load<T>(result, i), ", shift ", shift, ", size ", sizeof(T));
    in.check_guards("input");
    out.check_guards("result");
  };
  toroid::all_reduce(comm, elements(in), elements(out), how);
  check(out, "out of place");
  for (std::size_t i = 0; i < count; ++i)
    demand(load<T>(in, i) == contribution<T>(comm.rank(), i), "element ", i, " of the input has changed");
  toroid::all_reduce(comm, elements(in), how);
  check(in, "in place");
}

template <class T, class Comm>
void anywhere(Comm& comm) {
  for (std::size_t k = 1; k <= 15; ++k) {
    const std::size_t shift = 1 + (k - 1 + 4 * static_cast<std::size_t>(comm.rank())) % 15;
    for (const std::size_t count : {1u, 7u, 31u, 33u, 1000u}) {
      sum_at<T>(comm, placement::at_an_odd_element, shift, count, toroid::automatic{});
      sum_at<T>(comm, placement::at_an_odd_element, shift, count, toroid::ring{});
      sum_at<T>(comm, placement::at_an_odd_byte, shift, count, toroid::direct{});
      sum_at<T>(comm, placement::at_an_odd_byte, shift, count, toroid::ring{});
    }
  }
  sum_at<T>(comm, placement::at_the_back, 1, 4099, toroid::direct{});
  sum_at<T>(comm, placement::at_the_front, 1, 4099, toroid::ring{});
}

}  // namespace

TEST_CASE("Buffers of any alignment are summed, each rank's another", "[alignment]") {
  for (const int ranks : {2, 4}) {
    support::run_both(ranks, [](auto& comm) {
      anywhere<toroid::bfloat16>(comm);
      anywhere<float>(comm);
      anywhere<double>(comm);
      anywhere<std::uint8_t>(comm);
    });
  }
}
