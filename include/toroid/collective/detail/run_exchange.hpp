// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/exchange_call.hpp>
#include <toroid/collective/detail/host_thread.hpp>
#include <toroid/collective/detail/mapped_executor.hpp>
#include <toroid/collective/detail/run_mapped.hpp>
#include <toroid/communicator/mapped_session.hpp>
#include <toroid/core/error.hpp>
#include <toroid/schedule/exchange.hpp>
#include <toroid/schedule/walk.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace toroid::detail {

/// Exchanges blocks that callers lay out over a mapped transport.
///
/// Each rank's entry says where its blocks stand; so every rank learns the longest of all, which settles the number of
/// pieces, sees where to read in a peer's input, and finds out if a peer sends more or less than it expects.
template <class Schedule, class Transport>
class mapped_exchange {
 public:
  mapped_exchange(mapped_session<Transport>& session, const exchange_call& call)
      : m_session(session),
        m_call(call),
        m_problem{session.transport().rank(), session.transport().size(), call.identity.root},
        m_size(call.identity.element_size),
        m_staged(layout_for<Schedule>(path::staged, m_problem, 0, m_size, call.identity.segment_bytes,
                                      session.transport().region_bytes())) {
    if (m_problem.ranks > exchange_entry::most_ranks)
      throw usage_error(std::string("toroid: ") + name_of(call.identity.collective) + " serves at most " +
                        std::to_string(exchange_entry::most_ranks) + " ranks that share memory");
  }

  void run() {
    const auto mark = m_session.begin(m_call.identity);
    inspect();
    m_session.guarded([&] { enter(); });
    m_session.refuse_flaws(m_call.identity);
    m_session.guarded([&] { move(); });
  }

 private:
  using ways = transport::buffer_addresses;

  void inspect() {
    m_session.inspect(nullptr, 0, nullptr);
    for (const block& b : m_call.outgoing)
      if (m_session.inspect_part(m_call.input, b, m_size, m_call.first_flaw)) return;
  }

  void enter() {
    Transport& transport = m_session.transport();
    const auto reachable = [&](const std::byte* memory, const std::vector<block>& blocks) {
      std::size_t end = 0;
      for (const block& b : blocks)
        if (b.count != 0 && b.end() > end) end = b.end();
      return end == 0 || transport.reachable(memory, end * m_size);
    };
    if (reachable(m_call.input, m_call.outgoing) && reachable(m_call.result, m_call.incoming))
      m_agreed |= ways::reachable;
    if constexpr (pulling_transport<Transport>)
      if (m_problem.ranks > 1 && transport.can_pull()) m_agreed |= ways::can_pull;
    const exchange_entry mine(m_session.own_entry());
    const std::size_t table = m_call.outgoing.size();
    if (!reduces() && exchange_entry::fit(table, m_call.outgoing_elements() * m_size)) {
      m_agreed |= exchange_entry::has_blocks;
      std::byte* to = mine.blocks(table);
      for (const block& b : m_call.outgoing) {
        if (b.count == 0) continue;
        std::memcpy(to, m_call.input + b.begin * m_size, b.count * m_size);
        to += b.count * m_size;
      }
    }
    m_session.own_entry().buffers = {transport.address_of(m_call.input), transport.address_of(m_call.result),
                                     reinterpret_cast<std::uintptr_t>(m_call.input),
                                     reinterpret_cast<std::uintptr_t>(m_call.result), m_agreed};
    mine.write(m_call);
    m_longest = m_call.longest();
    if ((m_agreed & ways::reachable) != 0) m_session.lends_buffers();
    m_session.publish_entry();
    for (int r = 0; r < m_problem.ranks; ++r) {
      if (r == m_problem.rank) continue;
      transport::entry& theirs = m_session.wait_for_entry(r, m_call.identity);
      m_agreed &= theirs.buffers.ways;
      if (exchange_entry(theirs).longest() > m_longest) m_longest = exchange_entry(theirs).longest();
      check_counts(r, exchange_entry(theirs));
    }
    m_session.all_have_entered();
  }

