// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/call.hpp>
#include <toroid/communicator/fork_guard.hpp>
#include <toroid/communicator/options.hpp>
#include <toroid/communicator/staging_memory.hpp>
#include <toroid/communicator/started_calls.hpp>
#include <toroid/core/detail/instruction_sets.hpp>
#include <toroid/core/error.hpp>
#include <toroid/transport/background.hpp>
#include <toroid/transport/futex.hpp>
#include <toroid/transport/mapped_endpoint.hpp>
#include <toroid/transport/message_buffers.hpp>
#include <toroid/transport/message_transport.hpp>

#include <sched.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace toroid::detail {

/// What a rank remembers between calls over a message transport: how many there were, whether the group still works,
/// the buffers that messages travel in, and the rules of waiting and failing.
template <message_transport Transport>
class message_session {
 public:
  using request = typename Transport::request;
  using buffer = transport::message_buffer<request>;

  message_session(Transport transport, const options& o)
      : m_transport(std::move(transport)),
        m_options(o),
        m_region_bytes(region_bytes_of(m_transport.size(), o)),
        m_sources(static_cast<std::size_t>(m_transport.size()) + 1),
        m_instructions(detected_instruction_set()) {
    if (m_region_bytes > m_transport.largest_message()) m_region_bytes = m_transport.largest_message();
  }
  message_session(const message_session&) = delete;
  message_session& operator=(const message_session&) = delete;
  ~message_session() {
    if (m_guard.original()) m_buffers.give_up(m_transport);
  }

  Transport& transport() noexcept { return m_transport; }
  const Transport& transport() const noexcept { return m_transport; }
  const options& chosen() const noexcept { return m_options; }
  instruction_set instructions() const noexcept { return m_instructions; }
  transport::wait_context& context() noexcept { return m_context; }
  std::uint64_t call() const noexcept { return m_call; }
  /// The most that one rank sends at a time; a message holds a part of it.
  std::size_t region_bytes() const noexcept { return m_region_bytes; }
  const std::byte** sources() noexcept { return m_sources.data(); }
  std::size_t footprint() const noexcept {
    return m_transport.footprint() + sizeof *this + m_buffers.bytes() + m_sources.size() * sizeof(void*) +
           m_staging.bytes() + (m_started ? m_started->bytes() : 0);
  }

  /// Memory for calls whose elements do not travel from where they are: kept until the end.
  /// @throws usage_error  in a copy forked from the rank, which may share it; what allocate() throws
  std::byte* staging(std::size_t bytes) {
    if (!m_guard.original()) [[unlikely]]
      refuse_copy();
    return m_staging.grown_to(bytes, *this);
  }

