// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/memory.hpp"
#include "support/random.hpp"
#include "support/sanitizers.hpp"

#include <toroid/topology/block.hpp>
#include <toroid/transport/mailbox.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <set>

namespace conformance {

using support::demand;
using support::guarded_bytes;
using support::placement;

std::string choice::name() const {
  const char* const names[] = {"automatic", "direct", "ring", "halving_doubling", "tree", "torus_2d"};
  return names[static_cast<int>(algorithm)] + (rows == 0 ? "" : " of " + std::to_string(rows) + " rows") +
         (segment_bytes == 0 ? "" : " in segments of " + std::to_string(segment_bytes));
}

namespace {

/// What a rank brings to element `index` in a call. Sums over ranks tell every set of contributions from every other.
element contribution(int rank, std::size_t index, element call) {
  return static_cast<element>(100 * index) + 1'000'003 * call + (element{1} << 3 * rank % 32);
}

/// Sum of all contributions, modulo 2^32.
element total(int ranks, std::size_t index, element call) {
  element of_ranks = 0;
  for (int r = 0; r < ranks; ++r) of_ranks += element{1} << 3 * r % 32;
  return static_cast<element>(ranks) * (static_cast<element>(100 * index) + 1'000'003 * call) + of_ranks;
}

element load(const std::byte* data, std::size_t index) {
  element value;
  std::memcpy(&value, data + index * sizeof value, sizeof value);
  return value;
}

void store(std::byte* data, std::size_t index, element value) {
  std::memcpy(data + index * sizeof value, &value, sizeof value);
}

std::span<element> elements(const guarded_bytes& bytes) {
  return {reinterpret_cast<element*>(bytes.data()), bytes.size() / sizeof(element)};
}

/// One rank's way through the product.
class runner {
 public:
  runner(group_end& end, memory_kind where, std::size_t most)
      : m_end(end),
        m_where(where),
        m_rank(end.rank()),
        m_ranks(end.size()),
        m_ordinary{support::fenced_memory(room(most)), support::fenced_memory(room(most))} {
    if (where != memory_kind::ordinary)
      for (std::span<std::byte>& memory : m_shared) memory = end.allocate(room(most));
  }
  runner(const runner&) = delete;
  runner& operator=(const runner&) = delete;
  ~runner() {
    if (m_where != memory_kind::ordinary && !m_failed)
      for (const std::span<std::byte> memory : m_shared) m_end.deallocate(memory);
  }

  /// All collectives with `count` elements; broadcasts from all roots, or from one, by turns.
  void check(std::size_t count, choice how, extent how_much) {
    m_failed = true;
    for (const bool in_place : {false, true}) {
      all_reduce(count, how, in_place);
      if (!how.scatters()) continue;
      reduce_scatter(count, how, in_place);
      all_gather(count, how, in_place);
    }
    const int some_root = static_cast<int>(m_call % static_cast<element>(m_ranks));
    for (int root = 0; root < m_ranks && how.broadcasts(); ++root)
      if (how_much == extent::whole || root == some_root) broadcast(count, root, how);
    m_failed = false;
  }

 private:
  static std::size_t room(std::size_t count) { return support::room_for(count * sizeof(element), sizeof(element)); }

  void all_reduce(std::size_t count, choice how, bool in_place) {
    const guarded_bytes in = next_buffer(0, count), out = in_place ? in : next_buffer(1, count);
    begin("all_reduce", count, how, in_place);
    out.fill(support::junk_value);
    for (std::size_t i = 0; i < count; ++i) store(in.data(), i, mine(i));
    m_end.all_reduce(elements(in), elements(out), how);
    for (std::size_t i = 0; i < count; ++i) expect(out, i, i, total(m_ranks, i, m_call));
    if (!in_place) expect_untouched(in, {0, count});
    check_guards(in, out);
  }

  void reduce_scatter(std::size_t count, choice how, bool in_place) {
    const toroid::block own = toroid::block_of(count, m_ranks, m_rank);
    const guarded_bytes in = next_buffer(0, count), out = in_place ? in : next_buffer(1, own.count);
    begin("reduce_scatter", count, how, in_place);
    out.fill(support::junk_value);
    for (std::size_t i = 0; i < count; ++i) store(in.data(), i, mine(i));
    m_end.reduce_scatter(elements(in), in_place ? elements(in).subspan(own.begin, own.count) : elements(out), how);
    for (std::size_t i = 0; i < own.count; ++i)
      expect(out, in_place ? own.begin + i : i, own.begin + i, total(m_ranks, own.begin + i, m_call));
    expect_untouched(in, {0, in_place ? own.begin : count});
    if (in_place) expect_untouched(in, {own.end(), count - own.end()});
    check_guards(in, out);
  }

