// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/collective_call.hpp>
#include <toroid/communicator/mapped_session.hpp>
#include <toroid/schedule/operation.hpp>

#include <cstddef>
#include <cstring>

namespace toroid::detail {

/// Performs two-step schedules on messages so short that they travel beside the flag that announces them: the entry
/// into the call is the message, and there is no other synchronisation.
///
/// Source of the idea: payload beside the flag as in Open MPI's XHC and NCCL's low-latency protocol; here one line
/// serves all readers.
template <class Transport>
class inline_executor {
 public:
  inline_executor(mapped_session<Transport>& session, const collective_call& call, int blocks) noexcept
      : m_session(session),
        m_call(call),
        m_rank(session.transport().rank()),
        m_ranks(session.transport().size()),
        m_blocks(blocks) {}

  void perform(const schedule::operation& op, int step, std::size_t, std::size_t) {
    const block range = block_of(m_call.identity.count, m_blocks, op.blocks.first);
    const std::size_t size = m_call.identity.element_size;
    if (step == 0) {
      if (range.count == 0) return;  // there may be no buffer at all
      const std::byte* const own = input(range);
      copy_payload(m_session.own_entry().payload + range.begin * size, own, range.count * size);
      if (op.to.contains(m_rank, m_ranks)) std::memmove(result(range), own, range.count * size);
      return;
    }
    const std::byte** const sources = m_session.sources();
    for (int i = 0; i < op.from.count; ++i) {
      const int from = op.from.at(i, m_ranks);
      if (from == m_rank) {
        sources[i] = input(range);
      } else {
        sources[i] = m_session.wait_for_entry(from, m_call.identity).payload + range.begin * size;
        ++m_heard;
      }
    }
    std::byte* const destination = result(range);
    reduce_arguments arguments;
    arguments.sources = sources;
    arguments.source_count = op.from.count;
    arguments.destinations = &destination;
    arguments.destination_count = 1;
    arguments.count = range.count;
    arguments.functor = m_call.functor;
    if (op.reduces()) {
      arguments.finish = op.completes;
      arguments.divisor = m_ranks;
      m_call.reduce(arguments);
    } else {
      arguments.count *= size;
      m_call.copy(arguments);
    }
  }

  void finish(std::size_t time) {
    if (time == 0)
      m_session.publish_entry();
    else if (m_heard == m_ranks - 1)
      m_session.all_have_entered();
  }

 private:
  /// Most are so short that a call of a function would cost more than the copy.
  static void copy_payload(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    if (bytes == 4)
      std::memcpy(to, from, 4);
    else if (bytes == 8)
      std::memcpy(to, from, 8);
    else
      std::memcpy(to, from, bytes);
  }

  const std::byte* input(block range) const noexcept {
    return m_call.input + (range.begin - m_call.input_origin(m_ranks, m_rank)) * m_call.identity.element_size;
  }
  std::byte* result(block range) const noexcept {
    return m_call.result + (range.begin - m_call.result_origin(m_ranks, m_rank)) * m_call.identity.element_size;
  }

  mapped_session<Transport>& m_session;
  const collective_call& m_call;
  int m_rank, m_ranks, m_blocks;
  int m_heard = 0;  ///< peers whose entry has been waited for
};

}  // namespace toroid::detail
