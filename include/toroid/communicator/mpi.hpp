// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/communicator.hpp>
#include <toroid/communicator/options.hpp>
#include <toroid/communicator/shm.hpp>
#include <toroid/communicator/split_mpi.hpp>
#include <toroid/core/error.hpp>
#include <toroid/transport/mpi.hpp>
#include <toroid/transport/shm.hpp>

#include <mpi.h>
#include <sys/random.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace toroid {

namespace mpi {

/// Options of a communicator over transport::mpi; all ranks of a group must use the same.
///
/// They are other ones than toroid::options, because other things can be chosen, and because MPI's messages say nothing
/// yet about the call that they belong to: so nothing is checked by default.
struct options {
  /// Longest wait for one peer; then timeout_error. More than zero.
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);
  /// What every call verifies: check::none, until messages can tell more.
  check checking = check::none;
  /// How often a waiting rank looks before it lets others run; negative: chosen by whether there are more ranks than
  /// cores.
  int spins = -1;
  /// Who goes on with collectives that have been started. A thread needs an MPI with MPI_THREAD_MULTIPLE.
  toroid::progress progress = toroid::progress::caller;
  /// Bytes that a rank sends at a time, from 4096 on: the length of pieces follows from it. Zero: chosen.
  std::size_t region_bytes = 0;
};

}  // namespace mpi

namespace detail {

/// The options of a communicator that MPI sets up.
template <class Transport>
using mpi_options = std::conditional_t<std::is_same_v<Transport, transport::mpi>, mpi::options, options>;

/// Makes a communicator of the ranks of one of MPI's: all ranks get theirs, or an error.
class mpi_set_up {
 public:
  explicit mpi_set_up(MPI_Comm original)
      : m_group(own_copy(original)), m_rank(m_group.rank()), m_size(m_group.size()) {}

  communicator<transport::shm> over_shm(const options& chosen) {
    agree([&] { check_options(m_size, chosen); });
    check_same(region_bytes_of(m_size, chosen), "region_bytes");
    check_same(shared_bytes_of(chosen), "shared_bytes");
    check_same(static_cast<std::uint64_t>(chosen.checking), "checking");
    check_same(static_cast<std::uint64_t>(chosen.progress), "progress");
    check_one_host();
    char name[64] = {};
    agree([&] {
      if (m_rank == 0) make_name(name, sizeof name);
    });
    transport::detail::check_mpi(MPI_Bcast(name, static_cast<int>(sizeof name), MPI_CHAR, 0, m_group.get()),
                                 "MPI_Bcast");
    std::optional<communicator<transport::shm>> made;
    agree([&] { made.emplace(shm::make_communicator(name, m_rank, m_size, chosen)); });
    return std::move(*made);
  }

  communicator<transport::mpi> over_mpi(const mpi::options& chosen) {
    options all;
    all.timeout = chosen.timeout;
    all.checking = chosen.checking;
    all.spins = chosen.spins;
    all.region_bytes = chosen.region_bytes;
    all.progress = chosen.progress;
    agree([&] {
      check_options(m_size, all);
      if (chosen.checking != check::none)
        throw usage_error(
            "toroid: mpi::make_communicator: options.checking must be check::none over transport::mpi, whose messages "
            "do not say what call they belong to");
      if (chosen.progress == progress::thread) check_thread_support();
    });
    check_same(static_cast<std::uint64_t>(chosen.progress), "progress");
    check_same(region_bytes_of(m_size, all), "region_bytes");
    std::uint64_t identity = 0;
    agree([&] {
      if (m_rank == 0) identity = random_number();
    });
    transport::detail::check_mpi(MPI_Bcast(&identity, 1, MPI_UINT64_T, 0, m_group.get()), "MPI_Bcast");
    std::optional<communicator<transport::mpi>> made;
    const MPI_Comm group = m_group.get();  // it moves on
    agree([&] { made.emplace(transport::mpi(std::move(m_group), identity, waiting_of(m_size, all)), all); }, group);
    return std::move(*made);
  }

