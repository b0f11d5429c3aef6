// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/host_device.hpp>
#include <toroid/core/reduction.hpp>
#include <toroid/schedule/concept.hpp>
#include <toroid/schedule/exchange.hpp>
#include <toroid/schedule/layout.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/transport/mailbox.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace toroid::detail {

/// How operands reach a rank.
enum class path {
  in_place,  ///< peers' inputs are read and their results written where they stand; partial values go through slots
  staged,    ///< everything goes through the senders' hand-over regions
  fetched,   ///< the same, but nobody writes a peer's memory: final values are read where their sender has them
  pulled,  ///< peers' inputs and results are copied by the kernel from where they stand; nobody writes a peer's memory
};

/// What an executor needs to know of a call, the same on host and device.
struct mapped_problem {
  schedule::problem ranks{};
  schedule::layout layout{};
  std::size_t pieces = 1;  ///< as schedule::pieces_of() says
  std::size_t element_size = 1;
  std::uint64_t base = 0;        ///< progress when the call began; base + 1 + t: all before time t is done
  std::size_t touching_end = 0;  ///< time from which nobody touches another's buffers
  bool non_temporal = false;     ///< results are too long to stay in a cache
};

/// Stands for every schedule of plain operations: they share one executor.
struct plain_schedule {};

#if defined(__CUDACC__)
#pragma nv_exec_check_disable
#endif
/// Performs the operations of any schedule where ranks can load and store each other's memory.
///
/// @tparam Path    how operands travel
/// @tparam Policy  who executes: supplies the addresses of buffers and regions as seen here (`own_input`, `own_result`,
///                 `input_of`, `result_of`, `region_of`, all at element 0 of the whole vector), `wait(rank, progress)`,
///                 `publish(progress)`, `sources()` and `destinations()` to note pointers in, and
///                 `combine(arguments, reduces)`; for `pulled` also `pull_input` and `pull_result`
///                 (rank, offset, bytes, where to), which return where the bytes now are;
///                 for schedules on blocks that callers lay out also `outgoing(rank, index)` and `incoming(index)`
/// @tparam Schedule  whose operations; executor_for names it only where the executor has to ask it something
template <path Path, class Policy, class Schedule = plain_schedule>
class mapped_executor {
  static constexpr bool plain = std::is_same_v<Schedule, plain_schedule>;
  /// Whether a block stands at the same place in all regions.
  static constexpr bool one_place = plain || Path == path::pulled;
  /// Whether callers say where blocks stand.
  static constexpr bool maps = schedule::mapping<Schedule>;

 public:
  TOROID_HOST_DEVICE constexpr mapped_executor(Policy& policy, const mapped_problem& problem) noexcept
      : m_policy(policy), m_problem(problem) {}

  TOROID_HOST_DEVICE constexpr void perform(const schedule::operation& op, int step, std::size_t piece,
                                            std::size_t time) {
    const int ranks = m_problem.ranks.ranks;
    const int rank = m_problem.ranks.rank;
    const bool sends_own_input = op.from.count == 1 && op.from.at(0, ranks) == rank;
    if (Path != path::staged && sends_own_input && op.at == schedule::place::input) return;  // read where it stands
    m_policy.note_step(step);
    if constexpr (plain) {
      for (int i = 0; i < op.blocks.count; ++i) perform_block(op, op.blocks.first + i, piece, time);
    } else {
      m_step = step;
      const int blocks = Schedule::blocks(m_problem.ranks);
      for (int i = 0; i < op.blocks.count; ++i) perform_block(op, op.blocks.at(i, blocks), piece, time);
    }
  }

  TOROID_HOST_DEVICE constexpr void finish(std::size_t time) {
    if constexpr (Path != path::in_place) {
      m_policy.publish(done(time + 1));
    } else {
      // In place, peers wait for this rank's slots and deliveries, and at the end for its last touch.
      // A first step that only announces inputs needs no flag: the entry into the call has said it.
      if ((time > 0 || m_sent || m_problem.touching_end == 1) && time < m_problem.touching_end)
        m_policy.publish(done(time + 1));
      m_sent = false;
    }
  }

  /// To be called after the walk: returns once no peer touches this rank's buffers any more.
  TOROID_HOST_DEVICE constexpr void leave() {
    if constexpr (Path != path::staged) {
      for (int r = 0; r < m_problem.ranks.ranks; ++r)
        if (r != m_problem.ranks.rank) m_policy.wait(r, done(m_problem.touching_end));
    }
  }

