// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/transport/futex.hpp>
#include <toroid/transport/mapped_transport.hpp>
#include <toroid/transport/threads.hpp>
#include <toroid/transport/waiting.hpp>

#include <signal.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace toroid::transport {

/// How a rank ends that fault_injecting lets die.
enum class death {
  throws,  ///< what it does throws rank_has_died: its peers are told at once
  silent,  ///< it does nothing more, and nobody is told; when its peers have given up or left, it throws rank_has_died
  exits,   ///< its process ends by _exit(1)
  killed,  ///< its process ends by SIGKILL
};

/// What a rank throws when fault_injecting lets it die. Not one of the library's errors.
class rank_has_died : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Counts what fault_injecting has done. Where it lies in memory that ranks share, it may serve several of them.
struct fault_counts {
  std::atomic<std::uint64_t> signals{0};          ///< asked of the transport, whatever became of them
  std::atomic<std::uint64_t> waits{0};            ///< asked of the transport
  std::atomic<std::uint64_t> delays{0};           ///< places where a rank was held up
  std::atomic<std::uint64_t> interruptions{0};    ///< sleeps cut short
  std::atomic<std::uint64_t> dropped_entries{0};  ///< signals dropped that would have announced an entry into a call
  std::atomic<std::uint64_t> dropped_steps{0};    ///< other signals dropped
  std::atomic<std::uint64_t> truncations{0};      ///< hand-overs whose tail did not arrive
  std::atomic<std::uint64_t> deaths{0};
  std::atomic<std::uint64_t> short_reads{0};
  std::atomic<std::uint64_t> interrupted_reads{0};
  std::atomic<std::uint64_t> refused_reads{0};
};

/// What fault_injecting does to a rank, and how often. Zero leaves a kind of fault out. All but the first three options
/// are off unless set.
///
/// Numbers of the form `..._one_in = n` mean one in n on average, at random. Numbers of the form `..._from = n` and
/// `dies_at = n` count the rank's own signals, and so on, from 1 over all its calls.
struct faults {
  std::uint64_t seed = 1;  ///< the same seed gives the same faults, whatever the ranks' speed; see interrupt_one_in

  /// Microseconds; each delay is drawn from [0, longest_delay).
  int longest_delay = 200;
  /// Of so many places where a rank may be held up (before a signal, before and after a wait), one holds it up. Late
  /// ranks change no result; a wait that lasts longer than options.timeout gives timeout_error.
  int delay_one_in = 8;
  /// Of so many sleeps inside waits, one is cut short, as signals do. Changes no result and no deadline. How often a
  /// rank sleeps depends on its speed, so these are drawn apart from the other faults.
  int interrupt_one_in = 4;

  /// From this signal on none becomes visible to the peers: the flag keeps its value. All ranks, also this one, get
  /// timeout_error by their next call but one at the latest, and its text names this rank. A result that is returned as
  /// good is right.
  ///
  /// Among threads, a rank whose entry into a call was dropped may be inside its peers' buffers without their knowing
  /// it, so those have to outlive all ranks: no memory loses a store, and the library does not guard against it.
  std::uint64_t drop_from = 0;
  /// Of so many signals, one does not become visible; the next one of the same flag covers it. Calls end as with
  /// drop_from, or well.
  int drop_one_in = 0;

  /// Of so many hand-overs, one is cut: its bytes from truncate_after on arrive as 0x7f. A hand-over is what a rank has
  /// put into one hand-over region, or a message beside its flag. Nothing in the library notices: signatures are of
  /// calls, not of data, and check::data looks at inputs only. Results are wrong without an error. So this option is
  /// for testing what is to notice it: a program's own checks, or a test of such tests. What ranks read and write in
  /// place has no hand-over to cut; what the kernel copies is cut by short_read_one_in, and that is noticed.
  int truncate_one_in = 0;
  /// Bytes of a cut hand-over that arrive. Of a message beside its flag, the first 48 always do: they share the flag's
  /// cache line.
  std::size_t truncate_after = 0;

  /// The rank ends at this one of its signals and waits, counted together, before it takes place.
  std::uint64_t dies_at = 0;
  /// How it ends. The peers get peer_lost, or timeout_error where the death is silent; the text names this rank.
  death dies_by = death::throws;

  /// Of so many reads of a peer's memory by the kernel, one gives fewer bytes than asked for, at least one. Reading
  /// goes on where it has stopped: changes no result.
  int short_read_one_in = 0;
  /// Of so many reads, one is interrupted (EINTR) and is made again. Changes no result.
  int interrupt_read_one_in = 0;
  /// From this read on the kernel refuses all. If that is while the rank proves that it can read (its first p - 1
  /// reads, or more if peers come late; in its first call of 32 KiB or more of ordinary memory), all ranks use
  /// hand-over regions instead. Later the call fails: this rank gets system_error, or peer_lost where the reason says
  /// that the peer's memory is gone (EFAULT, ESRCH); all others get peer_lost. All texts tell the reason.
  std::uint64_t refuse_reads_from = 0;
  /// The reason of the refusal, an error number.
  int refuse_reads_with = EPERM;

