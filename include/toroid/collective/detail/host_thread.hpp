// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/collective_call.hpp>
#include <toroid/collective/detail/exchange_call.hpp>
#include <toroid/communicator/mapped_session.hpp>
#include <toroid/core/detail/string_copy.hpp>
#include <toroid/core/reduction.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace toroid::detail {

/// Executes a schedule in the calling thread: the host's policy for mapped_executor.
template <class Transport>
class host_thread {
 public:
  host_thread(mapped_session<Transport>& session, const collective_call& call) noexcept
      : m_session(session), m_call(call), m_ranks(session.transport().size()), m_rank(session.transport().rank()) {}

  const std::byte* own_input() const noexcept { return before(m_call.input, m_call.input_origin(m_ranks, m_rank)); }
  std::byte* own_result() const noexcept { return before(m_call.result, m_call.result_origin(m_ranks, m_rank)); }
  const std::byte* input_of(int rank) const noexcept {
    const std::uint64_t address = m_session.entry_of(rank).buffers.input;
    return before(m_session.transport().resolve(rank, address), m_call.input_origin(m_ranks, rank));
  }
  std::byte* result_of(int rank) const noexcept {
    const std::uint64_t address = m_session.entry_of(rank).buffers.result;
    return before(m_session.transport().resolve(rank, address), m_call.result_origin(m_ranks, rank));
  }
  /// Of an exchange: where a block stands in a rank's input, and in the own result.
  block outgoing(int rank, int index) const noexcept {
    const exchange_call& call = static_cast<const exchange_call&>(m_call);
    return rank == m_rank ? call.outgoing[static_cast<std::size_t>(index)]
                          : exchange_entry(m_session.entry_of(rank)).outgoing(index);
  }
  block incoming(int index) const noexcept {
    return static_cast<const exchange_call&>(m_call).incoming[static_cast<std::size_t>(index)];
  }
  std::byte* region_of(int rank, int index) const noexcept { return m_session.transport().region(rank, index); }
  const std::byte* pull_input(int rank, std::size_t offset, std::size_t bytes, std::byte* to) const {
    return pull(rank, m_session.entry_of(rank).buffers.own_input, m_call.input_origin(m_ranks, rank), offset, bytes,
                to);
  }
  const std::byte* pull_result(int rank, std::size_t offset, std::size_t bytes, std::byte* to) const {
    return pull(rank, m_session.entry_of(rank).buffers.own_result, m_call.result_origin(m_ranks, rank), offset, bytes,
                to);
  }
  const std::byte** sources() const noexcept { return m_session.sources(); }
  std::byte** destinations() const noexcept { return m_session.destinations(); }

  void wait(int rank, std::uint64_t progress) {
    m_session.transport().wait(rank, m_session.transport().box(rank).progress, progress, m_session.context());
  }
  void publish(std::uint64_t progress) {
    transport::mailbox& mine = m_session.transport().box(m_rank);
    m_session.transport().signal(mine.progress, progress);
  }
  void note_step(int step) noexcept { m_session.context().step = step; }

  void combine(reduce_arguments& arguments, bool reduces) {
    arguments.functor = m_call.functor;
    const std::size_t bytes = arguments.count * m_call.identity.element_size;
    if (arguments.hands_over && bytes >= least_string_bytes && m_session.has_fast_strings())
      hand_over(arguments, reduces);
    else
      compute(arguments, reduces);
    m_session.context().bytes_done += bytes;
  }

 private:
  void compute(reduce_arguments& arguments, bool reduces) const {
    if (reduces) return m_call.reduce(arguments);
    arguments.count *= m_call.identity.element_size;
    m_call.copy(arguments);
  }

  /// Computes run by run in memory of its own, and copies each to the slot while it is in the nearest cache.
  void hand_over(reduce_arguments& arguments, bool reduces) {
    const std::size_t size = m_call.identity.element_size, count = arguments.count;
    std::byte** const destinations = m_session.destinations();
    std::byte* const slot = destinations[arguments.destination_count - 1];
    --arguments.destination_count;
    arguments.hands_over = false;
    if (!reduces) {
      const std::byte* const source = arguments.sources[0];
      if (arguments.destination_count > 0) compute(arguments, false);
      return copy_by_string(slot, source, count * size, true);
    }
    const std::span<std::byte> scratch = m_session.scratch();
    const std::size_t run = size < scratch.size() ? scratch.size() / size : 0;
    if (run == 0) {
      ++arguments.destination_count;
      return compute(arguments, true);
    }
    const int kept = arguments.destination_count;
    if (kept == 0) {
      destinations[0] = scratch.data();
      arguments.destination_count = 1;
    }
    for (std::size_t done = 0; done < count; done += run) {
      arguments.count = count - done < run ? count - done : run;
      m_call.reduce(arguments);
      copy_by_string(slot + done * size, destinations[0], arguments.count * size, true);
      for (int i = 0; i < arguments.source_count; ++i) m_session.sources()[i] += arguments.count * size;
      for (int i = 0; i < kept; ++i) destinations[i] += arguments.count * size;
    }
  }

  /// The address that element 0 of the vector would have, for a buffer that begins with element `origin`; computed as
  /// a number, since no object need be there.
  template <class Byte>
  Byte* before(Byte* first, std::size_t origin) const noexcept {
    return reinterpret_cast<Byte*>(reinterpret_cast<std::uintptr_t>(first) - origin * m_call.identity.element_size);
  }

  const std::byte* pull(int rank, std::uint64_t buffer, std::size_t origin, std::size_t offset, std::size_t bytes,
                        std::byte* to) const {
    if constexpr (pulling_transport<Transport>)
      m_session.transport().pull(rank, buffer + offset - origin * m_call.identity.element_size, bytes, to,
                                 m_session.context());
    return to;
  }

  mapped_session<Transport>& m_session;
  const collective_call& m_call;
  int m_ranks, m_rank;
};

}  // namespace toroid::detail