  /// Whatever the checking: with another length there would be reads beyond the end of a buffer.
  void check_counts(int from, const exchange_entry& theirs) {
    for_each_from(from, [&](int block_index) {
      const block sent = theirs.outgoing(Schedule::outgoing_index(m_problem, block_index));
      const block expected = incoming(block_index);
      if (sent.count != expected.count) [[unlikely]]
        m_session.refuse_counts(from, m_call.identity, sent.count, expected.count);
    });
  }

  /// Calls visit(block) for each block that this rank gets from another.
  template <class Visit>
  void for_each_from(int from, Visit visit) const {
    for (int o = 0; o < Schedule::operations(m_problem, 1); ++o) {
      const schedule::operation op = Schedule::at(m_problem, 1, o);
      if (op.from.contains(from, m_problem.ranks)) visit(op.blocks.first);
    }
  }
  static constexpr bool reduces() noexcept { return Schedule::at(schedule::problem{0, 2}, 1, 0).reduces(); }
  block incoming(int block_index) const noexcept {
    return m_call.incoming[static_cast<std::size_t>(Schedule::incoming_index(m_problem, block_index))];
  }

  void move() {
    if ((m_agreed & exchange_entry::has_blocks) != 0) return take_from_entries();
    schedule::layout whole = m_staged;
    const std::size_t segment = m_call.identity.segment_bytes / m_size;
    whole.piece = segment != 0 ? segment : m_longest != 0 ? m_longest : 1;
    if ((m_agreed & ways::reachable) != 0) return walk<path::in_place>(whole);
    if constexpr (pulling_transport<Transport>) {
      if ((m_agreed & ways::can_pull) != 0 && m_longest * m_size >= least_pulled_bytes) {
        // What is combined has to be fetched into regions.
        return walk<path::pulled>(reduces() ? m_staged : whole);
      }
    }
    walk<path::staged>(m_staged);
  }

  void take_from_entries() {
    for (int r = 0; r < m_problem.ranks; ++r) {
      for_each_from(r, [&](int block_index) {
        const block to = incoming(block_index);
        if (to.count == 0) return;
        std::byte* const where = m_call.result + to.begin * m_size;
        if (r == m_problem.rank) {
          const block own = m_call.outgoing[static_cast<std::size_t>(Schedule::outgoing_index(m_problem, block_index))];
          std::memmove(where, m_call.input + own.begin * m_size, own.count * m_size);
          return;
        }
        const exchange_entry theirs(m_session.entry_of(r));
        const int index = Schedule::outgoing_index(m_problem, block_index);
        std::size_t before = 0;
        for (int i = 0; i < index; ++i) before += theirs.outgoing(i).count;
        std::memcpy(where, theirs.blocks(m_call.outgoing.size()) + before * m_size, to.count * m_size);
      });
    }
    m_session.context().bytes_done += m_call.outgoing_elements() * m_size;
  }

  template <path Path>
  void walk(const schedule::layout& layout) {
    const std::size_t pieces = m_longest == 0 ? 1 : (m_longest + layout.piece - 1) / layout.piece;
    const std::size_t length = schedule::walk_length<Schedule>(m_problem, pieces);
    mapped_problem problem;
    problem.ranks = m_problem;
    problem.layout = layout;
    problem.pieces = pieces;
    problem.element_size = m_size;
    problem.base = m_session.base();
    problem.touching_end = Path == path::in_place ? schedule::touching_length<Schedule>(m_problem, pieces) : length;
    problem.non_temporal = m_longest * m_size >= m_session.non_temporal_bytes();
    m_session.advance(length + 1);
    m_session.touching_ends_at(problem.base + 1 + problem.touching_end);
    host_thread<Transport> policy(m_session, m_call);
    executor_for<Path, host_thread<Transport>, Schedule> executor(policy, problem);
    schedule::walk<Schedule>(m_problem, pieces, executor);
    executor.leave();
  }

  mapped_session<Transport>& m_session;
  const exchange_call& m_call;
  schedule::problem m_problem;
  std::size_t m_size;
  schedule::layout m_staged;
  std::uint64_t m_agreed = 0;  ///< ways that all ranks can go
  std::size_t m_longest = 0;   ///< block of all
};

template <class Schedule, class Transport>
void run_exchange(mapped_session<Transport>& session, const exchange_call& call) {
  mapped_exchange<Schedule, Transport>(session, call).run();
}

}  // namespace toroid::detail
