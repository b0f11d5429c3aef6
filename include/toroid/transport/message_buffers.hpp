// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/transport/message_transport.hpp>

#include <bit>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace toroid::transport {

/// Memory that messages travel in, with the requests that still use it.
template <class Request>
struct message_buffer {
  std::unique_ptr<std::byte[]> memory{};
  std::size_t capacity = 0;
  int holders = 0;                 ///< who means to use its content
  std::vector<Request> pending{};  ///< sends or receives that are not known to be complete
};

/// The buffers of one rank, reused from message to message, but never while the transport may still read or write them.
///
/// Those that are in such a state when all ends are never freed: the transport may write to them as long as the process
/// lives.
template <message_transport Transport>
class message_buffers {
 public:
  using buffer = message_buffer<typename Transport::request>;

  message_buffers() = default;
  message_buffers(const message_buffers&) = delete;
  message_buffers& operator=(const message_buffers&) = delete;
  ~message_buffers() {
    for (std::unique_ptr<buffer>& b : m_all)
      if (!b->pending.empty()) (void)b.release();
  }

  /// A buffer that nobody uses, of at least so many bytes, held once.
  buffer& take(std::size_t bytes) {
    for (std::size_t i = m_free.size(); i-- > 0;) {
      buffer& found = *m_free[i];
      if (found.capacity < bytes) continue;
      m_free.erase(m_free.begin() + static_cast<std::ptrdiff_t>(i));
      found.holders = 1;
      return found;
    }
    constexpr std::size_t least = 4096;
    const std::size_t capacity = bytes <= least ? least : std::bit_ceil(bytes);
    m_free.reserve(m_all.size() + 1);  // so that release() never has to allocate
    m_all.push_back(std::make_unique<buffer>());
    buffer& made = *m_all.back();
    made.memory.reset(new std::byte[capacity]);  // not zeroed: every byte that is read has been written
    made.capacity = capacity;
    made.holders = 1;
    m_bytes += capacity + sizeof(buffer);
    return made;
  }

  /// @pre  none of its requests is pending if this is the last holder
  void release(buffer& b) noexcept {
    if (--b.holders == 0 && b.pending.empty()) m_free.push_back(&b);
  }

  /// Tries to take back whatever is still under way.
  void give_up(Transport& transport) noexcept {
    for (const std::unique_ptr<buffer>& b : m_all) {
      bool all = true;
      for (typename Transport::request& request : b->pending) all = transport.give_up(request) && all;
      if (all) b->pending.clear();
    }
  }

  std::size_t bytes() const noexcept { return m_bytes; }

 private:
  std::vector<std::unique_ptr<buffer>> m_all;
  std::vector<buffer*> m_free;
  std::size_t m_bytes = 0;
};

}  // namespace toroid::transport