 private:
  TOROID_HOST_DEVICE constexpr std::uint64_t done(std::size_t time) const noexcept { return m_problem.base + 1 + time; }

  TOROID_HOST_DEVICE constexpr void perform_block(const schedule::operation& op, int block_index, std::size_t piece,
                                                  std::size_t time) {
    using schedule::place;
    const int ranks = m_problem.ranks.ranks;
    const int rank = m_problem.ranks.rank;
    const block range = piece_of(op, block_index, piece);
    const std::size_t size = m_problem.element_size;
    const std::size_t offset = range.begin * size;
    if constexpr (maps)
      if (range.count == 0) return;  // nobody waits for what is not there
    const std::size_t in_region = region_offset(block_index, 0) * size;
    // What is read now was sent in the step before, and may have stood elsewhere in a slot.
    const auto in_region_before = [&] { return one_place ? in_region : region_offset(block_index, 1) * size; };

    const std::byte** const sources = m_policy.sources();
    bool already_here = false;  // the own result has it: nothing to move there
    for (int i = 0; i < op.from.count; ++i) {
      const int from = op.from.at(i, ranks);
      if (from == rank) {
        if (plain || op.own == place::input)
          sources[i] = at(m_policy.own_input(), offset + outgoing_offset(rank, block_index));
        else if (op.own == place::delivered)
          sources[i] = at(m_policy.own_result(), offset);
        else
          sources[i] = m_policy.region_of(rank, region_before(time)) + in_region_before();
        continue;
      }
      if constexpr (Path == path::in_place) {
        if (op.theirs == place::input) {
          sources[i] = at(m_policy.input_of(from), offset + outgoing_offset(from, block_index));
          continue;
        }
        if (op.theirs == place::delivered) {
          m_policy.wait(from, done(time));
          sources[i] = at(m_policy.own_result(), offset);
          already_here = true;
          continue;
        }
      }
      if constexpr (Path == path::fetched) {
        if (op.theirs == place::input) {
          sources[i] = at(m_policy.input_of(from), offset);
          continue;
        }
        if (op.theirs == place::delivered) {
          m_policy.wait(from, done(time));
          sources[i] = at(m_policy.result_of(from), offset);
          continue;
        }
      }
      if constexpr (Path == path::pulled) {
        std::byte* const own = at(m_policy.own_result(), offset + incoming_offset(block_index));
        if (op.theirs == place::input) {
          already_here = !op.reduces();  // nothing to combine it with: straight to where it belongs
          const std::size_t room = m_problem.layout.piece * size;  // for one operand of a piece
          std::byte* const beside = m_policy.region_of(rank, region_at(time)) + static_cast<std::size_t>(i) * room;
          sources[i] = m_policy.pull_input(from, offset + outgoing_offset(from, block_index), range.count * size,
                                           already_here ? own : beside);
          continue;
        }
        if (op.theirs == place::delivered) {
          m_policy.wait(from, done(time));
          sources[i] = m_policy.pull_result(from, offset, range.count * size, own);
          already_here = true;
          continue;
        }
      }
      m_policy.wait(from, done(time));
      sources[i] = m_policy.region_of(from, region_before(time)) + in_region_before();
    }

    std::byte** const destinations = m_policy.destinations();
    int destination_count = 0;
    bool to_slot = false, peers_read_slot = false;
    for (int i = 0; i < op.to.count; ++i) {
      const int to = op.to.at(i, ranks);
      if (to == rank) {
        if (!plain && op.at == place::slot)
          to_slot = true;
        else if (!already_here)
          destinations[destination_count++] = at(m_policy.own_result(), offset + incoming_offset(block_index));
      } else if (Path == path::in_place && op.at == place::delivered) {
        destinations[destination_count++] = at(m_policy.result_of(to), offset);
        m_sent = true;
      } else if ((Path == path::pulled || Path == path::fetched) && op.at == place::delivered) {
        // They will fetch it from the own result.
      } else {
        to_slot = peers_read_slot = true;  // one slot, however many readers
      }
    }
    if (to_slot) {
      wait_for_slot(time);
      destinations[destination_count++] = m_policy.region_of(rank, region_at(time)) + in_region;
      m_sent = true;
    }
    if (destination_count == 0 || range.count == 0) return;
    if constexpr (maps)  // a block in place stays as it is: peers may be reading it
      if (!op.reduces() && destinations[0] == sources[0]) return;

    reduce_arguments arguments;
    arguments.sources = sources;
    arguments.source_count = op.from.count;
    arguments.destinations = destinations;
    arguments.destination_count = destination_count;
    arguments.count = range.count;
    arguments.finish = op.completes;
    arguments.divisor = ranks;
    arguments.non_temporal = m_problem.non_temporal && !to_slot;
    if constexpr (!plain)  // what will be an operand is read again soon
      arguments.non_temporal = arguments.non_temporal && (op.completes || !op.reduces());
    arguments.hands_over = plain ? to_slot : peers_read_slot;
    m_policy.combine(arguments, op.reduces());
  }

