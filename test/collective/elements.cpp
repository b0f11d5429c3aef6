// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/collective/all_gather.hpp>
#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/broadcast.hpp>
#include <toroid/collective/reduce_scatter.hpp>

#include <array>
#include <cstdint>
#include <vector>

// Elements of odd sizes: one byte, three, many thousand.

namespace {

using support::demand;

/// `Size` bytes, of which all must come through.
template <std::size_t Size>
struct bytes {
  std::array<std::uint8_t, Size> values;
  friend bool operator==(const bytes&, const bytes&) = default;

  static bytes of(int rank, std::size_t index) {
    bytes b;
    for (std::size_t i = 0; i < Size; ++i)
      b.values[i] = static_cast<std::uint8_t>(i * 7 + index * 3 + (std::size_t{1} << 2 * rank));
    return b;
  }
};
static_assert(sizeof(bytes<3>) == 3 && sizeof(bytes<5000>) == 5000);

struct add {
  template <std::size_t Size>
  bytes<Size> operator()(bytes<Size> a, const bytes<Size>& b) const {
    for (std::size_t i = 0; i < Size; ++i) a.values[i] = static_cast<std::uint8_t>(a.values[i] + b.values[i]);
    return a;
  }
};

template <std::size_t Size>
bytes<Size> total(int ranks, std::size_t index) {
  bytes<Size> all = bytes<Size>::of(0, index);
  for (int r = 1; r < ranks; ++r) all = add{}(all, bytes<Size>::of(r, index));
  return all;
}

template <std::size_t Size, class Comm, class Algorithm>
void move_elements(Comm& comm, std::size_t count, const Algorithm& how) {
  const auto op = toroid::commutative(add{});
  using element = bytes<Size>;
  const int p = comm.size(), r = comm.rank();
  std::vector<element> in(count), out(count);
  for (std::size_t i = 0; i < count; ++i) in[i] = element::of(r, i);
  toroid::all_reduce(comm, in, out, op, how);
  for (std::size_t i = 0; i < count; ++i)
    demand(out[i] == total<Size>(p, i), "sum ", i, " of ", count, " of size ", Size);
  const toroid::block own = toroid::block_of(count, p, r);
  std::vector<element> block(own.count);
  toroid::reduce_scatter(comm, in, block, op, how);
  for (std::size_t i = 0; i < own.count; ++i)
    demand(block[i] == total<Size>(p, own.begin + i), "block ", i, " of ", count, " of size ", Size);
  std::fill(out.begin(), out.end(), element{});
  toroid::all_gather(comm, block, out, how);
  for (std::size_t i = 0; i < count; ++i)
    demand(out[i] == total<Size>(p, i), "gathered ", i, " of ", count, " of size ", Size);
  toroid::broadcast(comm, in, p - 1, how);
  for (std::size_t i = 0; i < count; ++i)
    demand(in[i] == element::of(p - 1, i), "broadcast ", i, " of ", count, " of size ", Size);
}

template <std::size_t Size, class Comm>
void by_all(Comm& comm) {
  // The lengths that travel beside a flag end at 4 KiB; regions of 32 KiB make the longer ones take turns.
  for (const std::size_t size : {std::size_t{0}, Size, toroid::transport::inline_bytes, std::size_t{70'000}}) {
    for (const std::size_t more : {std::size_t{0}, std::size_t{1}}) {
      const std::size_t count = size / Size + more;
      move_elements<Size>(comm, count, toroid::automatic{});
      move_elements<Size>(comm, count, toroid::direct{.segment_bytes = 64});
      move_elements<Size>(comm, count, toroid::ring{});
    }
  }
}

const toroid::options small_regions{.region_bytes = 32 * 1024};

}  // namespace

TEST_CASE("Elements of one and of three bytes travel", "[elements]") {
  support::run_both(
      3, [](auto& comm) { by_all<1>(comm), by_all<3>(comm); }, small_regions);
}

TEST_CASE("Elements of many bytes travel", "[elements]") {
  support::run_both(
      3, [](auto& comm) { by_all<40>(comm), by_all<5000>(comm); }, small_regions);
}

TEST_CASE("An element longer than a hand-over slot is refused, and the remedy is told", "[elements]") {
  support::run_both(2,
                    [](auto& comm) {
                      std::vector<bytes<5000>> values(4);
                      const std::string text =
                          support::text_of<toroid::usage_error>([&] { toroid::all_reduce(comm, values, add{}); });
                      support::demand_words(text, "5000 bytes", "options.region_bytes");
                      std::vector<bytes<3>> others(4);
                      toroid::all_reduce(comm, others, add{});
                    },
                    {.region_bytes = 4096});
}
