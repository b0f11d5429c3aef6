// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/communicator.hpp>

#include <cstddef>
#include <type_traits>

namespace toroid {

/// Lets standard containers keep their elements where the peers of a communicator can reach them, as allocate() does.
///
/// @tparam T  the container's element
/// @pre  the communicator outlives every container that uses the allocator; it may be moved meanwhile
///
/// Not collective: a container may grow on one rank alone. One thread at a time for all containers of a communicator.
/// Allocators of one communicator are equal, of different ones are not.
///
///     using shared_vector = std::vector<float, toroid::allocator<float>>;
///     shared_vector gradient(1000, toroid::allocator<float>(comm));
template <class T>
class allocator {
 public:
  using value_type = T;
  // A container that is moved or swapped takes its memory, and so the communicator it came from, along.
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  /// @throws usage_error  if the communicator has been moved from
  template <class Transport>
  explicit allocator(communicator<Transport>& comm)
      : m_session(&detail::access::session(comm)), m_take(&take<Transport>), m_give_back(&give_back<Transport>) {}
  template <class U>
  allocator(const allocator<U>& other) noexcept
      : m_session(other.m_session), m_take(other.m_take), m_give_back(other.m_give_back) {}

  /// @throws usage_error  if the size cannot be addressed; system_error if there is not that much memory
  T* allocate(std::size_t count) {
    static_assert(alignof(T) <= transport::isolation, "toroid: allocator aligns to 128 bytes, and T asks for more");
    return static_cast<T*>(m_take(m_session, detail::bytes_of(count, sizeof(T), "allocator")));
  }
  void deallocate(T* memory, std::size_t count) noexcept { m_give_back(m_session, memory, count * sizeof(T)); }

  template <class U>
  friend bool operator==(const allocator& a, const allocator<U>& b) noexcept {
    return a.shares_with(b);
  }

 private:
  template <class U>
  friend class allocator;
  /// A member, since a friend of allocator<T> is none of allocator<U>.
  template <class U>
  bool shares_with(const allocator<U>& other) const noexcept {
    return m_session == other.m_session;
  }

  template <class Transport>
  static void* take(void* session, std::size_t bytes) {
    return static_cast<detail::mapped_session<Transport>*>(session)->allocate(bytes);
  }
  template <class Transport>
  static void give_back(void* session, void* memory, std::size_t bytes) noexcept {
    static_cast<detail::mapped_session<Transport>*>(session)->deallocate(memory, bytes);
  }

  void* m_session;
  void* (*m_take)(void*, std::size_t);
  void (*m_give_back)(void*, void*, std::size_t) noexcept;
};

}  // namespace toroid