  void all_gather(std::size_t count, choice how, bool in_place) {
    const toroid::block own = toroid::block_of(count, m_ranks, m_rank);
    const guarded_bytes out = next_buffer(1, count), in = in_place ? out : next_buffer(0, own.count);
    begin("all_gather", count, how, in_place);
    out.fill(support::junk_value);
    const std::size_t at = in_place ? own.begin : 0;
    for (std::size_t i = 0; i < own.count; ++i) store(in.data(), at + i, mine(own.begin + i));
    m_end.all_gather(in_place ? elements(out).subspan(own.begin, own.count) : elements(in), elements(out), how);
    for (int r = 0; r < m_ranks; ++r) {
      const toroid::block theirs = toroid::block_of(count, m_ranks, r);
      for (std::size_t i = theirs.begin; i < theirs.end(); ++i) expect(out, i, i, contribution(r, i, m_call));
    }
    if (!in_place)
      for (std::size_t i = 0; i < own.count; ++i) expect(in, i, own.begin + i, mine(own.begin + i));
    check_guards(in, out);
  }

  void broadcast(std::size_t count, int root, choice how) {
    const guarded_bytes buffer = next_buffer(0, count);
    begin("broadcast", count, how, true);
    m_what += ", root " + std::to_string(root);
    buffer.fill(support::junk_value);
    if (m_rank == root)
      for (std::size_t i = 0; i < count; ++i) store(buffer.data(), i, mine(i));
    m_end.broadcast(elements(buffer), root, how);
    for (std::size_t i = 0; i < count; ++i) expect(buffer, i, i, contribution(root, i, m_call));
    check_guards(buffer, buffer);
  }

  void begin(const char* collective, std::size_t count, choice how, bool in_place) {
    m_what = support::joined("rank ", m_rank, " of ", m_ranks, ": ", collective, " of ", count, ", ", how.name(),
                             in_place ? ", in place" : ", out of place", ", call ", m_call);
  }

  element mine(std::size_t index) const { return contribution(m_rank, index, m_call); }

  /// A buffer somewhere else in memory than in the call before, and than on the other ranks.
  guarded_bytes next_buffer(std::size_t which, std::size_t count) {
    if (which == 0 || m_last == which) ++m_call;
    m_last = which;
    const element turn = m_call + static_cast<element>(m_rank) + static_cast<element>(which);
    const placement where = static_cast<placement>(turn % support::placements);
    const std::size_t shift = 1 + (turn * 7 + static_cast<element>(m_rank)) % 15;
    const bool odd_one_out =
        m_call % static_cast<element>(m_ranks) == static_cast<element>(m_rank) && m_call / 8 % 2 == which;
    const bool shared = m_where == memory_kind::shared || (m_where == memory_kind::mixed && !odd_one_out);
    return {shared ? m_shared[which] : m_ordinary[which].bytes(), count * sizeof(element), sizeof(element), where,
            shift};
  }

  void expect(const guarded_bytes& buffer, std::size_t at, std::size_t index, element expected) const {
    const element found = load(buffer.data(), at);
    if (found != expected) fail(index, found, expected);
  }
  void expect_untouched(const guarded_bytes& in, toroid::block range) const {
    for (std::size_t i = range.begin; i < range.end(); ++i) {
      const element found = load(in.data(), i);
      if (found != mine(i)) fail(i, found, mine(i));
    }
  }
  [[noreturn]] void fail(std::size_t index, element found, element expected) const {
    throw support::check_failed(support::joined(m_what, ": element ", index, " is ", found, ", not ", expected));
  }
  void check_guards(const guarded_bytes& in, const guarded_bytes& out) const {
    in.check_guards(m_what + ", input");
    out.check_guards(m_what + ", result");
  }

