// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/error.hpp>
#include <toroid/transport/futex.hpp>
#include <toroid/transport/message_transport.hpp>
#include <toroid/transport/waiting.hpp>

#include <mpi.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace toroid::transport {

namespace detail {

/// Whether MPI can be called now.
inline bool mpi_is_running() noexcept {
  int begun = 0, over = 0;
  return MPI_Initialized(&begun) == MPI_SUCCESS && begun != 0 && MPI_Finalized(&over) == MPI_SUCCESS && over == 0;
}

/// @throws system_error  if `status` says that `call` has failed
inline void check_mpi(int status, const char* call) {
  if (status == MPI_SUCCESS) [[likely]]
    return;
  char text[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw system_error(std::string("toroid: ") + call + " failed: " + text);
}

}  // namespace detail

/// A communicator of MPI that is the library's own: a duplicate, so that messages of the program and of the library
/// never meet; errors come back as status.
class mpi_group {
 public:
  mpi_group() = default;
  /// Takes over `handle`, which nobody else must free.
  explicit mpi_group(MPI_Comm handle) noexcept : m_handle(handle) {
    m_owner = ::getpid();
    if (handle != MPI_COMM_NULL) MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
  }
  /// Collective over `original`.
  static mpi_group duplicate_of(MPI_Comm original) {
    MPI_Comm made = MPI_COMM_NULL;
    detail::check_mpi(MPI_Comm_dup(original, &made), "MPI_Comm_dup");
    return mpi_group(made);
  }
  mpi_group(mpi_group&& other) noexcept
      : m_handle(std::exchange(other.m_handle, MPI_COMM_NULL)), m_owner(other.m_owner) {}
  mpi_group& operator=(mpi_group&& other) noexcept {
    std::swap(m_handle, other.m_handle);
    std::swap(m_owner, other.m_owner);
    return *this;
  }
  ~mpi_group() {
    if (m_handle != MPI_COMM_NULL && m_owner == ::getpid() && detail::mpi_is_running()) MPI_Comm_free(&m_handle);
  }

  /// Leaves it to MPI for good.
  void keep_forever() noexcept { m_handle = MPI_COMM_NULL; }

  MPI_Comm get() const noexcept { return m_handle; }
  int rank() const noexcept {
    int rank = 0;
    MPI_Comm_rank(m_handle, &rank);
    return rank;
  }
  int size() const noexcept {
    int size = 0;
    MPI_Comm_size(m_handle, &size);
    return size;
  }

 private:
  MPI_Comm m_handle = MPI_COMM_NULL;
  pid_t m_owner = 0;  ///< a copy forked from it frees nothing
};

/// Messages of MPI, from point to point. One rank's end; made by toroid::mpi::make_communicator.
///
/// MPI survives no dead process and takes no send back: where a call fails, its messages stay under way, in memory of
/// the library.
class mpi {
 public:
  struct request {
    MPI_Request handle = MPI_REQUEST_NULL;
    bool receives = false;
  };
  static constexpr const char* name = "mpi";

  /// @param group     the library's own, of all ranks
  /// @param identity  the same on all ranks, and of this group alone
  mpi(mpi_group group, std::uint64_t identity, waiting how)
      : m_group(std::move(group)),
        m_identity(identity),
        m_rank(m_group.rank()),
        m_size(m_group.size()),
        m_waiting(how) {
    void* value = nullptr;
    int known = 0;
    detail::check_mpi(MPI_Comm_get_attr(m_group.get(), MPI_TAG_UB, static_cast<void*>(&value), &known),
                      "MPI_Comm_get_attr(MPI_TAG_UB)");
    if (known != 0) m_largest_tag = *static_cast<int*>(value);
  }

  int rank() const noexcept { return m_rank; }
  int size() const noexcept { return m_size; }
  std::uint64_t identity() const noexcept { return m_identity; }
  const mpi_group& group() const noexcept { return m_group; }
  const waiting& how() const noexcept { return m_waiting; }
  int largest_tag() const noexcept { return m_largest_tag; }
  std::size_t largest_message() const noexcept { return INT_MAX; }
  /// What MPI holds is not known.
  std::size_t footprint() const noexcept { return sizeof *this; }

  request start_send(int to, int tag, const std::byte* from, std::size_t bytes) {
    request made;
    detail::check_mpi(MPI_Isend(from, static_cast<int>(bytes), MPI_BYTE, to, tag, m_group.get(), &made.handle),
                      "MPI_Isend");
    return made;
  }
  request start_receive(int from, int tag, std::byte* to, std::size_t bytes) {
    request made{MPI_REQUEST_NULL, true};
    detail::check_mpi(MPI_Irecv(to, static_cast<int>(bytes), MPI_BYTE, from, tag, m_group.get(), &made.handle),
                      "MPI_Irecv");
    return made;
  }
  bool test(request& r) {
    int done = 0;
    detail::check_mpi(MPI_Test(&r.handle, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  }
  bool wait(request& r, std::int64_t deadline) {
    // A look takes far longer than at a flag.
    for (int i = 0; i <= m_waiting.spins / 16; ++i)
      if (test(r)) return true;
    constexpr std::int64_t longest_yielding = 10'000'000;  // MPI sleeps nowhere, so that others have to be let run
    const std::int64_t began = detail::monotonic_nanoseconds();
    for (int i = 1; true; ++i) {
      if (test(r)) return true;
      sched_yield();
      if (i % 8 != 0) continue;
      const std::int64_t now = detail::monotonic_nanoseconds();
      if (now >= deadline) return test(r);
      if (now - began > longest_yielding) {
        const timespec nap{0, 50'000};
        nanosleep(&nap, nullptr);
      }
    }
  }
  /// A receive can be taken back, and then completes; a send cannot.
  bool give_up(request& r) noexcept {
    if (r.handle == MPI_REQUEST_NULL) return true;
    if (!detail::mpi_is_running()) return false;
    if (r.receives) MPI_Cancel(&r.handle);
    int done = 0;
    for (int i = 0; i < 100 && done == 0; ++i)
      if (MPI_Test(&r.handle, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    return done != 0;
  }
  /// A number that MPI_Comm_free has given back may name the next duplicate, which would then receive what was under
  /// way to this one: so it is not given back.
  void abandon() noexcept { m_group.keep_forever(); }
  int poll(int tag, std::byte* to, std::size_t bytes) {
    int there = 0;
    MPI_Status status;
    detail::check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, tag, m_group.get(), &there, &status), "MPI_Iprobe");
    if (there == 0) return -1;
    const int from = status.MPI_SOURCE;
    detail::check_mpi(MPI_Recv(to, static_cast<int>(bytes), MPI_BYTE, from, tag, m_group.get(), MPI_STATUS_IGNORE),
                      "MPI_Recv");
    return from;
  }

 private:
  mpi_group m_group;
  std::uint64_t m_identity;
  int m_rank, m_size;
  int m_largest_tag = 32767;  // what every MPI offers
  waiting m_waiting;
};

static_assert(message_transport<mpi>);

}  // namespace toroid::transport
