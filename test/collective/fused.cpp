// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/memory.hpp"
#include "support/random.hpp"

#include <toroid/collective/fused.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

// Several buffers in one operation: each as by itself, whatever their lengths, types and places.

namespace {

using support::demand;

float contribution(int rank, std::size_t index) {
  support::random_numbers random(index * 64 + static_cast<std::size_t>(rank));
  return std::ldexp(static_cast<float>(random.below(1 << 24)) / static_cast<float>(1 << 23) - 1.0f,
                    static_cast<int>(random.below(30)));
}

/// A guarded buffer of T at an odd place that is another one on each rank.
template <class T>
class odd_buffer {
 public:
  odd_buffer(std::size_t count, int rank, std::size_t salt)
      : m_memory(support::room_for(count * sizeof(T), sizeof(T)) + 4096),
        m_bytes(m_memory.bytes(), count * sizeof(T), sizeof(T), support::placement::at_an_odd_element,
                1 + (static_cast<std::size_t>(rank) + salt) % 15),
        m_salt(salt) {
    for (std::size_t i = 0; i < count; ++i) span()[i] = static_cast<T>(contribution(rank, salt * 100'000 + i));
  }
  std::span<T> span() const { return {reinterpret_cast<T*>(m_bytes.data()), m_bytes.size() / sizeof(T)}; }
  std::vector<T> copy() const { return {span().begin(), span().end()}; }
  void check(const std::vector<T>& right) const {
    const std::string what = support::joined("buffer ", m_salt, " of ", right.size());
    demand(right.empty() || std::memcmp(right.data(), m_bytes.data(), m_bytes.size()) == 0, what,
           " has other bits than by itself");
    m_bytes.check_guards(what);
  }

 private:
  support::fenced_memory m_memory;
  support::guarded_bytes m_bytes;
  std::size_t m_salt;
};

/// Five buffers of two types against each by itself.
template <class Comm, class... Policies>
void as_by_themselves(Comm& comm, const std::array<std::size_t, 5>& counts, const Policies&... policies) {
  const int rank = comm.rank();
  const odd_buffer<float> a(counts[0], rank, 1), c(counts[2], rank, 3), e(counts[4], rank, 5);
  const odd_buffer<double> b(counts[1], rank, 2), d(counts[3], rank, 4);
  std::vector<float> a1 = a.copy(), c1 = c.copy(), e1 = e.copy();
  std::vector<double> b1 = b.copy(), d1 = d.copy();
  toroid::all_reduce(comm, a1, policies...);
  toroid::all_reduce(comm, b1, policies...);
  toroid::all_reduce(comm, c1, policies...);
  toroid::all_reduce(comm, d1, policies...);
  toroid::all_reduce(comm, e1, policies...);
  toroid::all_reduce(comm, toroid::fused(a.span(), b.span(), c.span(), d.span(), e.span()), policies...);
  a.check(a1);
  b.check(b1);
  c.check(c1);
  d.check(d1);
  e.check(e1);
}

constexpr std::array<std::size_t, 5> lengths[] = {
    {0, 0, 0, 0, 0},          {1, 0, 0, 0, 0},       {0, 3, 0, 0, 7},         {1, 1, 1, 1, 1},
    {5, 7, 0, 9, 3},          {500, 600, 1, 2, 700}, {9000, 3, 1, 5000, 200},  // packed, and too long to be
    {0, 4096, 8193, 0, 8192},
};

}  // namespace

TEST_CASE("Fused buffers have the bits that each has by itself", "[fused]") {
  for (const int ranks : {1, 2, 3}) {
    support::run_both(ranks, [](auto& comm) {
      for (const auto& counts : lengths) {
        as_by_themselves(comm, counts);
        as_by_themselves(comm, counts, toroid::average{}, toroid::direct{.segment_bytes = 256});
        as_by_themselves(comm, counts, toroid::wire<toroid::bfloat16>, toroid::accumulate<double>);
      }
    });
  }
}

TEST_CASE("Fused buffers in shared memory, and more than the communicator holds at a time", "[fused]") {
  support::run_both(2, [](auto& comm) {
    std::array<std::span<float>, 3> parts;
    std::size_t count = 1'500'000;
    for (auto& part : parts) {
      part = toroid::allocate<float>(comm, count);
      std::fill(part.begin(), part.end(), static_cast<float>(comm.rank() + 1));
      count /= 300;
    }
    const std::size_t before = comm.footprint();
    toroid::all_reduce(comm, toroid::fused(parts[0], parts[1], parts[2]));
    for (const auto& part : parts)
      for (const float value : part) demand(value == 3.0f, value, " is no sum");
    demand(comm.footprint() - before < (std::size_t{1} << 20), "a long buffer was copied");
    // Two pieces, one of which ends inside a buffer.
    toroid::all_reduce(comm, toroid::fused(parts[1], parts[0], parts[2]), toroid::wire<double>);
    for (const auto& part : parts)
      for (const float value : part) demand(value == 6.0f, value, " is no sum");
    demand(comm.footprint() - before <= (std::size_t{4} << 20), comm.footprint() - before, " bytes are held");
  });
}

TEST_CASE("Fused buffers by algorithms that cut vectors into blocks", "[fused]") {
  support::run_threads(3, [](auto& comm) {
    const auto right_by = [&](const auto& how) {
      std::vector<float> a(10, 1.0f), b(20'000, 2.0f), c;
      int d[3] = {comm.rank(), 5, -comm.rank()};
      toroid::all_reduce(comm, toroid::fused(a, b, c, d), how, toroid::average{});
      for (const float value : a) demand(value == 1.0f, value);
      for (const float value : b) demand(value == 2.0f, value);
      demand(d[0] == 1 && d[1] == 5 && d[2] == -1, d[0], ' ', d[1], ' ', d[2]);
      toroid::all_reduce(comm, toroid::fused(c, c), how);
    };
    right_by(toroid::ring{});
    right_by(toroid::tree{});
    right_by(toroid::torus_2d{});
    right_by(toroid::halving_doubling{});
  });
}

TEST_CASE("Nothing can be fused, and is a call that ranks agree on", "[fused]") {
  support::run_both(3, [](auto& comm) {
    toroid::all_reduce(comm, toroid::fused());
    toroid::all_reduce(comm, toroid::fused(), toroid::ring{}, toroid::average{});
    std::vector<int> one(1, comm.rank() + 1);
    toroid::all_reduce(comm, toroid::fused(one));
    demand(one[0] == 6, one[0], " after nothing");
    std::vector<float> empty;
    support::text_of<toroid::mismatch_error>([&] {
      if (comm.rank() == 2)
        toroid::all_reduce(comm, toroid::fused());
      else
        toroid::all_reduce(comm, toroid::fused(empty));
    });
  });
}

TEST_CASE("Ranks that split the same number of elements differently are told so", "[fused]") {
  const auto disagree = [](std::array<std::size_t, 3> usual, std::array<std::size_t, 3> other, auto... policies) {
    support::run_both(3, [=](auto& comm) {
      const auto& counts = comm.rank() == 1 ? other : usual;
      std::vector<float> a(counts[0], 1.0f), b(counts[1], 1.0f);
      std::vector<double> c(counts[2], 1.0);
      const std::string text = support::text_of<toroid::mismatch_error>(
          [&] { toroid::all_reduce(comm, toroid::fused(a, b, c), policies...); });
      support::demand_words(text, "fused from buffers of ", std::to_string(usual[0]) + " + ",
                            std::to_string(other[0]) + " + ");
      for (const auto& buffer : {a, b})
        for (const float value : buffer) demand(value == 1.0f, "a value has changed");
    });
  };
  disagree({4, 8, 2}, {6, 6, 2});
  disagree({10, 10, 9}, {10, 10, 10});
  disagree({1, 0, 1}, {0, 1, 1}, toroid::ring{});
  disagree({1000, 20'000, 0}, {20'000, 1000, 0});
  disagree({100, 900, 5}, {900, 100, 5}, toroid::wire<toroid::bfloat16>);
}

TEST_CASE("Buffers that overlap, or are none, are refused before anything moves", "[fused]") {
  support::run_both(2, [](auto& comm) {
    float b[20];
    std::fill(b, b + 20, 1.0f);
    const auto refused = [&](std::size_t first, std::size_t second, std::size_t count) {
      const std::string text = support::text_of<toroid::usage_error>([&] {
        toroid::all_reduce(comm, toroid::fused(std::span<float>(), std::span<float>(b + first, count),
                                               std::span<float>(b + second, count)));
      });
      support::demand_words(text, "buffers 1 and 2 of the fused ones overlap", "fused.cpp:");
      for (const float value : b) demand(value == 1.0f, "a value has changed");
    };
    refused(0, 0, 10);  // the same one twice
    refused(0, 1, 10);
    refused(0, 9, 10);
    refused(5, 0, 6);
    toroid::all_reduce(comm, toroid::fused(std::span<float>(b, 10), std::span<float>(b + 10, 10)));
    demand(b[9] == 2.0f && b[10] == 2.0f, "neighbours");
    const std::span<double> nowhere(static_cast<double*>(nullptr), 3);
    support::demand_words(
        support::text_of<toroid::usage_error>([&] { toroid::all_reduce(comm, toroid::fused(b, nowhere)); }),
        "buffer 1 is a null pointer with 3 elements");
  });
}

TEST_CASE("A number that is not finite is found in whichever buffer it stands", "[fused]") {
  support::run_both(2,
                    [](auto& comm) {
                      std::vector<float> a(10, 1.0f), b(50'000, 1.0f);
                      std::vector<double> c(7, 1.0);
                      const auto found = [&](const char* where) {
                        const std::string text = support::text_of<toroid::usage_error>(
                            [&] { toroid::all_reduce(comm, toroid::fused(a, b, c)); });
                        support::demand_words(text, where);
                        demand(b[1] == 1.0f && c[1] == 1.0, "a buffer has been reduced");
                        a.assign(10, 1.0f);  // so short that it came with the news
                      };
                      if (comm.rank() == 1) c[3] = std::numeric_limits<double>::infinity();
                      found("rank 1 is not finite at index 3 of buffer 2");
                      if (comm.rank() == 0) b[40'000] = std::nanf("");
                      found("rank 0 is not finite at index 40000 of buffer 1");
                      b[40'000] = 1.0f;
                      c[3] = 1.0;
                      toroid::all_reduce(comm, toroid::fused(a, b, c));
                      demand(a[9] == 2.0f && b[40'000] == 2.0f && c[3] == 2.0, "the communicator is not whole");
                    },
                    {.checking = toroid::check::data});
}
