// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/call.hpp>
#include <toroid/communicator/mapped_session.hpp>
#include <toroid/communicator/message_session.hpp>
#include <toroid/core/error.hpp>
#include <toroid/transport/mailbox.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>
#include <vector>

/// How ranks agree on something before it counts: records that all see, and outcomes that all share.
namespace toroid::detail {

/// Brings a record of each rank to all, as a call of its own. Collective.
///
/// @tparam Record  trivially copyable; at most transport::inline_bytes
/// @return the records in rank order
template <class Record, class Transport>
std::vector<Record> exchange(mapped_session<Transport>& session, const call_identity& identity, const Record& mine) {
  static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) <= transport::inline_bytes);
  const int ranks = session.transport().size(), rank = session.transport().rank();
  std::vector<Record> all(static_cast<std::size_t>(ranks), mine);
  const auto mark = session.begin(identity);
  session.guarded([&] {
    std::memcpy(session.own_entry().payload, &mine, sizeof mine);
    session.publish_entry();
    for (int r = 0; r < ranks; ++r)
      if (r != rank)
        std::memcpy(static_cast<void*>(&all[static_cast<std::size_t>(r)]), session.wait_for_entry(r, identity).payload,
                    sizeof mine);
    session.all_have_entered();
  });
  session.end(identity);
  return all;
}

template <class Record, class Transport>
std::vector<Record> exchange(message_session<Transport>& session, const call_identity& identity, const Record& mine) {
  static_assert(std::is_trivially_copyable_v<Record>);
  using buffer = typename message_session<Transport>::buffer;
  const int ranks = session.transport().size(), rank = session.transport().rank();
  std::vector<Record> all(static_cast<std::size_t>(ranks), mine);
  session.begin(identity);
  session.guarded([&] {
    std::vector<buffer*> incoming(static_cast<std::size_t>(ranks), nullptr);
    for (int r = 0; r < ranks; ++r)
      if (r != rank) incoming[static_cast<std::size_t>(r)] = &session.receive(r, 0, sizeof mine);
    buffer& outgoing = session.take_buffer(sizeof mine);
    std::memcpy(outgoing.memory.get(), &mine, sizeof mine);
    for (int i = 1; i < ranks; ++i) session.send((rank + i) % ranks, 0, outgoing, sizeof mine);
    for (int r = 0; r < ranks; ++r) {
      if (r == rank) continue;
      buffer& from = *incoming[static_cast<std::size_t>(r)];
      session.complete(from, r);
      std::memcpy(static_cast<void*>(&all[static_cast<std::size_t>(r)]), from.memory.get(), sizeof mine);
      session.release(from);
    }
    session.complete(outgoing, (rank + 1) % ranks);
    session.release(outgoing);
  });
  return all;
}

/// How one rank's part of what all do together has ended.
struct outcome {
  enum class kind : std::int32_t { fine, usage, timeout, lost, system };
  kind how = kind::fine;
  char text[500] = {};

  /// Makes a step, and notes the error that it throws.
  template <class Step>
  static outcome of(Step&& step) {
    outcome seen;
    try {
      step();
    } catch (const usage_error& e) {
      seen.fail(kind::usage, e.what());
    } catch (const timeout_error& e) {
      seen.fail(kind::timeout, e.what());
    } catch (const peer_lost& e) {
      seen.fail(kind::lost, e.what());
    } catch (const std::exception& e) {
      seen.fail(kind::system, e.what());
    }
    return seen;
  }

  void fail(kind what, const char* words) noexcept {
    how = what;
    std::strncpy(text, words, sizeof text - 1);
  }

  /// @param whose  the rank that has failed, as others are told
  [[noreturn, gnu::noinline, gnu::cold]] void rethrow(int whose, bool own) const {
    constexpr const char* prefix = "toroid: ";
    const bool has_prefix = std::strncmp(text, prefix, std::strlen(prefix)) == 0;
    const std::string words =
        own ? std::string(text)
            : "toroid: rank " + std::to_string(whose) + " reports: " + (has_prefix ? text + std::strlen(prefix) : text);
    switch (how) {
      case kind::usage:
        throw usage_error(words);
      case kind::timeout:
        throw timeout_error(words);
      case kind::lost:
        throw peer_lost(words);
      default:
        throw system_error(words);
    }
  }
};

/// Throws if a rank has failed: on all ranks the same, the error of the first. That one has lost another is seldom the
/// reason of anything, so it counts only if there is no other.
///
/// @tparam Record  has a member `part` of type outcome
/// @param all  of one exchange
template <class Record>
void all_or_none(const std::vector<Record>& all, int rank) {
  for (const bool any : {false, true})
    for (std::size_t r = 0; r < all.size(); ++r)
      if (all[r].part.how != outcome::kind::fine && (any || all[r].part.how != outcome::kind::lost))
        all[r].part.rethrow(static_cast<int>(r), static_cast<int>(r) == rank);
}

}  // namespace toroid::detail
