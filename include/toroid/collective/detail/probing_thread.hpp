// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/collective_call.hpp>
#include <toroid/collective/detail/host_thread.hpp>
#include <toroid/communicator/mapped_session.hpp>
#include <toroid/core/reduction.hpp>
#include <toroid/transport/waiting.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace toroid::detail {

/// A policy for mapped_executor that does nothing but find out what an operation would have to wait for. Where nothing
/// is missing, host_thread does not have to wait: within an operation nothing is published, so no peer can be waiting
/// for a part of it.
template <class Transport>
class probing_thread : public host_thread<Transport> {
 public:
  probing_thread(mapped_session<Transport>& session, const collective_call& call) noexcept
      : host_thread<Transport>(session, call), m_transport(session.transport()) {}

  /// The first flag that has not come.
  const transport::awaited_flag& missing() const noexcept { return m_missing; }

  void wait(int rank, std::uint64_t progress) noexcept {
    if (m_missing) return;
    const std::atomic<std::uint64_t>& flag = m_transport.box(rank).progress;
    if (flag.load(std::memory_order_acquire) < progress) m_missing = {rank, &flag, progress};
  }
  void publish(std::uint64_t) noexcept {}
  void note_step(int) noexcept {}
  void combine(reduce_arguments&, bool) noexcept {}
  const std::byte* pull_input(int, std::size_t, std::size_t, std::byte* to) const noexcept { return to; }
  const std::byte* pull_result(int, std::size_t, std::size_t, std::byte* to) const noexcept { return to; }

 private:
  Transport& m_transport;
  transport::awaited_flag m_missing;
};

}  // namespace toroid::detail