  /// Where to count, if anywhere; has to outlive the rank.
  fault_counts* counts = nullptr;
};

namespace detail {

inline void pause_for(std::int64_t nanoseconds) noexcept {
  timespec length{};
  length.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000);
  length.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000);
  ::nanosleep(&length, nullptr);
}

/// A sleep that a signal ends early: nobody has rung, time is not over.
inline int interrupted_sleep(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                             std::int64_t nanoseconds) noexcept {
  constexpr std::int64_t until_the_signal = 20'000;
  const int status = futex_wait(word, expected, nanoseconds < until_the_signal ? nanoseconds : until_the_signal);
  return status == ETIMEDOUT ? EINTR : status;
}

/// Draws whether a fault happens (splitmix64).
class fault_dice {
 public:
  explicit fault_dice(std::uint64_t seed) noexcept : m_state(seed) {}
  /// In [0, limit).
  std::uint64_t below(std::uint64_t limit) noexcept { return draw() % limit; }
  bool one_in(int n) noexcept { return n > 0 && below(static_cast<std::uint64_t>(n)) == 0; }

 private:
  std::uint64_t draw() noexcept {
    std::uint64_t z = (m_state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  std::uint64_t m_state;
};

}  // namespace detail

/// A transport with faults, to bring out what a program or the library makes of them: ranks that are late, sleeps that
/// signals interrupt, flags and data that get lost, ranks that die, reads of other processes' memory that fail. Which,
/// how often, and how they show: see faults.
///
/// @tparam Base  a mapped_transport over mapped_endpoint
///
/// A model of mapped_transport, and of pulling_transport where Base is; for tests of programs and of the library. Ranks
/// draw from streams of their own, so one seed serves all of a group.
///
///     using faulty = toroid::transport::fault_injecting<toroid::transport::threads>;
///     toroid::communicator<faulty> comm(faulty(toroid::transport::threads(rank, memory, how), {.seed = 7}), options);
template <mapped_transport Base>
class fault_injecting : public Base {
 public:
  explicit fault_injecting(Base base, const faults& chosen = {})
      : Base(std::move(base)), m_faults(chosen), m_calls(stream(0)), m_sleeps(stream(1)), m_reads(stream(2)) {
    if (m_faults.truncate_one_in > 0) m_handed_over = std::make_unique<std::byte[]>(region_count * region_bytes());
  }

  using base_transport = Base;
  /// The same faults, counted anew, around another end: of a group that is split off, say.
  fault_injecting around(Base other) const { return fault_injecting(std::move(other), m_faults); }

  using Base::box;
  using Base::rank;
  using Base::region_bytes;
  using Base::size;

  /// As the base's, perhaps late, perhaps lost, perhaps with less data than was to be announced by it.
  /// @throws rank_has_died
  std::uint64_t signal(std::atomic<std::uint64_t>& flag, std::uint64_t value) {
    count(&fault_counts::signals);
    maybe_die();
    maybe_delay();
    mailbox& mine = box(rank());
    entry* announced = nullptr;
    for (entry& one : mine.entries)
      if (&one.sequence == &flag) announced = &one;
    if (m_faults.truncate_one_in > 0) hand_over(announced);
    const bool one_lost = m_calls.one_in(m_faults.drop_one_in);
    ++m_signals;
    if (!one_lost && (m_faults.drop_from == 0 || m_signals < m_faults.drop_from)) return Base::signal(flag, value);
    count(announced != nullptr ? &fault_counts::dropped_entries : &fault_counts::dropped_steps);
    return this->group().attention.load(std::memory_order_seq_cst);
  }

  /// As the base's, perhaps late before or after it, perhaps with interrupted sleeps.
  /// @throws rank_has_died; and what the base throws
  void wait(int peer, const std::atomic<std::uint64_t>& flag, std::uint64_t value, const wait_context& context) {
    count(&fault_counts::waits);
    maybe_die();
    maybe_delay();
    const auto sleep = [this](const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                              std::int64_t nanoseconds) noexcept {
      if (!m_sleeps.one_in(m_faults.interrupt_one_in)) return detail::futex_wait(word, expected, nanoseconds);
      count(&fault_counts::interruptions);
      return detail::interrupted_sleep(word, expected, nanoseconds);
    };
    Base::wait_with(sleep, peer, flag, value, context);
    maybe_delay();
  }

  /// Where hand-overs are cut, this rank's own regions lie apart, and signal() copies as much as arrives.
  std::byte* region(int of, int index) const noexcept {
    if (m_handed_over == nullptr || of != rank()) return Base::region(of, index);
    m_filled |= 1u << index;
    return m_handed_over.get() + static_cast<std::size_t>(index) * region_bytes();
  }