  group_end& m_end;
  memory_kind m_where;
  int m_rank, m_ranks;
  support::fenced_memory m_ordinary[2];
  std::span<std::byte> m_shared[2];
  element m_call = 0;  ///< the same on all ranks
  std::size_t m_last = 1;
  std::string m_what;
  bool m_failed = false;
};

/// Counts at and beside each length at which something changes: blocks, inline messages, pieces, reuse of regions.
std::vector<std::size_t> edges(group_end& end, const std::vector<choice>& choices, extent how_much) {
  const std::size_t p = static_cast<std::size_t>(end.size());
  const std::size_t longest_inline = toroid::transport::inline_bytes / sizeof(element);
  std::set<std::size_t> counts{0, 1, p - 1, p, p + 1, longest_inline - 1, longest_inline, longest_inline + 1};
  for (const choice& how : choices) {
    const std::size_t piece = end.plan(longest_inline + 1, how).piece_bytes_staged / sizeof(element);
    if (piece == 0) continue;
    using kind = choice::kind;
    const std::size_t blocks = how.algorithm == kind::tree ? 2 : how.algorithm == kind::torus_2d ? 4 * p : p;
    counts.insert({piece - 1, piece, piece + 1});  // of a broadcast
    counts.insert({piece * blocks - 1, piece * blocks, piece * blocks + 1});
    counts.insert(2 * piece * blocks + 1);
    if (how_much == extent::whole) counts.insert((toroid::transport::region_count + 1) * piece * blocks - 1);
  }
  return {counts.begin(), counts.end()};
}

/// A barrier lets nobody out before everybody is in, time and again.
void check_barrier(group_end& end, std::atomic<int>& arrived) {
  support::random_numbers random(static_cast<std::uint64_t>(end.rank()));
  for (int round = 1; round <= 50; ++round) {
    if (random.below(8) == 0) ::usleep(static_cast<useconds_t>(random.below(300)));
    arrived.fetch_add(1);
    end.barrier();
    const int all = end.size() * round;
    const int seen = arrived.load();
    demand(seen >= all, "barrier ", round, " let rank ", end.rank(), " out after ", seen, " of ", all, " arrivals");
    end.barrier();
  }
}

}  // namespace

std::vector<choice> all_choices() {
  using kind = choice::kind;
  return {{kind::automatic, 0}, {kind::direct, 0}, {kind::direct, 256}, {kind::ring, 0}, {kind::ring, 256}};
}

std::vector<choice> many_rank_choices() {
  using kind = choice::kind;
  return {{kind::halving_doubling, 0}, {kind::halving_doubling, 256}, {kind::tree, 0},
          {kind::tree, 256},           {kind::torus_2d, 0},           {kind::torus_2d, 8}};
}

void check(group_end& end, memory_kind where, const std::vector<std::size_t>& counts,
           const std::vector<choice>& choices, extent how_much) {
  runner all(end, where, *std::max_element(counts.begin(), counts.end()));
  for (const std::size_t count : counts)
    for (const choice& how : choices) all.check(count, how, how_much);
}

void check(group_end& end, memory_kind where, extent how_much, const std::vector<choice>& choices) {
  check(end, where, edges(end, choices, how_much), choices, how_much);
}

void check(const launcher& launch, memory_kind where, extent how_much, int ranks, std::vector<choice> choices) {
  // Small regions bring many pieces and the reuse of regions to short vectors.
  constexpr std::size_t least_region = 4096;
  if (how_much == extent::whole)  // segments longer than any piece
    for (std::size_t i = choices.size(); i-- > 0;)
      if (choices[i].segment_bytes != 0) choices.push_back({choices[i].algorithm, 1 << 20});
  const support::shared_by_all<std::atomic<int>> arrived;
  launch(ranks, {.region_bytes = least_region}, [&](group_end& end) {
    check_barrier(end, *arrived);
    check(end, where, how_much, choices);
  });
}

void check(const launcher& launch, memory_kind where, extent how_much) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8}) check(launch, where, how_much, ranks);
  if (how_much != extent::whole) return;
  // Regions and pieces as users get them.
  for (const int ranks : {2, 3, 8}) {
    const std::vector<choice> choices{{choice::kind::automatic, 0}, {choice::kind::ring, 0}};
    launch(ranks, {}, [&](group_end& end) {
      std::vector<std::size_t> counts = edges(end, choices, extent::brief);
      counts.push_back(100'003);
      check(end, where, counts, choices, extent::brief);
    });
  }
}

}  // namespace conformance

TEST_CASE("The inputs of the conformance suite tell which ranks took part", "[conformance]") {
  using conformance::contribution;
  for (int ranks = 1; ranks <= 8; ++ranks) {
    conformance::element sum = 0;
    for (int r = 0; r < ranks; ++r) sum += contribution(r, 12'345, 678);
    CHECK(sum == conformance::total(ranks, 12'345, 678));
    if (ranks > 1) CHECK(sum + contribution(0, 12'345, 678) - contribution(1, 12'345, 678) != sum);
  }
}
