// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

#include <toroid/toroid.hpp>
#include <toroid/transport/fault_injecting.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

// Data that arrives in part: hand-overs that are cut, which nothing but their content tells; reads of a peer's memory
// that the kernel cuts, interrupts or refuses, which must be noticed; segments that are shorter than they should be.

namespace {

using support::demand;
using toroid::transport::fault_counts;
using toroid::transport::fault_injecting;
using toroid::transport::faults;
using toroid::transport::shm;
using toroid::transport::threads;

constexpr toroid::transport::waiting patient{.spins = 1000, .yields = 50, .timeout = 60'000'000'000};
constexpr faults none{.delay_one_in = 0, .interrupt_one_in = 0};

/// Which elements of a sum over `ranks` thread ranks come out wrong on some rank, where all hand-overs of rank 0 may be
/// cut: [first, last), {count, 0} if none does.
struct wrong_range {
  std::size_t first, last;
};
template <class Algorithm>
wrong_range wrong_elements(int ranks, std::size_t count, support::ways admitted, const faults& chosen, Algorithm how,
                           const toroid::options& options = {}) {
  const auto make = [&](threads base) {
    const bool cuts = base.rank() == 0;
    return fault_injecting(support::restricted(std::move(base), admitted), cuts ? chosen : none);
  };
  std::atomic<std::size_t> first{count}, last{0};
  support::run_threads_over(ranks, options, patient, make, [&](auto& comm) {
    for (int call = 0; call < 3; ++call) {
      std::vector<float> values(count);
      const auto given = [&](int r, std::size_t i) { return static_cast<float>(100 * r + call) + float(i % 64); };
      for (std::size_t i = 0; i < count; ++i) values[i] = given(comm.rank(), i);
      toroid::all_reduce(comm, values, how);
      for (std::size_t i = 0; i < count; ++i) {
        float wanted = 0;
        for (int r = 0; r < ranks; ++r) wanted += given(r, i);
        if (values[i] == wanted) continue;
        for (std::size_t known = first; i < known && !first.compare_exchange_weak(known, i);) {
        }
        for (std::size_t known = last; i + 1 > known && !last.compare_exchange_weak(known, i + 1);) {
        }
      }
    }
  });
  return {first, last};
}

/// Sums in ordinary memory that the kernel copies from peers, on processes of which each has faults of its own.
template <class FaultsOf, class F>
void on_pulling_processes(int ranks, FaultsOf faults_of, F f) {
  const auto make = [&](shm base) {
    const int rank = base.rank();
    return fault_injecting(std::move(base), faults_of(rank));
  };
  support::run_processes_over(ranks, {}, patient, make, [&](auto& comm) {
    support::prefer_pulling(comm);
    f(comm);
  });
}

constexpr std::size_t pullable = 20'000;

template <class Communicator>
void demand_right_sum(Communicator& comm, std::uint32_t call) {
  std::vector<std::uint32_t> values(pullable);
  for (std::size_t i = 0; i < pullable; ++i)
    values[i] = static_cast<std::uint32_t>(i) * 3 + static_cast<std::uint32_t>(comm.rank()) + call;
  toroid::all_reduce(comm, values, toroid::direct{.segment_bytes = 8192});
  const std::uint32_t p = static_cast<std::uint32_t>(comm.size());
  for (std::size_t i = 0; i < pullable; ++i)
    demand(values[i] == p * (static_cast<std::uint32_t>(i) * 3 + call) + p * (p - 1) / 2, "element ", i, " is ",
           values[i]);
}

/// Lets the reads of rank 1 be refused from the n-th on, and tells how the ranks end.
struct refusal_seen {
  std::atomic<int> system_errors{0}, lost{0}, good{0}, strange{0};
};
void refuse_reads(std::uint64_t from, int number, const char* reason, const support::shared_by_all<refusal_seen>& seen,
                  const support::shared_by_all<fault_counts>& counts) {
  const auto faults_of = [&](int rank) {
    faults chosen = none;
    if (rank != 1) return chosen;
    chosen.refuse_reads_from = from;
    chosen.refuse_reads_with = number;
    chosen.counts = &*counts;
    return chosen;
  };
  on_pulling_processes(3, faults_of, [&](auto& comm) {
    toroid::barrier(comm);  // all have come: the proof takes one read a peer
    try {
      for (std::uint32_t call = 0; call < 4; ++call) demand_right_sum(comm, call);
      ++seen->good;
    } catch (const toroid::system_error& error) {
      ++seen->system_errors;
      support::demand_words(error.what(), "all_reduce", "reading", "bytes of rank", reason);
      demand(comm.rank() == 1, "rank ", comm.rank(), " has a system_error");
    } catch (const toroid::peer_lost& error) {
      ++seen->lost;
      support::demand_words(error.what(), "rank 1 reports: reading", "bytes of rank", reason);
    } catch (...) {
      ++seen->strange;
      throw;
    }
  });
}

}  // namespace

TEST_CASE("Of a hand-over that is cut, the front arrives", "[faults][truncation]") {
  const support::shared_by_all<fault_counts> counts;
  faults cut = none;
  cut.truncate_one_in = 1;
  cut.truncate_after = 1024;
  cut.counts = &*counts;
  const auto staged = wrong_elements(2, 2000, support::ways::through_regions, cut, toroid::direct{});
  CHECK(staged.first == 1024 / sizeof(float));
  CHECK(staged.last == 2000);
  CHECK(counts->truncations >= 3);
  cut.truncate_after = 2048;
  const auto beside_the_flag = wrong_elements(3, 1024, support::ways::all, cut, toroid::direct{});
  CHECK(beside_the_flag.first == 2048 / sizeof(float));
  CHECK(beside_the_flag.last == 1024);
  // The partial values of a ring go through regions even where buffers are read in place.
  cut.truncate_after = 0;
  const auto ring = wrong_elements(3, 3000, support::ways::all, cut, toroid::ring{});
  CHECK(ring.first < ring.last);
}

TEST_CASE("What arrives whole is right", "[faults][truncation]") {
  const support::shared_by_all<fault_counts> counts;
  faults cut = none;
  cut.truncate_one_in = 1;
  cut.truncate_after = std::size_t{1} << 30;
  cut.counts = &*counts;
  for (const auto ways : {support::ways::all, support::ways::through_regions}) {
    CHECK(wrong_elements(3, 100'000, ways, cut, toroid::ring{}).last == 0);
    CHECK(wrong_elements(3, 100'000, ways, cut, toroid::direct{}).last == 0);
    CHECK(wrong_elements(3, 1000, ways, cut, toroid::direct{}).last == 0);
  }
  CHECK(counts->truncations == 0);
  cut.truncate_after = 0;
  CHECK(wrong_elements(3, 48 / sizeof(float), support::ways::all, cut, toroid::direct{}).last == 0);
  CHECK(wrong_elements(3, 52 / sizeof(float), support::ways::all, cut, toroid::direct{}).first == 12);
  // Rare cuts spare most calls.
  cut.truncate_one_in = 1'000'000;
  CHECK(wrong_elements(2, 2000, support::ways::through_regions, cut, toroid::direct{}).last == 0);
}

TEST_CASE("Checks of calls and of inputs do not see that a hand-over was cut", "[faults][truncation]") {
  // So says the documentation. Should this ever fail, it has become better than that.
  faults cut = none;
  cut.truncate_one_in = 1;
  for (const toroid::check checking : {toroid::check::calls, toroid::check::data}) {
    const auto range =
        wrong_elements(2, 2000, support::ways::through_regions, cut, toroid::direct{}, {.checking = checking});
    CHECK(range.first < range.last);
  }
}

TEST_CASE("Reads that the kernel cuts or interrupts are gone on with", "[faults][pull]") {
  const support::shared_by_all<fault_counts> counts;
  const auto faults_of = [&](int) {
    faults chosen = none;
    chosen.short_read_one_in = 2;
    chosen.interrupt_read_one_in = 2;
    chosen.counts = &*counts;
    return chosen;
  };
  for (const int ranks : {2, 3})
    on_pulling_processes(ranks, faults_of, [](auto& comm) {
      for (std::uint32_t call = 0; call < 5; ++call) demand_right_sum(comm, call);
      conformance::end_of end(comm);
      const std::size_t least = toroid::detail::least_pulled_bytes / sizeof(conformance::element);
      conformance::check(end, conformance::memory_kind::ordinary, {least, 3 * least - 1}, {{}},
                         conformance::extent::brief);
    });
  CHECK(counts->short_reads > 100);
  CHECK(counts->interrupted_reads > 100);
}

TEST_CASE("Reads that are always cut and interrupted come to an end", "[faults][pull]") {
  const support::shared_by_all<fault_counts> counts;
  const auto faults_of = [&](int) {
    faults chosen = none;
    chosen.short_read_one_in = 1;
    chosen.interrupt_read_one_in = 1;
    chosen.counts = &*counts;
    return chosen;
  };
  on_pulling_processes(2, faults_of, [](auto& comm) { demand_right_sum(comm, 0); });
  CHECK(counts->short_reads > 0);
  CHECK(counts->interrupted_reads > 0);
}

TEST_CASE("A rank whose first read is refused makes all use hand-over regions", "[faults][pull]") {
  for (const int number : {EPERM, ENOSYS, EFAULT}) {
    for (const std::uint64_t from : {1u, 2u}) {
      const support::shared_by_all<refusal_seen> seen;
      const support::shared_by_all<fault_counts> counts;
      refuse_reads(from, number, "", seen, counts);
      CHECK(seen->good == 3);
      CHECK(counts->refused_reads == 1);  // it has asked once, and never again
    }
  }
}

TEST_CASE("A read that is refused later ends the call on all ranks, and all say why", "[faults][pull]") {
  // The proof takes two reads; then come those of the calls.
  for (const std::uint64_t from : {3u, 4u, 7u, 20u}) {
    const support::shared_by_all<refusal_seen> seen(2);
    const support::shared_by_all<fault_counts> counts(2);
    refuse_reads(from, EPERM, "Operation not permitted", seen, counts);
    INFO("from read " << from);
    CHECK(seen->system_errors == 1);
    CHECK(seen->lost == 2);
    CHECK(seen->strange + seen->good == 0);
    CHECK(counts->refused_reads == 1);
  }
  for (const int number : {EFAULT, ESRCH}) {
    const support::shared_by_all<refusal_seen> seen;
    const support::shared_by_all<fault_counts> counts;
    refuse_reads(5, number, number == EFAULT ? "Bad address" : "No such process", seen, counts);
    CHECK(seen->lost == 3);
    CHECK(seen->system_errors + seen->strange + seen->good == 0);
  }
}

TEST_CASE("A segment that is shorter than asked for, or can become so, is refused", "[shm]") {
  using toroid::transport::file_descriptor;
  using toroid::transport::memory_segment;
  constexpr std::size_t wanted = 1 << 16;
  const auto made = [](std::size_t bytes, int seals) {
    file_descriptor file(::memfd_create("short", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(::ftruncate(file.get(), static_cast<off_t>(bytes)) == 0);
    REQUIRE(::fcntl(file.get(), F_ADD_SEALS, seals) == 0);
    return file;
  };
  CHECK(memory_segment(made(wanted, F_SEAL_SHRINK), wanted, {}).size() == wanted);
  const auto refused = [&](std::size_t bytes, int seals) {
    return support::text_of<toroid::system_error>([&] { memory_segment(made(bytes, seals), wanted, {}); });
  };
  support::demand_words(refused(wanted - 1, F_SEAL_SHRINK), "a peer's segment", std::to_string(wanted));
  support::demand_words(refused(0, F_SEAL_SHRINK), "a peer's segment", std::to_string(wanted));
  support::demand_words(refused(wanted, F_SEAL_GROW), "a peer's segment", std::to_string(wanted));
}
