// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/call.hpp>
#include <toroid/communicator/fork_guard.hpp>
#include <toroid/communicator/options.hpp>
#include <toroid/communicator/path_chooser.hpp>
#include <toroid/communicator/staging_memory.hpp>
#include <toroid/communicator/started_calls.hpp>
#include <toroid/core/detail/cache_size.hpp>
#include <toroid/core/detail/instruction_sets.hpp>
#include <toroid/core/error.hpp>
#include <toroid/topology/block.hpp>
#include <toroid/transport/futex.hpp>
#include <toroid/transport/mapped_endpoint.hpp>
#include <toroid/transport/mapped_transport.hpp>

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace toroid::detail {

/// What a rank remembers between calls over a mapped transport: how many there were, whether the group still works,
/// and the rules of entering and failing a call.
template <mapped_transport Transport>
class mapped_session {
 public:
  mapped_session(Transport transport, const options& o)
      : m_transport(std::move(transport)),
        m_options(o),
        m_sources(static_cast<std::size_t>(m_transport.size()) + 1),
        m_destinations(static_cast<std::size_t>(m_transport.size()) + 1),
        m_instructions(detected_instruction_set()),
        m_fast_strings(detail::has_fast_strings()),
        m_non_temporal_bytes(detail::bytes_beyond_caches(m_transport.size())) {}

  Transport& transport() noexcept { return m_transport; }
  const Transport& transport() const noexcept { return m_transport; }
  const options& chosen() const noexcept { return m_options; }
  instruction_set instructions() const noexcept { return m_instructions; }
  bool has_fast_strings() const noexcept { return m_fast_strings; }
  /// Vectors from this size on are not expected to be in a cache when a call begins, nor to be read from one after it.
  std::size_t non_temporal_bytes() const noexcept { return m_non_temporal_bytes; }
  /// Memory for a run of values on their way to a slot; stays in the core's nearest cache.
  std::span<std::byte> scratch() noexcept { return m_scratch; }
  transport::wait_context& context() noexcept { return m_context; }
  std::uint64_t call() const noexcept { return m_call; }
  path_chooser& chooser() noexcept { return m_chooser; }
  const std::byte** sources() noexcept { return m_sources.data(); }
  std::byte** destinations() noexcept { return m_destinations.data(); }

  /// Memory that peers can reach.
  /// @throws usage_error  in a copy forked from the rank; what the transport throws
  void* allocate(std::size_t bytes) {
    if (!m_guard.original()) refuse_copy();
    return m_transport.allocate(bytes);
  }
  /// A copy forked from the rank gives nothing back: the rank still uses that memory.
  void deallocate(void* memory, std::size_t bytes) {
    if (m_guard.original()) m_transport.deallocate(memory, bytes);
  }

  /// Memory that peers can reach, for calls whose elements do not travel from where they are: kept until the end.
  /// @throws usage_error  if another thread is inside a call; in a copy forked from the rank, which may share it; what
  ///         allocate() throws
  std::byte* staging(std::size_t bytes) {
    if (m_busy.load(std::memory_order_relaxed) == activity::blocking_call && m_options.checking != check::none)
        [[unlikely]]
      refuse_second_thread();
    if (!m_guard.original()) [[unlikely]]
      refuse_copy();
    return m_staging.grown_to(bytes, *this);
  }
  std::size_t staging_bytes() const noexcept { return m_staging.bytes(); }

  /// Marks the time that a thread spends in a call.
  class [[nodiscard]] in_call {
   public:
    explicit in_call(std::atomic<activity>& busy) noexcept : m_busy(&busy) {
      busy.store(activity::blocking_call, std::memory_order_relaxed);
    }
    in_call(in_call&& other) noexcept : m_busy(std::exchange(other.m_busy, nullptr)) {}
    in_call& operator=(in_call&&) = delete;
    ~in_call() {
      if (m_busy != nullptr) m_busy->store(activity::none, std::memory_order_release);
    }

   private:
    std::atomic<activity>* m_busy;
  };

  /// Begins a call: after this the rank may write its entry, and nobody reads the one before last any more.
  /// @throws usage_error  if another thread is inside a call; what has broken the group
  in_call begin(const call_identity& identity) {
    // A look, not a lock: an exchange would cost a short call a tenth of its time, and misuse is caught soon enough.
    if (m_busy.load(std::memory_order_acquire) != activity::none) [[unlikely]]
      settle();
    in_call mark(m_busy);
    open(identity);
    return mark;
  }

  /// The same for a call that was started: what it may do, and when, is the queue's business.
  /// @pre  previous_entries_are_there(), unless the caller may wait
  void open(const call_identity& identity) {
    if (!m_guard.original()) [[unlikely]]
      refuse_copy();
    if (m_failure) [[unlikely]]
      std::rethrow_exception(m_failure);
    m_context.operation = name_of(identity.collective);
    m_context.call = ++m_call;
    m_context.step = 0;
    m_context.bytes_done = 0;
    m_context.at = identity.at;
    m_touching_end = 0;
    m_lends_buffers = false;
    if (m_all_entered + 1 < m_call) [[unlikely]]
      wait_for_previous_entries();
    m_now = identity.signature();
    m_flaw_rank = -1;
  }

  /// Whether open() would not have to wait for a peer; if it would, which flag of which peer has not come.
  transport::awaited_flag missing_previous_entry() noexcept {
    if (m_failure || m_all_entered == m_call) return {};
    return missing_entry(m_call);
  }
  /// The entry into a call that has not come yet, if any.
  transport::awaited_flag missing_entry() noexcept { return missing_entry(m_call); }

  /// The calls in flight; made when first asked for.
  /// @throws usage_error  if another thread is inside a blocking call, or in a copy forked from the rank
  started_calls& started() {
    if (!m_guard.original()) refuse_copy();
    if (m_busy.load(std::memory_order_acquire) == activity::blocking_call && m_options.checking != check::none)
      refuse_second_thread();
    if (!m_started) m_started = started_calls_holder(new started_calls(m_busy, m_guard));
    return *m_started;
  }
  /// Bytes that are held for them.
  std::size_t started_bytes() const noexcept { return m_started ? m_started->bytes() : 0; }
  started_calls_holder hold_started() const noexcept { return m_started.another(); }

  /// Ends a started call, and with it the group, because the communicator ends.
  std::exception_ptr give_up_started() noexcept {
    try {
      if (m_failure) std::rethrow_exception(m_failure);
      guarded([&] { throw peer_lost(started_text()); });
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }
  /// From any thread: makes the one that drives a started call come back.
  void interrupt() noexcept {
    fail("rank " + std::to_string(m_transport.rank()) + " has left the communicator with calls in flight");
    m_transport.wake_self();
  }

  transport::entry& own_entry() noexcept { return entry_of(m_transport.rank()); }
  transport::entry& entry_of(int rank) noexcept { return m_transport.box(rank).entries[m_call & 1]; }

  /// Publishes the own entry.
  void publish_entry() {
    transport::entry& mine = own_entry();
    mine.signature = m_now;
    const std::uint64_t attention = m_transport.signal(mine.sequence, m_call);
    // A rank that fails a call waits for those inside; whoever enters later must see the mark here and touch nothing.
    if ((attention & transport::group_state::broken_bit) != 0) [[unlikely]]
      m_transport.throw_broken(m_context);
  }

  /// Waits until `rank` has entered the same call.
  transport::entry& wait_for_entry(int rank, const call_identity& identity) {
    transport::entry& theirs = entry_of(rank);
    m_transport.wait(rank, theirs.sequence, m_call, m_context);
    if (m_options.checking != check::none && theirs.signature != m_now) [[unlikely]]
      throw_mismatch(rank, identity, m_call);
    if (m_options.checking == check::data) [[unlikely]]
      note_flaw(rank, m_transport.box(rank).flaw[m_call & 1]);
    return theirs;
  }

  /// With check::data: searches the own input. Before publish_entry().
  ///
  /// @param details  if not null, they say instead what to search
  void inspect(const std::byte* input, std::size_t count, std::size_t (*first_flaw)(const std::byte*, std::size_t),
               const call_details* details = nullptr) {
    if (m_options.checking == check::data) [[unlikely]]
      search({input, count, first_flaw}, details);
  }

  /// The same for a part of it, the number of which counts from the start of the input.
  /// @return whether it has a flaw
  bool inspect_part(const std::byte* input, block part, std::size_t size,
                    std::size_t (*first_flaw)(const std::byte*, std::size_t)) {
    if (m_options.checking != check::data || part.count == 0) [[likely]]
      return false;
    inspect(input + part.begin * size, part.count, first_flaw);
    std::uint64_t& mine = m_transport.box(m_transport.rank()).flaw[m_call & 1];
    if (mine == 0) return false;
    mine += part.begin;
    m_flaw_index = mine - 1;
    return true;
  }

  /// A peer sends this rank another number of elements than it expects.
  [[noreturn, gnu::noinline, gnu::cold]] void refuse_counts(int rank, const call_identity& identity, std::size_t sent,
                                                            std::size_t expected) {
    const std::string text = "ranks disagree in call " + std::to_string(m_call) + ": rank " + std::to_string(rank) +
                             " sends " + std::to_string(sent) + " elements to rank " +
                             std::to_string(m_transport.rank()) + ", which expects " + std::to_string(expected) +
                             " in " + identity.describe();
    m_transport.break_group(transport::failure::mismatch, rank, text);
    throw mismatch_error("toroid: " + text);
  }

  /// With check::data, once entries have been waited for: all ranks that have heard of a flaw throw the same error, and
  /// the communicator stays whole.
  void refuse_flaws(const call_identity& identity) const {
    if (m_flaw_rank < 0) [[likely]]
      return;
    throw usage_error(std::string("toroid: ") + name_of(identity.collective) + " at " + identity.at.file + ":" +
                      std::to_string(identity.at.line) + ": the input of rank " + std::to_string(m_flaw_rank) +
                      " is not finite at " + place_of(m_flaw_index, identity.details));
  }

  /// Ends a call: if this rank has not heard of all others in it, the next will, and may have to say what this was.
  void end(const call_identity& identity) noexcept {
    if (m_all_entered == m_call) return;
    m_unheard = identity;
    m_unheard.details = nullptr;  // which end with the call
  }

  /// To be called once entries of all ranks have been waited for.
  void all_have_entered() noexcept { m_all_entered = m_call; }

  /// Numbers the steps of a call: progress base + t + 1 means that all before time t are done.
  std::uint64_t base() const noexcept { return m_ticks; }
  /// From now until the call ends peers may be inside the caller's buffers.
  void lends_buffers() noexcept { m_lends_buffers = true; }
  void touching_ends_at(std::uint64_t progress) noexcept { m_touching_end = progress; }
  void advance(std::uint64_t ticks) noexcept { m_ticks += ticks; }

  /// Runs the moving part of a call. If it throws, the group is broken, and it only returns to the caller once no peer
  /// can be inside the caller's buffers any more.
  template <class Body>
  void guarded(Body&& body) {
    try {
      body();
    } catch (...) {
      give_up();
      drain();
      throw;
    }
  }
  /// The same for a rank that must not wait: only once no peers_are_inside() may it return to the caller.
  template <class Body>
  void guarded_without_waiting(Body&& body) {
    try {
      body();
    } catch (...) {
      give_up();
      throw;
    }
  }

  /// Whether the group has failed while peers may be reading or writing the caller's buffers in this call. Those that
  /// come later find the group broken before they touch anything.
  bool peers_are_inside() const noexcept {
    if (!Transport::must_drain || !m_lends_buffers || !m_failure) return false;
    for (int r = 0; r < m_transport.size(); ++r)
      if (r != m_transport.rank() && is_inside(m_transport.box(r))) return true;
    return false;
  }
  /// Waits for them. They may be waiting for what this thread has begun elsewhere.
  void drain() noexcept {
    while (peers_are_inside())
      if (transport::background::of_this_thread().advance() != transport::background_task::outcome::moved)
        sched_yield();
  }

  /// Tells the peers that this rank will take part in nothing any more. Calls in flight end with an error.
  void leave() noexcept {
    if (m_started) m_started->close();
    if (!m_guard.original()) return;
    m_transport.box(m_transport.rank()).left.store(1, std::memory_order_release);  // pairs with long waits
    m_transport.order_against_signals();
    m_transport.wake_sleepers();
  }

  /// Breaks the group because this rank's own code has failed.
  void fail(const std::string& why) noexcept {
    if (!m_guard.original()) return;
    m_transport.break_group(transport::failure::lost, m_transport.rank(), why);
  }

  /// Starts counting elsewhere, to test what happens after a great many calls. Every rank does so before the first.
  void start_at(std::uint64_t calls, std::uint64_t ticks) noexcept {
    m_call = m_all_entered = calls;
    m_ticks = ticks;
    transport::mailbox& mine = m_transport.box(m_transport.rank());
    for (auto& entry : mine.entries) entry.sequence.store(calls, std::memory_order_release);
    mine.progress.store(ticks, std::memory_order_release);
  }

  /// Breaks the group on the caller's wish; from any thread.
  void abort() noexcept { fail("rank " + std::to_string(m_transport.rank()) + " has aborted"); }

 private:
  [[noreturn, gnu::noinline, gnu::cold]] static void refuse_second_thread() {
    throw usage_error("toroid: two threads use one communicator at the same time; give each its own");
  }
  [[noreturn, gnu::noinline, gnu::cold]] static void refuse_copy() {
    throw usage_error("toroid: this process was forked from a rank and cannot speak for it");
  }

  /// The index of the first element, counted from 1 over all runs, that is not finite; 0 if all are.
  static std::uint64_t flaw_in(std::span<const inspected_run> runs) {
    std::uint64_t before = 0;
    for (const inspected_run& run : runs) {
      const std::size_t index =
          run.first_flaw != nullptr && run.count != 0 ? run.first_flaw(run.elements, run.count) : run.count;
      if (index < run.count) return before + index + 1;
      before += run.count;
    }
    return 0;
  }
  /// "index 3", of one buffer or of one of several.
  static std::string place_of(std::uint64_t index, const call_details* details) {
    if (details == nullptr || !details->fused) return "index " + std::to_string(index);
    std::size_t buffer = 0;
    while (buffer + 1 < details->buffers && index >= details->lengths[buffer]) index -= details->lengths[buffer++];
    return "index " + std::to_string(index) + " of buffer " + std::to_string(buffer);
  }

  /// Another call has not ended: those in flight are to end first, and two threads are one too many.
  [[gnu::noinline, gnu::cold]] void settle() {
    if (!m_guard.original()) refuse_copy();
    if (m_busy.load(std::memory_order_acquire) == activity::started_calls)
      m_started->finish_all();
    else if (m_options.checking != check::none)
      refuse_second_thread();
  }

  transport::awaited_flag missing_entry(std::uint64_t call) noexcept {
    for (int r = 0; r < m_transport.size(); ++r) {
      if (r == m_transport.rank()) continue;
      const std::atomic<std::uint64_t>& flag = m_transport.box(r).entries[call & 1].sequence;
      if (flag.load(std::memory_order_acquire) < call) return {r, &flag, call};
    }
    return {};
  }

  std::string started_text() const {
    return transport::mapped_endpoint::describe(m_context) +
           ": the communicator was destroyed while calls were in flight";
  }

  [[gnu::noinline, gnu::cold]] void search(const inspected_run& only, const call_details* details) {
    std::uint64_t& mine = m_transport.box(m_transport.rank()).flaw[m_call & 1];
    mine = details == nullptr ? flaw_in({&only, 1}) : flaw_in({details->inspected, details->inspected_runs});
    note_flaw(m_transport.rank(), mine);
  }

  void note_flaw(int rank, std::uint64_t flaw) noexcept {
    if (flaw == 0 || (m_flaw_rank >= 0 && m_flaw_rank < rank)) return;
    m_flaw_rank = rank;
    m_flaw_index = flaw - 1;
  }

  /// An entry may be overwritten two calls later, when all have left it: they have if they entered the next call.
  [[gnu::noinline]] void wait_for_previous_entries() {
    const std::uint64_t previous = m_call - 1;
    guarded([&] {
      for (int r = 0; r < m_transport.size(); ++r) {
        if (r == m_transport.rank()) continue;
        transport::entry& theirs = m_transport.box(r).entries[previous & 1];
        m_transport.wait(r, theirs.sequence, previous, m_context);
        if (m_options.checking != check::none && theirs.signature != m_now) throw_mismatch(r, m_unheard, previous);
      }
    });
    m_all_entered = previous;
  }

  [[noreturn, gnu::noinline, gnu::cold]] void throw_mismatch(int rank, const call_identity& identity,
                                                             std::uint64_t call) {
    // A rank that has failed the group and goes on to its next call has not disagreed with anyone.
    const transport::group_state& group = m_transport.group();
    const bool over_this = group.reason_state.load(std::memory_order_acquire) == 2 &&
                           group.reason_kind == transport::failure::mismatch;  // pairs with mark_broken's release
    if (m_transport.broken() && !over_this) m_transport.throw_broken(m_context);
    transport::mailbox& mine = m_transport.box(m_transport.rank());
    const std::string own = identity.describe();
    std::strncpy(mine.description, own.c_str(), sizeof mine.description - 1);
    mine.described.store(m_call, std::memory_order_release);  // pairs with the acquire load below
    const transport::mailbox& other = m_transport.box(rank);
    const std::int64_t patience = 200'000'000;
    const std::int64_t began = transport::detail::monotonic_nanoseconds();
    bool described = false;
    while (!(described = other.described.load(std::memory_order_acquire) >= call) &&
           transport::detail::monotonic_nanoseconds() - began < patience)
      sched_yield();
    const std::string text = "ranks disagree in call " + std::to_string(call) + ": rank " +
                             std::to_string(m_transport.rank()) + " called " + own + "; rank " + std::to_string(rank) +
                             " called " + (described ? std::string(other.description) : std::string("something else"));
    m_transport.break_group(transport::failure::mismatch, rank, text);
    throw mismatch_error("toroid: " + text);
  }

  [[gnu::noinline, gnu::cold]] void give_up() noexcept {
    m_failure = std::current_exception();
    transport::mailbox& mine = m_transport.box(m_transport.rank());
    mine.abandoned.store(m_call, std::memory_order_release);  // pairs with is_inside()
    if (!m_transport.broken())
      m_transport.break_group(transport::failure::lost, m_transport.rank(),
                              "rank " + std::to_string(m_transport.rank()) + " has failed in " + m_context.operation);
    m_transport.order_against_signals();
    m_transport.wake_sleepers();
  }

  bool is_inside(const transport::mailbox& box) const noexcept {
    if (box.entries[m_call & 1].sequence.load(std::memory_order_seq_cst) != m_call) return false;
    if (box.abandoned.load(std::memory_order_acquire) >= m_call) return false;
    if (box.left.load(std::memory_order_acquire) != 0) return false;
    return m_touching_end == 0 || box.progress.load(std::memory_order_acquire) < m_touching_end;
  }

  Transport m_transport;
  options m_options;
  std::uint64_t m_call = 0;          ///< number of the current or last call
  std::uint64_t m_all_entered = 0;   ///< last call that all ranks are known to have entered
  std::uint64_t m_ticks = 0;         ///< steps counted over all calls
  std::uint64_t m_touching_end = 0;  ///< progress of a peer that is done with the buffers; 0 if not known yet
  bool m_lends_buffers = false;
  std::uint64_t m_now = 0;  ///< signature of this call
  call_identity m_unheard;  ///< the last call in which not all ranks were waited for
  transport::wait_context m_context;
  std::vector<const std::byte*> m_sources;
  std::vector<std::byte*> m_destinations;
  instruction_set m_instructions;
  bool m_fast_strings;
  std::size_t m_non_temporal_bytes;
  static constexpr std::size_t scratch_bytes = 8192;
  std::vector<std::byte> m_scratch = std::vector<std::byte>(scratch_bytes);
  staging_memory m_staging;
  fork_guard m_guard;
  path_chooser m_chooser;
  std::atomic<activity> m_busy{activity::none};
  int m_flaw_rank = -1;  ///< lowest rank whose input is flawed in this call
  std::uint64_t m_flaw_index = 0;
  std::exception_ptr m_failure;
  started_calls_holder m_started;
};

}  // namespace toroid::detail
