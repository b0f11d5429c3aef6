// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/colour.hpp>
#include <toroid/communicator/mapped_session.hpp>
#include <toroid/communicator/message_session.hpp>
#include <toroid/communicator/options.hpp>
#include <toroid/core/assert.hpp>
#include <toroid/core/call_site.hpp>
#include <toroid/core/element.hpp>
#include <toroid/core/error.hpp>
#include <toroid/transport/mapped_transport.hpp>
#include <toroid/transport/message_transport.hpp>

#include <concepts>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace toroid {

namespace detail {
struct access;

template <class Transport>
struct session_of {
  using type = mapped_session<Transport>;
};
template <message_transport Transport>
struct session_of<Transport> {
  using type = message_session<Transport>;
};
/// What a rank remembers between calls, by the kind of its transport.
template <class Transport>
using session_for = typename session_of<Transport>::type;

}  // namespace detail

/// A group of ranks over one transport, as seen by one of them.
///
/// Move-only. Made by run_threads, run_processes and their kind. One thread at a time may use a communicator, but for
/// abort(); different communicators may be used from different threads freely. A process forked from a rank cannot use
/// the communicator that it has inherited, and does no harm when it ends. After an error other than usage_error it is
/// broken: each further call throws the same error at once.
///
/// One that has been moved from, or that split() gave to a rank without a group, is empty: it converts to false, and
/// each call of it is a usage_error.
///
/// @tparam Transport  a mapped_transport or a message_transport
template <class Transport>
class communicator {
 public:
  using transport_type = Transport;

  /// For launchers: takes over one rank's end of a group.
  communicator(Transport transport, const options& chosen)
      : m_session(std::make_unique<session>(std::move(transport), chosen)) {}
  communicator(communicator&&) noexcept = default;
  communicator& operator=(communicator&& other) noexcept {
    if (this != &other) {
      leave();
      m_session = std::move(other.m_session);
    }
    return *this;
  }
  /// Not collective; returns at once. Peers that wait for this rank get peer_lost, and so do calls in flight.
  ~communicator() { leave(); }

  /// Whether it is not empty.
  explicit operator bool() const noexcept { return m_session != nullptr; }

  /// This rank's number, in [0, size()).
  /// @pre  not empty (so for size() and footprint() too)
  int rank() const noexcept { return end().transport().rank(); }
  /// Number of ranks.
  int size() const noexcept { return end().transport().size(); }
  /// Ends every call of every rank, now and later, with peer_lost. From any thread, while the communicator exists.
  void abort() noexcept {
    if (m_session) m_session->abort();
  }
  /// Bytes of memory that this rank's end holds for messages, without what was taken by allocate().
  std::size_t footprint() const noexcept {
    if constexpr (message_transport<Transport>)
      return end().footprint();
    else
      return end().transport().footprint() + sizeof(session) + end().staging_bytes() + end().started_bytes() +
             2 * (static_cast<std::size_t>(size()) + 1) * sizeof(void*);
  }

  /// Divides the group: ranks that name the same colour form a new group, as MPI_Comm_split would have it.
  ///
  /// Old and new groups know nothing of each other: each works on if the other fails, is aborted or destroyed.
  ///
  /// @param which  any integer, or toroid::no_group; numbers are compared as such, none is cut to fewer bits
  /// @param key    any integer; the ranks of a new group are in its order, those with the same key in their old order
  /// @return the group of this rank's colour; empty for no_group
  /// @throws usage_error   if this communicator is empty
  /// @throws system_error  if a rank is refused memory or descriptors; on all ranks, which all get no new group then,
  ///         and can go on with this one
  /// @throws mismatch_error, timeout_error, peer_lost  this communicator is broken then
  ///
  /// Cost: three exchanges of some hundred bytes from each to all; options.region_bytes times 4 of memory a rank;
  /// between processes a local socket a rank while it lasts. Collective, also for ranks that join no group. Nothing is
  /// left behind when a new group's communicators are destroyed.
  ///
  ///     auto row = comm.split(comm.rank() / columns);  // in the order of their ranks
  ///     auto leaders = comm.split(row.rank() == 0 ? toroid::colour(0) : toroid::no_group);
  ///     if (leaders) toroid::all_reduce(leaders, sums);
  [[nodiscard]] communicator split(const colour& which, const exact_integer& key = 0,
                                   call_site at = call_site::current());
  /// The same, with other options than this communicator's.
  ///
  /// @param chosen  the same on all ranks that name one colour. A negative `spins` means what this communicator does.
  /// @throws usage_error  also for a wrong option, or one that differs within a colour; on all ranks
  [[nodiscard]] communicator split(const colour& which, const exact_integer& key, const options& chosen,
                                   call_site at = call_site::current()) requires mapped_transport<Transport>;

