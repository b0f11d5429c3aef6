// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/collective_call.hpp>
#include <toroid/collective/detail/exchange_call.hpp>
#include <toroid/communicator/message_session.hpp>
#include <toroid/core/reduction.hpp>
#include <toroid/schedule/exchange.hpp>
#include <toroid/schedule/layout.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/schedule/walk.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace toroid::detail {

/// Performs the operations of any schedule where ranks can only send each other messages: each block of each operation
/// that a peer needs is one message, received a time later.
///
/// Receives are begun one time before their messages are sent, so that these find the place where they belong: the rank
/// that is furthest behind can always go on, however little the transport keeps for itself. Two times' worth of
/// messages are under way at most. Callers' buffers are never a transport's: what is sent is copied, or computed, into
/// a buffer of the session; what has come is combined where it lies, and sent on from there.
template <class Schedule, class Transport>
class message_executor {
 public:
  message_executor(message_session<Transport>& session, const collective_call& call, const schedule::problem& p,
                   const schedule::layout& layout)
      : m_session(session),
        m_call(call),
        m_problem(p),
        m_layout(layout),
        m_pieces(count_pieces()),
        m_length(schedule::walk_length<Schedule>(p, m_pieces)),
        m_blocks(Schedule::blocks(p)) {
    expect(1);
  }

  std::size_t pieces() const noexcept { return m_pieces; }

  void perform(const schedule::operation& op, int step, std::size_t piece, std::size_t time) {
    m_session.context().step = step;
    const bool empty_too = empty_messages();
    for (int i = 0; i < op.blocks.count; ++i) {
      const int block_index = op.blocks.at(i, m_blocks);
      const block range = piece_of(op, block_index, piece);
      if (range.count != 0 || empty_too) perform_block(op, block_index, range, step, time);
    }
  }

  /// What was sent a time before has found its receives by now, or soon.
  void finish(std::size_t time) {
    complete_sends(time + 1);
    for (const kept_value& k : m_kept[(time + 1) & 1]) m_session.release(*k.where);
    m_kept[(time + 1) & 1].clear();
    m_expected[time & 1].clear();
    m_next = 0;
    expect(time + 2);
  }

  /// To be called after the walk: returns once all that this rank has sent is on its way without its doing.
  void leave() {
    complete_sends(0);
    complete_sends(1);
    for (auto& values : m_kept)
      for (const kept_value& k : values) m_session.release(*k.where);
  }

  // Whether perform(), finish() and leave() would not have to wait; if they would, for which rank.
  bool can_perform(const schedule::operation& op, std::size_t piece, std::size_t time, int& missing) {
    std::size_t next = m_next;
    for (int i = 0; i < op.blocks.count; ++i) {
      const block range = schedule::piece_at<Schedule>(m_problem, m_layout, m_pieces, op.blocks.at(i, m_blocks), piece);
      if (range.count == 0 && m_call.identity.count != 0) continue;
      for (int f = 0; f < op.from.count; ++f) {
        if (op.from.at(f, m_problem.ranks) == m_problem.rank) continue;
        const expected_message& message = m_expected[time & 1][next++];
        if (m_session.test(*message.where)) continue;
        missing = message.from;
        return false;
      }
    }
    return true;
  }
  bool can_finish(std::size_t time, int& missing) {
    for (const sent_message& s : m_sent[(time + 1) & 1]) {
      if (m_session.test(*s.where)) continue;
      missing = s.to;
      return false;
    }
    return true;
  }
  bool can_leave(int& missing) { return can_finish(0, missing) && can_finish(1, missing); }

 private:
  using buffer = typename message_session<Transport>::buffer;
  struct expected_message {
    buffer* where;
    int from;
  };
  struct sent_message {
    buffer* where;
    int to;  ///< one of them
  };
  struct kept_value {
    buffer* where;
    std::size_t key;
  };

  static constexpr bool maps = schedule::mapping<Schedule>;
  const exchange_call& exchange() const noexcept { return static_cast<const exchange_call&>(m_call); }