 private:
  static transport::mpi_group own_copy(MPI_Comm original) {
    int begun = 0, over = 0;
    MPI_Initialized(&begun);
    if (begun == 0)
      throw usage_error(
          "toroid: mpi::make_communicator: MPI is not initialized; call MPI_Init or MPI_Init_thread first");
    MPI_Finalized(&over);
    if (over != 0) throw usage_error("toroid: mpi::make_communicator: MPI has been finalized already");
    if (original == MPI_COMM_NULL)
      throw usage_error("toroid: mpi::make_communicator: the communicator is MPI_COMM_NULL");
    int between_groups = 0;
    transport::detail::check_mpi(MPI_Comm_test_inter(original, &between_groups), "MPI_Comm_test_inter");
    if (between_groups != 0)
      throw usage_error("toroid: mpi::make_communicator: an inter-communicator has two groups; merge them first");
    return transport::mpi_group::duplicate_of(original);
  }

  template <class Step>
  void agree(Step&& step) {
    agree(std::forward<Step>(step), m_group.get());
  }
  /// Makes a step on all ranks. If it throws on some, these throw that, and all others the error of the first of them.
  template <class Step>
  void agree(Step&& step, MPI_Comm group) {
    std::exception_ptr mine;
    report said;
    try {
      step();
    } catch (const usage_error& e) {
      mine = said.keep(1, e.what());
    } catch (const timeout_error& e) {
      mine = said.keep(2, e.what());
    } catch (const peer_lost& e) {
      mine = said.keep(3, e.what());
    } catch (const std::exception& e) {
      mine = said.keep(4, e.what());
    }
    int first = mine ? m_rank : m_size, first_of_all = 0;
    transport::detail::check_mpi(MPI_Allreduce(&first, &first_of_all, 1, MPI_INT, MPI_MIN, group), "MPI_Allreduce");
    if (first_of_all == m_size) return;
    transport::detail::check_mpi(MPI_Bcast(&said, static_cast<int>(sizeof said), MPI_BYTE, first_of_all, group),
                                 "MPI_Bcast");
    if (mine) std::rethrow_exception(mine);
    const std::string text = said.text;
    switch (said.kind) {
      case 1:
        throw usage_error(text);
      case 2:
        throw timeout_error(text);
      case 3:
        throw peer_lost(text);
      default:
        throw system_error(text);
    }
  }
  struct report {
    int kind = 0;
    char text[1020] = {};
    std::exception_ptr keep(int what, const char* words) noexcept {
      kind = what;
      std::strncpy(text, words, sizeof text - 1);
      return std::current_exception();
    }
  };

  /// MPI knows which ranks can share memory; names of hosts only tell the reader which they are.
  void check_one_host() {
    MPI_Comm near = MPI_COMM_NULL;
    transport::detail::check_mpi(MPI_Comm_split_type(m_group.get(), MPI_COMM_TYPE_SHARED, m_rank, MPI_INFO_NULL, &near),
                                 "MPI_Comm_split_type");
    const transport::mpi_group here(near);
    int together = here.size() == m_size, all_together = 0;
    transport::detail::check_mpi(MPI_Allreduce(&together, &all_together, 1, MPI_INT, MPI_MIN, m_group.get()),
                                 "MPI_Allreduce");
    if (all_together != 0) return;
    constexpr std::size_t room = MPI_MAX_PROCESSOR_NAME + 1;
    char mine[room] = {};
    int length = 0;
    transport::detail::check_mpi(MPI_Get_processor_name(mine, &length), "MPI_Get_processor_name");
    std::vector<char> all(room * static_cast<std::size_t>(m_size));
    transport::detail::check_mpi(MPI_Allgather(mine, static_cast<int>(room), MPI_CHAR, all.data(),
                                               static_cast<int>(room), MPI_CHAR, m_group.get()),
                                 "MPI_Allgather");
    std::string text =
        "toroid: mpi::make_communicator<transport::shm>: the ranks are not on one host; use transport::mpi, or split "
        "the communicator by MPI_COMM_TYPE_SHARED:";
    constexpr int most_named = 16;
    for (int r = 0; r < m_size && r < most_named; ++r)
      text += std::string(r == 0 ? " rank " : ", rank ") + std::to_string(r) + " on " +
              (all.data() + static_cast<std::size_t>(r) * room);
    if (m_size > most_named) text += ", and " + std::to_string(m_size - most_named) + " more";
    throw usage_error(text);
  }