 private:
  friend detail::access;
  communicator() noexcept = default;
  using session = detail::session_for<Transport>;

  const session& end() const noexcept {
    TOROID_ASSERT(m_session != nullptr);
    return *m_session;
  }
  void leave() noexcept {
    if (m_session) m_session->leave();
  }

  std::unique_ptr<session> m_session;
};

namespace detail {

/// How collectives reach into a communicator.
struct access {
  template <class Transport>
  static bool owns(const communicator<Transport>& comm) noexcept {
    return comm.m_session != nullptr;
  }
  template <class Transport>
  static session_for<Transport>& session(communicator<Transport>& comm) {
    if (!comm.m_session)
      throw usage_error(
          "toroid: this communicator is empty: it has been moved from, or split() gave it to a rank of no group");
    return *comm.m_session;
  }
  /// What stands in for a communicator (collective/detail/start.hpp) stands in for its session, too.
  template <class StandIn>
  static typename StandIn::stands_in_for_session& session(StandIn& comm) noexcept {
    return comm;
  }
  template <class Transport>
  static communicator<Transport> empty() noexcept {
    return {};
  }
};

template <class T>
inline constexpr bool is_communicator = false;
template <class Transport>
inline constexpr bool is_communicator<communicator<Transport>> = true;

[[noreturn, gnu::noinline, gnu::cold]] inline void refuse_size(std::size_t count, std::size_t size,
                                                               const char* operation) {
  throw usage_error(std::string("toroid: ") + operation + ": " + std::to_string(count) + " elements of " +
                    std::to_string(size) + " bytes are more than can be addressed");
}

/// count * size, or usage_error where that does not fit.
inline std::size_t bytes_of(std::size_t count, std::size_t size, const char* operation) {
  if (size != 0 && count > std::numeric_limits<std::size_t>::max() / size / 2) [[unlikely]]
    refuse_size(count, size, operation);
  return count * size;
}

}  // namespace detail

/// What can be passed as the group of a collective.
template <class C>
concept group = detail::is_communicator<std::remove_cvref_t<C>> && !std::is_const_v<std::remove_reference_t<C>>;

/// Memory that the peers of a communicator can read and write in place, so that collectives need no copies.
///
/// @tparam T  an element
/// @param comm   the communicator that the memory shall be used with
/// @param count  number of elements
/// @return `count` zeroed elements, aligned to 128 bytes (4096 from 4 KiB); they live until deallocate() or the end of
///         the communicator
/// @throws usage_error  if the size cannot be addressed, or in a copy forked from the rank; system_error if that much
///         memory is not there
///
/// Not collective: ranks may allocate different sizes at different times. One thread at a time.
template <element T, class Transport>
std::span<T> allocate(communicator<Transport>& comm, std::size_t count) {
  const std::size_t bytes = detail::bytes_of(count, sizeof(T), "allocate");
  void* const memory = detail::access::session(comm).allocate(bytes);
  return {static_cast<T*>(memory), count};
}

/// Gives memory from allocate() back; no collective may be using it. In a copy forked from the rank it does nothing.
///
/// @param elements  exactly what allocate() returned
/// @throws usage_error  if it did not come from this communicator
template <element T, class Transport>
void deallocate(communicator<Transport>& comm, std::span<T> elements) {
  detail::access::session(comm).deallocate(elements.data(), elements.size_bytes());
}

}  // namespace toroid