  bool can_pull() noexcept requires pulling_transport<Base> {
    return Base::can_pull_with([this](auto... arguments) noexcept { return read(arguments...); });
  }
  void pull(int from, std::uint64_t address, std::size_t bytes, std::byte* to,
            const wait_context& context) requires pulling_transport<Base> {
    Base::pull_with([this](auto... arguments) noexcept { return read(arguments...); }, from, address, bytes, to,
                    context);
  }

 private:
  static_assert(region_count <= 32);

  std::uint64_t stream(std::uint64_t which) const noexcept {
    return m_faults.seed * 0xd6e8feb86659fd93u + static_cast<std::uint64_t>(rank()) + which * 0xbf58476d1ce4e5b9u;
  }
  void count(std::atomic<std::uint64_t> fault_counts::*what) noexcept {
    if (m_faults.counts != nullptr) (m_faults.counts->*what).fetch_add(1, std::memory_order_relaxed);
  }

  void maybe_delay() noexcept {
    if (m_faults.longest_delay <= 0 || !m_calls.one_in(m_faults.delay_one_in)) return;
    count(&fault_counts::delays);
    const std::uint64_t microseconds = m_calls.below(static_cast<std::uint64_t>(m_faults.longest_delay));
    detail::pause_for(static_cast<std::int64_t>(microseconds) * 1000);
  }

  void maybe_die() {
    if (++m_places != m_faults.dies_at || m_faults.dies_at == 0) return;
    count(&fault_counts::deaths);
    switch (m_faults.dies_by) {
      case death::exits:
        ::_exit(1);
      case death::killed:
        ::kill(::getpid(), SIGKILL);
        break;
      case death::silent:
        be_silent();
        break;
      case death::throws:
        break;
    }
    throw rank_has_died("rank " + std::to_string(rank()) + " was to die at its " + std::to_string(m_places) +
                        ". signal or wait");
  }
  /// Until nobody needs this rank any more: only then may its thread end without having told anyone.
  void be_silent() const noexcept {
    const auto left = [this] {
      for (int r = 0; r < size(); ++r)
        if (r != rank() && box(r).left.load(std::memory_order_acquire) == 0) return false;
      return true;
    };
    while (!this->broken() && !left()) detail::pause_for(1'000'000);
  }

  /// Lets what this rank has to hand over arrive, or the front of it.
  /// @param announced  the entry that the coming signal announces, if it does
  void hand_over(entry* announced) noexcept {
    constexpr std::size_t with_the_flag = 48;
    constexpr int garbage = 0x7f;
    static_assert(with_the_flag >= sizeof(buffer_addresses));
    if (announced != nullptr && m_calls.one_in(m_faults.truncate_one_in)) {
      const std::size_t whole = m_faults.truncate_after > with_the_flag ? m_faults.truncate_after : with_the_flag;
      if (whole < inline_bytes) {
        count(&fault_counts::truncations);
        std::memset(announced->payload + whole, garbage, inline_bytes - whole);
      }
    }
    for (int index = 0; index < region_count; ++index) {
      if ((m_filled & 1u << index) == 0) continue;
      std::size_t whole = region_bytes();
      if (m_faults.truncate_after < whole && m_calls.one_in(m_faults.truncate_one_in)) {
        count(&fault_counts::truncations);
        whole = m_faults.truncate_after;
      }
      std::byte* const shared = Base::region(rank(), index);
      std::memcpy(shared, m_handed_over.get() + static_cast<std::size_t>(index) * region_bytes(), whole);
      std::memset(shared + whole, garbage, region_bytes() - whole);
    }
    m_filled = 0;
  }

  /// As the base's read_process, perhaps short, interrupted or refused.
  ssize_t read(std::int32_t process, std::byte* to, std::uint64_t address, std::size_t bytes) noexcept {
    ++m_read_calls;
    if (m_faults.refuse_reads_from != 0 && m_read_calls >= m_faults.refuse_reads_from) {
      count(&fault_counts::refused_reads);
      errno = m_faults.refuse_reads_with;
      return -1;
    }
    m_read_interrupted = !m_read_interrupted && m_reads.one_in(m_faults.interrupt_read_one_in);  // never twice in a row
    if (m_read_interrupted) {
      count(&fault_counts::interrupted_reads);
      errno = EINTR;
      return -1;
    }
    if (bytes > 1 && m_reads.one_in(m_faults.short_read_one_in)) {
      count(&fault_counts::short_reads);
      bytes = 1 + static_cast<std::size_t>(m_reads.below(bytes - 1));
    }
    return Base::read_process(process, to, address, bytes);
  }

  faults m_faults;
  detail::fault_dice m_calls, m_sleeps, m_reads;
  std::uint64_t m_signals = 0;
  std::uint64_t m_places = 0;  ///< signals and waits
  std::uint64_t m_read_calls = 0;
  bool m_read_interrupted = false;
  std::unique_ptr<std::byte[]> m_handed_over;  ///< where hand-overs are cut: own regions before they are handed over
  mutable std::uint32_t m_filled = 0;          ///< regions that this rank has asked for since its last signal
};

static_assert(mapped_transport<fault_injecting<threads>>);

}  // namespace toroid::transport
