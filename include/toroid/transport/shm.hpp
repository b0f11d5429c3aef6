// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/error.hpp>
#include <toroid/transport/free_list.hpp>
#include <toroid/transport/mapped_endpoint.hpp>
#include <toroid/transport/mapped_transport.hpp>
#include <toroid/transport/memory_segment.hpp>

#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace toroid::transport {

namespace detail {
/// A number that no other process is likely to have at the same address.
inline std::uint64_t nonce_for(int rank) noexcept {
  std::uint64_t number = static_cast<std::uint64_t>(monotonic_nanoseconds()) ^ static_cast<std::uint64_t>(::getpid())
                                                                                   << 40;
  number = (number + static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15u;
  return number ^ number >> 29;
}
}  // namespace detail

/// Ranks are processes of one host that map each other's memory segments. Peers reach memory from allocate(); ordinary
/// memory of another process is never touched: it is copied through hand-over regions.
///
/// A segment, one a rank: its mailbox, its hand-over regions, then the range that allocate() takes from. Rank 0's
/// begins with the group's state.
class shm : public mapped_endpoint {
 public:
  static constexpr const char* name = "shm";
  static constexpr bool survivable = true;
  static constexpr bool must_drain = false;  // peers only ever write segments, and those outlive a failed call

  /// The segments of a group, as one process has them mapped.
  class segments {
   public:
    /// Makes new segments for all ranks.
    /// @param shared_bytes  address range of each rank's allocate(); takes no memory before use
    /// @throws system_error  nothing is left behind
    segments(int ranks, std::size_t region_bytes, std::size_t shared_bytes, const std::string& directory = {})
        : segments(region_bytes, shared_bytes) {
      for (int r = 0; r < ranks; ++r) make(directory);
    }
    /// Begins with none: for those that make() or receive() them one by one, in rank order.
    segments(std::size_t region_bytes, std::size_t shared_bytes)
        : m_region_bytes(memory_segment::whole_pages(region_bytes)),
          m_shared_bytes(memory_segment::whole_pages(shared_bytes)) {}

    memory_segment& make(const std::string& directory) {
      memory_segment segment(segment_bytes(), directory);
      segment.reserve(0, arena_offset());
      new (segment.data()) group_state;
      new (segment.data() + mailbox_offset()) mailbox;
      m_segments.push_back(std::move(segment));
      return m_segments.back();
    }
    memory_segment& receive(file_descriptor file, const std::string& directory) {
      m_segments.emplace_back(std::move(file), segment_bytes(), directory);
      return m_segments.back();
    }
    std::size_t segment_bytes() const noexcept { return arena_offset() + m_shared_bytes; }

    int ranks() const noexcept { return static_cast<int>(m_segments.size()); }
    std::byte* base(int rank) const noexcept { return m_segments[static_cast<std::size_t>(rank)].data(); }
    memory_segment& operator[](int rank) noexcept { return m_segments[static_cast<std::size_t>(rank)]; }
    mailbox& box(int rank) const noexcept {
      return *std::launder(reinterpret_cast<mailbox*>(base(rank) + mailbox_offset()));
    }
    group_state& group() const noexcept { return *std::launder(reinterpret_cast<group_state*>(base(0))); }
    std::size_t region_bytes() const noexcept { return m_region_bytes; }
    std::size_t shared_bytes() const noexcept { return m_shared_bytes; }
    std::size_t arena_offset() const noexcept { return m_arena_offset; }

    std::vector<peer_memory> peers() const {
      std::vector<peer_memory> all;
      for (int r = 0; r < ranks(); ++r) all.push_back({&box(r), base(r) + region_offset()});
      return all;
    }

    /// Wakes every sleeping rank; for whoever is not a rank.
    void ring_all() const noexcept {
      for (int r = 0; r < ranks(); ++r) ring(box(r));
    }

   private:
    std::size_t mailbox_offset() const noexcept { return m_mailbox_offset; }
    std::size_t region_offset() const noexcept { return m_region_offset; }

    std::size_t m_region_bytes;
    std::size_t m_shared_bytes;
    // Noted, since every call adds them up, and the size of a page costs a call of its own.
    std::size_t m_mailbox_offset = memory_segment::whole_pages(sizeof(group_state));
    std::size_t m_region_offset = memory_segment::whole_pages(m_mailbox_offset + sizeof(mailbox));
    std::size_t m_arena_offset = m_region_offset + region_count * m_region_bytes;
    std::vector<memory_segment> m_segments;
  };

  /// @param holder  kept open as long as this end lives: what keeps the group's name taken, if it has one
  shm(int rank, std::shared_ptr<segments> memory, waiting how, file_descriptor holder = {})
      : mapped_endpoint(rank, memory->peers(), memory->region_bytes(), memory->group(), how,
                        detail::expedited::among_processes),
        m_memory(std::move(memory)),
        m_free(m_memory->shared_bytes()),
        m_holder(std::move(holder)) {
    box(rank).owner = this_process();
    m_nonce = std::make_unique<std::uint64_t>(detail::nonce_for(rank));
    box(rank).nonce = *m_nonce;
    box(rank).nonce_address = reinterpret_cast<std::uintptr_t>(m_nonce.get());
    box(rank).owner_known.store(1, std::memory_order_release);  // pairs with long waits
  }

  bool reachable(const void* pointer, std::size_t bytes) const noexcept {
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(arena());
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(pointer);
    return at >= begin && at - begin <= m_memory->shared_bytes() && bytes <= m_memory->shared_bytes() - (at - begin);
  }
  std::uint64_t address_of(const void* pointer) const noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(arena());
  }
  std::byte* resolve(int rank, std::uint64_t address) const noexcept {
    return m_memory->base(rank) + m_memory->arena_offset() + address;
  }