  /// Of blocks that callers lay out a rank knows its own only, and so only how long it is busy itself.
  std::size_t count_pieces() const noexcept {
    if constexpr (maps) {
      const std::size_t longest = exchange().longest();
      return longest == 0 ? 1 : (longest + m_layout.piece - 1) / m_layout.piece;
    } else {
      return schedule::pieces_of<Schedule>(m_problem, m_layout);
    }
  }
  /// Whether ranks send each other messages without content, so that a call without elements is one too.
  bool empty_messages() const noexcept { return !maps && m_call.identity.count == 0; }

  block piece_of(const schedule::operation& op, int block_index, std::size_t piece) const noexcept {
    if constexpr (maps)
      return m_layout.piece_within(
          (op.at == schedule::place::delivered ? incoming(block_index) : outgoing(block_index)).count, piece);
    else
      return schedule::piece_at<Schedule>(m_problem, m_layout, m_pieces, block_index, piece);
  }
  block outgoing(int block_index) const noexcept {
    return exchange().outgoing[static_cast<std::size_t>(Schedule::outgoing_index(m_problem, block_index))];
  }
  block incoming(int block_index) const noexcept {
    return exchange().incoming[static_cast<std::size_t>(Schedule::incoming_index(m_problem, block_index))];
  }
  block in_input(int block_index, block range) const noexcept {
    if constexpr (maps) range.begin += outgoing(block_index).begin;
    return range;
  }
  block in_result(int block_index, block range) const noexcept {
    if constexpr (maps) range.begin += incoming(block_index).begin;
    return range;
  }

  /// Tells the messages of one time apart; in a pipeline those of several steps meet.
  std::size_t key_of(int step, int block_index) const noexcept {
    const std::size_t base =
        Schedule::pipelined ? static_cast<std::size_t>(step) * static_cast<std::size_t>(m_blocks) : 0;
    return base + static_cast<std::size_t>(block_index);
  }

  /// Begins to receive what will be needed at a time, in the order in which it will be.
  void expect(std::size_t time) {
    if (time >= m_length) return;
    const std::size_t steps = static_cast<std::size_t>(Schedule::steps(m_problem));
    if constexpr (Schedule::pipelined) {
      const std::size_t newest = time < m_pieces ? 0 : time - m_pieces + 1;
      for (std::size_t step = newest; step < steps && step <= time; ++step)
        expect(static_cast<int>(step), time - step, time);
    } else {
      expect(static_cast<int>(time % steps), time / steps, time);
    }
  }
  void expect(int step, std::size_t piece, std::size_t time) {
    const std::size_t size = m_call.identity.element_size;
    const int operations = Schedule::operations(m_problem, step);
    const bool empty_too = empty_messages();
    for (int o = 0; o < operations; ++o) {
      const schedule::operation op = Schedule::at(m_problem, step, o);
      for (int i = 0; i < op.blocks.count; ++i) {
        const int block_index = op.blocks.at(i, m_blocks);
        const block range = piece_of(op, block_index, piece);
        if (range.count == 0 && !empty_too) continue;
        for (int f = 0; f < op.from.count; ++f) {
          const int from = op.from.at(f, m_problem.ranks);
          if (from == m_problem.rank) continue;
          m_expected[time & 1].push_back(
              {&m_session.receive(from, key_of(step - 1, block_index), range.count * size), from});
        }
      }
    }
  }