  TOROID_HOST_DEVICE constexpr block piece_of([[maybe_unused]] const schedule::operation& op, int block_index,
                                              std::size_t piece) const noexcept {
    if constexpr (maps) {
      const std::size_t count =
          (op.at == schedule::place::delivered ? incoming(block_index) : outgoing(m_problem.ranks.rank, block_index))
              .count;
      return m_problem.layout.piece_within(count, piece);
    } else if constexpr (plain)
      return m_problem.layout.piece_of(block_index, piece);
    else
      return schedule::piece_at<Schedule>(m_problem.ranks, m_problem.layout, m_problem.pieces, block_index, piece);
  }
  TOROID_HOST_DEVICE constexpr block outgoing(int rank, int block_index) const noexcept {
    return m_policy.outgoing(rank, Schedule::outgoing_index(m_problem.ranks, block_index));
  }
  TOROID_HOST_DEVICE constexpr block incoming(int block_index) const noexcept {
    return m_policy.incoming(Schedule::incoming_index(m_problem.ranks, block_index));
  }
  /// Bytes from the start of a buffer to a block that its owner has put somewhere.
  TOROID_HOST_DEVICE constexpr std::size_t outgoing_offset([[maybe_unused]] int rank,
                                                           [[maybe_unused]] int block_index) const noexcept {
    if constexpr (maps)
      return outgoing(rank, block_index).begin * m_problem.element_size;
    else
      return 0;
  }
  TOROID_HOST_DEVICE constexpr std::size_t incoming_offset([[maybe_unused]] int block_index) const noexcept {
    if constexpr (maps)
      return incoming(block_index).begin * m_problem.element_size;
    else
      return 0;
  }
  TOROID_HOST_DEVICE constexpr std::size_t region_offset(int block_index,
                                                         [[maybe_unused]] int steps_ago) const noexcept {
    if constexpr (one_place)
      return m_problem.layout.region_offset(block_index);
    else
      return static_cast<std::size_t>(
                 schedule::slot_place<Schedule>(m_problem.ranks, m_step - steps_ago, block_index)) *
             m_problem.layout.piece;
  }

  /// Offsets count from element 0 of the whole vector, and a buffer may hold one block of it, or nothing: until both
  /// are added up there need not be an object.
  template <class Byte>
  TOROID_HOST_DEVICE static Byte* at(Byte* element_0, std::size_t offset) noexcept {
    return reinterpret_cast<Byte*>(reinterpret_cast<std::uintptr_t>(element_0) + offset);
  }

  /// The region of time t was last used at t - region_count and read a step later: all must be past that.
  TOROID_HOST_DEVICE constexpr void wait_for_slot(std::size_t time) {
    constexpr std::size_t ahead = transport::region_count - 2;
    if (time < transport::region_count) return;  // regions are free when a call begins
    for (int r = 0; r < m_problem.ranks.ranks; ++r)
      if (r != m_problem.ranks.rank) m_policy.wait(r, done(time - ahead));
  }

  TOROID_HOST_DEVICE static constexpr int region_at(std::size_t time) noexcept {
    return static_cast<int>(time % transport::region_count);
  }

  /// The region of the time before.
  TOROID_HOST_DEVICE static constexpr int region_before(std::size_t time) noexcept {
    return region_at(time + transport::region_count - 1);
  }

  Policy& m_policy;
  const mapped_problem& m_problem;
  bool m_sent = false;
  [[maybe_unused]] int m_step = 0;
};

/// The executor of a schedule.
template <path Path, class Policy, class Schedule>
using executor_for =
    mapped_executor<Path, Policy,
                    std::conditional_t<schedule::has_plain_operations<Schedule>(), plain_schedule, Schedule>>;

}  // namespace toroid::detail