  void* allocate(std::size_t bytes) {
    const std::size_t rounded = round(bytes);
    const auto offset = m_free.take(rounded, alignment(rounded));
    if (!offset)
      throw system_error("toroid: allocate: " + std::to_string(bytes) + " bytes asked for, but the address range of " +
                         std::to_string(m_memory->shared_bytes()) +
                         " bytes has no free run that long; raise options.shared_bytes");
    try {
      (*m_memory)[rank()].reserve(m_memory->arena_offset() + *offset, rounded);
    } catch (...) {
      m_free.give_back(*offset, rounded);
      throw;
    }
    std::memset(arena() + *offset, 0, rounded);
    m_taken.push_back({*offset, bytes});
    return arena() + *offset;
  }
  void deallocate(void* memory, std::size_t bytes) {
    for (auto& allocation : m_taken) {
      if (arena() + allocation.offset != memory || allocation.bytes != bytes) continue;
      const std::size_t offset = allocation.offset;
      std::swap(allocation, m_taken.back());
      m_taken.pop_back();
      if (broken()) return;  // a peer that has not noticed yet may still write there: never give it out again
      m_free.give_back(offset, round(bytes));
      (*m_memory)[rank()].release(m_memory->arena_offset() + offset, round(bytes));
      return;
    }
    throw usage_error("toroid: deallocate: this memory was not allocated through this communicator");
  }
  std::size_t footprint() const noexcept { return m_memory->arena_offset(); }

  /// Settled by reading a number from each peer's ordinary memory, once all have told where theirs stands: neither
  /// permissions nor namespaces need be guessed.
  bool can_pull() noexcept { return can_pull_with(read_process); }
  void pull(int rank, std::uint64_t address, std::size_t bytes, std::byte* to, const wait_context& context) {
    pull_with(read_process, rank, address, bytes, to, context);
  }

  /// can_pull() and pull() with another way to read, so that tests can make it fail.
  ///
  /// @tparam Read  takes and returns what read_process does
  template <class Read>
  bool can_pull_with(Read&& read) noexcept {
    if (m_pulls == unknown) prove_pulling(read);
    return m_pulls == proven;
  }
  template <class Read>
  void pull_with(Read&& read, int rank, std::uint64_t address, std::size_t bytes, std::byte* to,
                 const wait_context& context) {
    const int number = read_peer(read, rank, address, bytes, to);
    if (number == 0) [[likely]]
      return;
    pull_failed(number, rank, bytes, context);
  }

  /// Reads from a process's memory.
  /// @return bytes read, which may be fewer than asked for; or -1, and the reason in errno
  static ssize_t read_process(std::int32_t process, std::byte* to, std::uint64_t address, std::size_t bytes) noexcept {
    const iovec here{to, bytes};
    const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), bytes};
    return ::process_vm_readv(process, &here, 1, &there, 1, 0);
  }

 private:
  enum pulling { unknown, proven, refused };

  [[noreturn, gnu::noinline, gnu::cold]] void pull_failed(int number, int rank, std::size_t bytes,
                                                          const wait_context& context) {
    const std::string text = "reading " + std::to_string(bytes) + " bytes of rank " + std::to_string(rank) +
                             "'s memory failed: " + std::strerror(number);
    // What could be read before cannot be read any more: its process has ended, or is ending.
    if (number == ESRCH || number == EFAULT || broken()) throw_lost(rank, context, text);
    const int self = this->rank();
    break_group(failure::lost, self, "rank " + std::to_string(self) + " reports: " + text);  // so that peers know why
    throw system_error(describe(context) + ": " + text);
  }

  template <class Read>
  void prove_pulling(Read& read) noexcept {
    for (int r = 0; r < size(); ++r) {
      const mailbox& peer = box(r);
      if (r == rank()) continue;
      if (peer.owner_known.load(std::memory_order_acquire) == 0) return;  // not yet
      std::uint64_t number = 0;
      if (peer.owner.process_space != box(rank()).owner.process_space ||
          read_peer(read, r, peer.nonce_address, sizeof number, reinterpret_cast<std::byte*>(&number)) != 0 ||
          number != peer.nonce) {
        m_pulls = refused;
        return;
      }
    }
    m_pulls = proven;
  }
  /// @return 0, or the error number
  template <class Read>
  [[gnu::noinline]] int read_peer(Read& read, int rank, std::uint64_t address, std::size_t bytes,
                                  std::byte* to) const noexcept {
    while (bytes > 0) {
      const ssize_t got = read(box(rank).owner.process, to, address, bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return got < 0 ? errno : EIO;
      to += got;
      address += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::size_t>(got);
    }
    return 0;
  }
  std::byte* arena() const noexcept { return m_memory->base(rank()) + m_memory->arena_offset(); }
  /// Whole cache-line pairs, so that neighbours never share a line.
  static std::size_t round(std::size_t bytes) noexcept {
    return bytes == 0 ? isolation : (bytes + isolation - 1) / isolation * isolation;
  }
  static std::size_t alignment(std::size_t bytes) noexcept { return bytes >= 4096 ? 4096 : isolation; }

  struct taken {
    std::size_t offset, bytes;
  };

  std::shared_ptr<segments> m_memory;
  free_list m_free;
  std::vector<taken> m_taken;
  std::unique_ptr<std::uint64_t> m_nonce;  ///< in ordinary memory, which peers try to read
  pulling m_pulls = unknown;
  file_descriptor m_holder;
};

static_assert(pulling_transport<shm>);

}  // namespace toroid::transport
