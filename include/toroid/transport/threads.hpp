// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/error.hpp>
#include <toroid/transport/mapped_endpoint.hpp>
#include <toroid/transport/mapped_transport.hpp>
#include <toroid/transport/memory_segment.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace toroid::transport {

/// Ranks are threads of one process: mailboxes lie on the heap and every buffer can be reached by every rank.
class threads : public mapped_endpoint {
 public:
  static constexpr const char* name = "threads";
  static constexpr bool survivable = true;
  static constexpr bool must_drain = true;

  /// The memory that the ranks of one group share; lives until the last of them is gone.
  class shared_memory {
   public:
    shared_memory(int ranks, std::size_t region_bytes)
        : m_boxes(static_cast<std::size_t>(ranks)),
          m_offers(static_cast<std::size_t>(ranks)),
          m_region_bytes(region_bytes) {
      for (int r = 0; r < ranks; ++r) m_regions.emplace_back(allocate_bytes(region_bytes * region_count));
    }
    std::vector<peer_memory> peers() {
      std::vector<peer_memory> all;
      for (std::size_t r = 0; r < m_boxes.size(); ++r) all.push_back({&m_boxes[r], m_regions[r].get()});
      return all;
    }
    group_state& group() noexcept { return m_group; }
    std::size_t region_bytes() const noexcept { return m_region_bytes; }

   private:
    friend threads;
    static constexpr std::align_val_t alignment{4096};
    struct free_bytes {
      void operator()(std::byte* p) const noexcept { ::operator delete(p, alignment); }
    };
    using bytes_ptr = std::unique_ptr<std::byte, free_bytes>;
    static bytes_ptr allocate_bytes(std::size_t n) {
      try {
        return bytes_ptr(static_cast<std::byte*>(::operator new(n, alignment)));
      } catch (const std::bad_alloc&) {
        throw system_error("toroid: allocate: " + std::to_string(n) + " bytes of memory were refused (" +
                           std::to_string(memory_segment::available_bytes()) +
                           " bytes free); free some, or raise ulimit -v");
      }
    }

    group_state m_group;
    std::vector<mailbox> m_boxes;
    std::vector<bytes_ptr> m_regions;
    std::mutex m_offering;
    std::vector<std::shared_ptr<shared_memory>> m_offers;  ///< of other groups, one a rank
    std::size_t m_region_bytes;
  };

  threads(int rank, std::shared_ptr<shared_memory> memory, waiting how)
      : mapped_endpoint(rank, memory->peers(), memory->region_bytes(), memory->group(), how,
                        detail::expedited::among_threads),
        m_memory(std::move(memory)) {}

  std::uint64_t address_of(const void* pointer) const noexcept { return reinterpret_cast<std::uintptr_t>(pointer); }
  bool reachable(const void*, std::size_t) const noexcept { return true; }
  std::byte* resolve(int, std::uint64_t address) const noexcept {
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
  }

  void* allocate(std::size_t bytes) {
    m_allocations.push_back({shared_memory::allocate_bytes(bytes == 0 ? 1 : bytes), bytes});
    std::memset(m_allocations.back().memory.get(), 0, bytes);
    return m_allocations.back().memory.get();
  }
  void deallocate(void* memory, std::size_t bytes) {
    for (auto& allocation : m_allocations) {
      if (allocation.memory.get() != memory || allocation.bytes != bytes) continue;
      std::swap(allocation, m_allocations.back());
      m_allocations.pop_back();
      return;
    }
    throw usage_error("toroid: deallocate: this memory was not allocated through this communicator");
  }
  std::size_t footprint() const noexcept { return sizeof(mailbox) + region_bytes() * region_count; }

  /// Shows the memory of another group to the ranks of this one, until the next offer; null takes it back.
  void offer(std::shared_ptr<shared_memory> other) noexcept {
    const std::lock_guard lock(m_memory->m_offering);
    m_memory->m_offers[static_cast<std::size_t>(rank())].swap(other);
  }
  /// What a rank of this group offers; null if it has taken it back.
  std::shared_ptr<shared_memory> offer_of(int rank) const noexcept {
    const std::lock_guard lock(m_memory->m_offering);
    return m_memory->m_offers[static_cast<std::size_t>(rank)];
  }

 private:
  std::shared_ptr<shared_memory> m_memory;
  struct owned_memory {
    shared_memory::bytes_ptr memory;
    std::size_t bytes;
  };
  std::vector<owned_memory> m_allocations;
};

static_assert(mapped_transport<threads>);

}  // namespace toroid::transport