  void perform_block(const schedule::operation& op, int block_index, block range, int step, std::size_t time) {
    using schedule::place;
    const int ranks = m_problem.ranks, rank = m_problem.rank;
    const std::size_t bytes = range.count * m_call.identity.element_size;
    const std::byte** const sources = m_session.sources();
    const std::size_t first_received = m_next;
    buffer* received = nullptr;  // the last one
    for (int i = 0; i < op.from.count; ++i) {
      if (op.from.at(i, ranks) != rank) {
        const expected_message& message = m_expected[time & 1][m_next++];
        m_session.complete(*message.where, message.from);
        received = message.where;
        sources[i] = received->memory.get();
      } else if (op.own == place::input) {
        sources[i] = own_input(in_input(block_index, range));
      } else if (op.own == place::delivered) {
        sources[i] = own_result(in_result(block_index, range));
      } else {
        sources[i] = kept(time + 1, key_of(step - 1, block_index));
      }
    }

    int receivers = 0;
    bool to_result = false, to_slot = false;
    for (int i = 0; i < op.to.count; ++i) {
      if (op.to.at(i, ranks) != rank)
        ++receivers;
      else if (op.at == place::slot)
        to_slot = true;
      else
        to_result = true;
    }
    const bool passes_on = !op.reduces() && received != nullptr;  // what came can be sent, or kept, as it is
    std::byte* destinations[2];
    int destination_count = 0;
    if (to_result) destinations[destination_count++] = own_result(in_result(block_index, range));
    buffer* outgoing = nullptr;
    if (receivers > 0 || to_slot) {
      outgoing = passes_on ? received : &m_session.take_buffer(bytes);
      if (passes_on)
        m_session.hold(*received);
      else
        destinations[destination_count++] = outgoing->memory.get();
    }
    if (destination_count > 0 && range.count > 0) combine(op, destinations, destination_count, range.count);
    for (std::size_t m = first_received; m < m_next; ++m) m_session.release(*m_expected[time & 1][m].where);

    if (outgoing == nullptr) return;
    if (to_slot) {
      m_session.hold(*outgoing);
      m_kept[time & 1].push_back({outgoing, key_of(step, block_index)});
    }
    int last = rank;
    for (int i = 0; i < op.to.count; ++i) {
      const int to = op.to.at(i, ranks);
      if (to != rank) m_session.send(last = to, key_of(step, block_index), *outgoing, bytes);
    }
    m_sent[time & 1].push_back({outgoing, last});
  }

  void combine(const schedule::operation& op, std::byte** destinations, int destination_count, std::size_t count) {
    const std::size_t bytes = count * m_call.identity.element_size;
    reduce_arguments arguments;
    arguments.sources = m_session.sources();
    arguments.source_count = op.from.count;
    arguments.destinations = destinations;
    arguments.destination_count = destination_count;
    arguments.count = op.reduces() ? count : bytes;
    arguments.finish = op.completes;
    arguments.divisor = m_problem.ranks;
    arguments.functor = m_call.functor;
    if (op.reduces())
      m_call.reduce(arguments);
    else
      m_call.copy(arguments);
    m_session.context().bytes_done += bytes;
  }

  const std::byte* kept(std::size_t time, std::size_t key) const noexcept {
    for (const kept_value& k : m_kept[time & 1])
      if (k.key == key) return k.where->memory.get();
    return nullptr;  // no schedule that verify() has passed
  }

  void complete_sends(std::size_t time) {
    for (const sent_message& s : m_sent[time & 1]) {
      m_session.complete(*s.where, s.to);
      m_session.release(*s.where);
    }
    m_sent[time & 1].clear();
  }

  /// Buffers may hold one block of the vector only: the place is worked out as a number, since no object need be there.
  const std::byte* own_input(block range) const noexcept {
    const std::size_t origin = m_call.input_origin(m_problem.ranks, m_problem.rank);
    return reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(m_call.input) +
                                              (range.begin - origin) * m_call.identity.element_size);
  }
  std::byte* own_result(block range) const noexcept {
    const std::size_t origin = m_call.result_origin(m_problem.ranks, m_problem.rank);
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(m_call.result) +
                                        (range.begin - origin) * m_call.identity.element_size);
  }

  message_session<Transport>& m_session;
  const collective_call& m_call;
  schedule::problem m_problem;
  schedule::layout m_layout;
  std::size_t m_pieces, m_length;
  int m_blocks;
  // By even and odd times.
  std::vector<expected_message> m_expected[2];
  std::vector<sent_message> m_sent[2];
  std::vector<kept_value> m_kept[2];
  std::size_t m_next = 0;  ///< the first message of this time that has not been waited for
};

}  // namespace toroid::detail