  static void check_thread_support() {
    int provided = MPI_THREAD_SINGLE;
    transport::detail::check_mpi(MPI_Query_thread(&provided), "MPI_Query_thread");
    if (provided < MPI_THREAD_MULTIPLE)
      throw usage_error(
          "toroid: mpi::make_communicator: options.progress = thread over transport::mpi needs MPI_THREAD_MULTIPLE; "
          "ask MPI_Init_thread for it");
  }

  void check_same(std::uint64_t value, const char* option) {
    const std::uint64_t mine[2] = {value, ~value};  // the least of ~v is ~ of the largest v
    std::uint64_t all[2] = {};
    transport::detail::check_mpi(MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_MIN, m_group.get()), "MPI_Allreduce");
    if (all[0] != ~all[1])
      throw usage_error(std::string("toroid: mpi::make_communicator: options.") + option + " is " +
                        std::to_string(all[0]) + " on one rank and " + std::to_string(~all[1]) +
                        " on another; all ranks must use the same");
  }

  /// A name that no other group of this host has.
  static void make_name(char* name, std::size_t room) {
    std::snprintf(name, room, "mpi.%ld.%016llx", static_cast<long>(::getpid()),
                  static_cast<unsigned long long>(random_number()));
  }
  static std::uint64_t random_number() {
    std::uint64_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
      throw system_error("toroid: mpi::make_communicator: getrandom failed");
    return number;
  }

  transport::mpi_group m_group;
  int m_rank, m_size;
};

}  // namespace detail

namespace mpi {

/// Makes a communicator of the ranks of one of MPI's, in any MPI program.
///
/// Over transport::shm the ranks are processes of one host, and after set-up MPI takes no part. Over transport::mpi all
/// bytes travel in MPI's messages, and MPI must not be finalized before the communicator is destroyed. If one rank
/// cannot be set up, all ranks get an error.
///
/// @tparam Transport  transport::shm or transport::mpi
/// @param group   an intra-communicator; it is used only to make a duplicate, before this returns
/// @param chosen  the same on all ranks: toroid::options over shm, mpi::options over mpi
/// @pre  MPI_Init or MPI_Init_thread has been called; of thread support, what the program's own use of threads needs
/// @throws usage_error   if MPI is not initialized, or is finalized already; for a wrong option; over shm, if the ranks
///         are not on one host as MPI_COMM_TYPE_SHARED has it (the hosts are named, on all ranks)
/// @throws system_error  if MPI, memory or descriptors fail; over shm also timeout_error and peer_lost
///
/// Cost: a few of MPI's collectives, which have no deadline. Collective.
///
///     MPI_Init(nullptr, nullptr);
///     auto comm = toroid::mpi::make_communicator<toroid::transport::shm>(MPI_COMM_WORLD);
template <class Transport>
communicator<Transport> make_communicator(MPI_Comm group, const detail::mpi_options<Transport>& chosen = {}) {
  static_assert(std::is_same_v<Transport, transport::shm> || std::is_same_v<Transport, transport::mpi>,
                "toroid: MPI sets up communicators over transport::shm or transport::mpi");
  detail::mpi_set_up set_up(group);
  if constexpr (std::is_same_v<Transport, transport::shm>)
    return set_up.over_shm(chosen);
  else
    return set_up.over_mpi(chosen);
}

}  // namespace mpi
}  // namespace toroid
