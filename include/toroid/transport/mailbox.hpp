// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/transport/process_identity.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

/// What ranks that can load and store each other's memory share: one mailbox a rank, written by its owner only (but
/// for the doorbell) and read by its peers.
///
/// Slots belong to the sender: one store serves all readers of a value, where slots owned by receivers would cost a
/// store for each.
namespace toroid::transport {

/// Flags keep this distance, so that neither their own line nor the one fetched beside it is shared.
inline constexpr std::size_t isolation = 128;
/// Messages up to this size travel beside the flag that announces them.
inline constexpr std::size_t inline_bytes = 4096;
/// Hand-over regions of a rank; a rank may be this far ahead of the slowest reader.
inline constexpr int region_count = 4;

/// Where a rank's buffers stand, and how it would have them moved. With the flag and the signature: one cache line.
struct buffer_addresses {
  enum : std::uint64_t {
    reachable = 1,     ///< peers can read the input and write the result in place
    can_pull = 2,      ///< this rank can read ordinary memory of all its peers
    prefers_pull = 4,  ///< and would; rank 0's wish counts
    may_fetch = 8      ///< this rank would rather read its peers' results than have them written to
  };
  std::uint64_t input = 0;  ///< as the transport's address_of tells it
  std::uint64_t result = 0;
  std::uint64_t own_input = 0;  ///< as the rank itself sees it
  std::uint64_t own_result = 0;
  std::uint64_t ways = 0;
};

/// A rank's entry into a call: there are two, used in turn, since a rank enters call n + 1 only after all have entered
/// call n, and enters call n only after it has left call n - 1.
struct alignas(isolation) entry {
  /// Number of the call. Stored with release after all else here; pairs with the acquire load of every peer's wait.
  std::atomic<std::uint64_t> sequence{0};
  std::uint64_t signature = 0;  ///< collective, operator, type, count, algorithm and root in one word
  union {
    alignas(16) std::byte payload[inline_bytes];  ///< a short message
    buffer_addresses buffers;                     ///< of a long one
  };
  entry() noexcept : buffers{} {}
};

struct mailbox {
  entry entries[2];
  /// Steps done, counted over all calls. Stored with release after a step's data; pairs with the acquire load of
  /// whoever waits for that step.
  alignas(isolation) std::atomic<std::uint64_t> progress{0};
  /// Call that this rank gave up with an error. Release; pairs with the acquire load of a peer that drains.
  alignas(isolation) std::atomic<std::uint64_t> abandoned{0};
  std::atomic<std::uint32_t> left{0};  ///< the communicator is gone; release, pairs with acquire in long waits
  /// What this rank called, as text, once ranks have found that they disagree. Release / acquire on `described`.
  std::atomic<std::uint64_t> described{0};
  char description[384] = {};
  /// Who the rank is. Release on `owner_known`; pairs with the acquire in long waits.
  process_identity owner{};
  std::uint64_t nonce_address = 0;  ///< in the owner's ordinary memory: where `nonce` stands
  std::uint64_t nonce = 0;
  std::atomic<std::uint32_t> owner_known{0};
  /// With check::data: 1 + index of the first number in the input of a call that is not finite, else 0. Two, used in
  /// turn as the entries are, and published with them.
  std::uint64_t flaw[2] = {};
  /// Rung by peers, slept on by the owner.
  alignas(isolation) std::atomic<std::uint32_t> doorbell{0};
  std::atomic<std::uint32_t> sleeping{0};
};

/// Why a group cannot go on.
enum class failure : std::uint32_t { none, timeout, lost, mismatch };

/// What a group shares beyond the mailboxes; lives beside rank 0's.
struct group_state {
  static constexpr std::uint64_t broken_bit = std::uint64_t{1} << 32;
  /// Ranks asleep in the low half, broken_bit when the group has failed: one load after each store tells a sender
  /// both, and the line stays shared while nobody sleeps.
  alignas(isolation) std::atomic<std::uint64_t> attention{0};
  /// 0: no reason yet; 1: being written; 2: written (release, pairs with acquire before the text is read).
  alignas(isolation) std::atomic<std::uint32_t> reason_state{0};
  failure reason_kind = failure::none;
  int reason_rank = -1;
  char reason[512] = {};
};

}  // namespace toroid::transport