  /// There is no memory that peers could reach: it is ordinary, so that programs need no second way.
  /// @throws usage_error  in a copy forked from the rank; system_error
  void* allocate(std::size_t bytes) {
    if (!m_guard.original()) refuse_copy();
    if (bytes == 0) return nullptr;
    constexpr std::size_t page = 4096, line = 128;
    const std::size_t alignment = bytes >= page ? page : line;
    void* const memory = ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
    if (memory == nullptr) throw system_error("toroid: allocate: " + std::to_string(bytes) + " bytes were refused");
    try {
      m_allocated.push_back({memory, bytes, alignment});
    } catch (...) {
      ::operator delete(memory, std::align_val_t(alignment));
      throw;
    }
    std::memset(memory, 0, bytes);
    return memory;
  }
  void deallocate(void* memory, std::size_t bytes) {
    if (!m_guard.original() || (memory == nullptr && bytes == 0)) return;
    for (std::size_t i = 0; i < m_allocated.size(); ++i) {
      if (m_allocated[i].memory.get() != memory || m_allocated[i].bytes != bytes) continue;
      m_allocated.erase(m_allocated.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
    throw usage_error("toroid: deallocate: this memory is not from toroid::allocate of this communicator");
  }

  /// Begins a call.
  /// @throws usage_error  in a copy forked from the rank; what has broken the group
  void begin(const call_identity& identity) {
    if (m_busy.load(std::memory_order_acquire) != activity::none) [[unlikely]]
      settle();
    open(identity);
  }

  /// The same for a call that was started: what it may do, and when, is the queue's business.
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
  }

  /// Runs the moving part of a call. If it throws, the group is broken, and the others are told.
  template <class Body>
  void guarded(Body&& body) {
    try {
      look_for_news();
      body();
    } catch (const error& e) {
      give_up(e.what());
      throw;
    } catch (...) {
      give_up("its operator, or memory for messages, has failed");
      throw;
    }
  }

  /// The calls in flight; made when first asked for.
  /// @throws usage_error  in a copy forked from the rank
  started_calls& started() {
    if (!m_guard.original()) refuse_copy();
    if (!m_started) m_started = started_calls_holder(new started_calls(m_busy, m_guard));
    return *m_started;
  }
  started_calls_holder hold_started() const noexcept { return m_started.another(); }

  /// Ends a started call, and with it the group, because the communicator ends.
  std::exception_ptr give_up_started() noexcept {
    try {
      if (m_failure) std::rethrow_exception(m_failure);
      guarded([&] { throw peer_lost(who() + "the communicator was destroyed while calls were in flight"); });
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }
  /// From any thread: makes the one that drives a started call come back.
  void interrupt() noexcept { abort(); }

  /// Whether nothing reads or writes a buffer any more.
  bool test(buffer& b) {
    for (request& r : b.pending)
      if (!m_transport.test(r)) return false;
    b.pending.clear();
    return true;
  }
  /// Throws if a peer has been waited for too long.
  void examine(int peer, std::int64_t waited) const {
    if (waited >= m_options.timeout.count()) throw_timeout(peer);
  }

  buffer& take_buffer(std::size_t bytes) { return m_buffers.take(bytes); }
  void hold(buffer& b) noexcept { ++b.holders; }
  void release(buffer& b) noexcept { m_buffers.release(b); }

  void send(int to, std::size_t key, buffer& from, std::size_t bytes) {
    const int tag = tag_of(key);
    from.pending.reserve(from.pending.size() + 1);  // a request that began must not get lost
    from.pending.push_back(m_transport.start_send(to, tag, from.memory.get(), bytes));
  }
  buffer& receive(int from, std::size_t key, std::size_t bytes) {
    const int tag = tag_of(key);
    buffer& to = take_buffer(bytes);
    to.pending.reserve(1);
    to.pending.push_back(m_transport.start_receive(from, tag, to.memory.get(), bytes));
    return to;
  }

  /// Waits until nothing reads or writes a buffer any more.
  ///
  /// @param peer  the rank waited for
  /// @throws timeout_error, peer_lost, system_error
  void complete(buffer& b, int peer) {
    for (request& r : b.pending)
      if (!m_transport.test(r)) [[unlikely]]
        wait_long(r, peer);
    b.pending.clear();
  }

  /// Nobody is told: whoever waits for this rank learns of it by its deadline. Calls in flight end with an error.
  void leave() noexcept {
    if (m_started) m_started->close();
  }

  /// Breaks the group because this rank's own code has failed.
  void fail(const std::string& why) noexcept {
    if (!m_guard.original() || m_failure) return;
    try {
      throw peer_lost("toroid: " + why);
    } catch (...) {
      give_up(why.c_str());
    }
  }

  /// From any thread: the rank's own thread sees it in its call, or in the next, and tells the others then.
  void abort() noexcept { m_aborted.store(true, std::memory_order_relaxed); }

  /// Starts counting elsewhere, to test what happens after a great many calls. Every rank does so before the first.
  void start_at(std::uint64_t calls, std::uint64_t) noexcept { m_call = calls; }

 private:
  /// What a rank that fails tells all others.
  struct notice {
    std::uint64_t group = 0;  ///< one from another group, which had the same name before, is none
    std::uint32_t is_timeout = 0;
    std::int32_t rank = 0;
    char text[496] = {};
  };
  static constexpr int notice_tag = 0;

  class allocation {
   public:
    struct deleter {
      std::size_t alignment;
      void operator()(void* p) const noexcept { ::operator delete(p, std::align_val_t(alignment)); }
    };
    allocation(void* p, std::size_t n, std::size_t alignment) noexcept : memory(p, deleter{alignment}), bytes(n) {}
    std::unique_ptr<void, deleter> memory;
    std::size_t bytes;
  };

  [[noreturn, gnu::noinline, gnu::cold]] static void refuse_copy() {
    throw usage_error("toroid: this process was forked from a rank and cannot speak for it");
  }

  /// Tags above the one of notices say which of a step's messages it is.
  int tag_of(std::size_t key) const {
    if (key >= static_cast<std::size_t>(m_transport.largest_tag())) [[unlikely]]
      throw system_error("toroid: this algorithm tells more messages apart, on so many ranks, than the " +
                         std::to_string(m_transport.largest_tag()) + " tags of this transport; use another algorithm");
    return static_cast<int>(key) + 1;
  }

  std::string who() const { return transport::mapped_endpoint::describe(m_context) + ": "; }

  /// Throws if the rank is to abort, or another one has failed.
  void look_for_news() {
    if (m_aborted.load(std::memory_order_relaxed)) [[unlikely]]
      throw peer_lost(who() + "rank " + std::to_string(m_transport.rank()) + " has aborted");
    notice news;
    if (m_transport.poll(notice_tag, reinterpret_cast<std::byte*>(&news), sizeof news) < 0) [[likely]]
      return;
    if (news.group != m_transport.identity()) return;
    m_told = true;  // all others are by the one that has failed
    news.text[sizeof news.text - 1] = '\0';
    const std::string text = who() + "rank " + std::to_string(news.rank) + " reports: " + news.text;
    if (news.is_timeout != 0) throw timeout_error(text);
    throw peer_lost(text);
  }

  [[gnu::noinline, gnu::cold]] void wait_long(request& r, int peer) {
    const std::int64_t began = transport::detail::monotonic_nanoseconds();
    transport::background& others = transport::background::of_this_thread();
    constexpr std::int64_t slice = 20'000'000;  // news is looked for at least this often
    while (true) {
      const std::int64_t now = transport::detail::monotonic_nanoseconds();
      const std::int64_t remaining = m_options.timeout.count() - m_context.waited(began, now);
      if (others.empty() ? m_transport.wait(r, now + (slice < remaining ? slice : remaining))
                         : wait_beside(others, r, now + (slice < remaining ? slice : remaining)))
        return;
      look_for_news();
      if (m_context.waited(began, transport::detail::monotonic_nanoseconds()) >= m_options.timeout.count())
        throw_timeout(peer);
    }
  }

  /// Waits, and goes on with what the thread has in flight elsewhere.
  bool wait_beside(transport::background& others, request& r, std::int64_t deadline) {
    using outcome = transport::background_task::outcome;
    constexpr int patience = 200;
    for (int idle = 0; true;) {
      const outcome elsewhere = others.advance();
      if (m_transport.test(r)) return true;
      if (elsewhere < outcome::stuck) return m_transport.wait(r, deadline);
      if (elsewhere == outcome::moved)
        idle = 0;
      else if (++idle < patience)
        sched_yield();
      else {
        const timespec nap{0, 50'000};
        ::nanosleep(&nap, nullptr);
      }
      if (idle % 8 == 7 && transport::detail::monotonic_nanoseconds() >= deadline) return false;
    }
  }

  [[noreturn, gnu::noinline, gnu::cold]] void throw_timeout(int peer) const {
    throw timeout_error(who() + "no answer within " + std::to_string(m_options.timeout.count() / 1'000'000) +
                        " ms in step " + std::to_string(m_context.step) + " after " +
                        std::to_string(m_context.bytes_done) + " bytes; rank " + std::to_string(m_transport.rank()) +
                        " waited for rank " + std::to_string(peer));
  }

  /// Another call has not ended: those in flight are to end first.
  [[gnu::noinline, gnu::cold]] void settle() {
    if (!m_guard.original()) refuse_copy();
    if (m_started) m_started->finish_all();
  }

  /// @pre  inside a handler
  [[gnu::noinline, gnu::cold]] void give_up(const char* why) noexcept {
    m_failure = std::current_exception();
    if (!std::exchange(m_told, true)) tell_others(why);
    m_transport.abandon();
  }

  void tell_others(const char* why) noexcept {
    try {
      notice news;
      news.group = m_transport.identity();
      try {
        std::rethrow_exception(m_failure);
      } catch (const timeout_error&) {
        news.is_timeout = 1;
      } catch (...) {
      }
      news.rank = m_transport.rank();
      constexpr const char* prefix = "toroid: ";
      std::strncpy(news.text, why + (std::strncmp(why, prefix, 8) == 0 ? 8 : 0), sizeof news.text - 1);
      buffer& b = m_buffers.take(sizeof news);  // never given back
      std::memcpy(b.memory.get(), &news, sizeof news);
      b.pending.reserve(static_cast<std::size_t>(m_transport.size()));
      for (int r = 0; r < m_transport.size(); ++r)
        if (r != m_transport.rank())
          b.pending.push_back(m_transport.start_send(r, notice_tag, b.memory.get(), sizeof news));
    } catch (...) {  // then the others have their deadlines
    }
  }

  Transport m_transport;
  options m_options;
  std::size_t m_region_bytes;
  transport::message_buffers<Transport> m_buffers;
  std::vector<allocation> m_allocated;
  std::uint64_t m_call = 0;  ///< number of the current or last call
  transport::wait_context m_context;
  std::vector<const std::byte*> m_sources;
  instruction_set m_instructions;
  staging_memory m_staging;
  fork_guard m_guard;
  std::atomic<bool> m_aborted{false};
  bool m_told = false;  ///< the others know that the group is broken
  std::exception_ptr m_failure;
  std::atomic<activity> m_busy{activity::none};
  started_calls_holder m_started;
};

}  // namespace toroid::detail
