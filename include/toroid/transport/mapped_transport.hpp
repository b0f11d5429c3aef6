// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/transport/mailbox.hpp>
#include <toroid/transport/waiting.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace toroid {

/// A transport whose ranks can load and store each other's memory.
///
/// A model is one rank's end of a group. It says where mailboxes and hand-over regions live, how a flag is stored and
/// waited for, and which of the caller's buffers its peers can reach.
///
/// * `box(r)`, `region(r, k)`, `region_bytes()`: rank r's mailbox, its k-th hand-over region, the size of one.
/// * `group()`: the state that all share.
/// * `reachable(p, n)`: whether peers can load and store n bytes at p; `address_of(p)`: the number by which they do;
///   `resolve(r, a)`: rank r's address a as a pointer here.
/// * `signal(flag, value)`: store with release, then wake sleepers; returns group_state::attention as seen after it.
/// * `wait(peer, flag, value, context)`: returns once the flag, which `peer` writes, is at least `value` (acquire);
///   throws timeout_error, peer_lost or what has broken the group.
/// * `allocate(n)` / `deallocate(p, n)`: memory that all peers can reach; not collective.
/// * `must_drain`: whether peers may be inside the caller's ordinary memory when a call fails.
template <class T>
concept mapped_transport = std::movable<T> &&
    requires(T& t, const T& c, int rank, const void* pointer, void* memory, std::size_t bytes, std::uint64_t value,
             std::atomic<std::uint64_t>& flag, const transport::wait_context& context) {
  { c.rank() } -> std::same_as<int>;
  { c.size() } -> std::same_as<int>;
  { c.box(rank) } -> std::same_as<transport::mailbox&>;
  { c.region(rank, 0) } -> std::same_as<std::byte*>;
  { c.region_bytes() } -> std::same_as<std::size_t>;
  { c.group() } -> std::same_as<transport::group_state&>;
  { c.reachable(pointer, bytes) } -> std::same_as<bool>;
  { c.address_of(pointer) } -> std::same_as<std::uint64_t>;
  { c.resolve(rank, value) } -> std::same_as<std::byte*>;
  { t.signal(flag, value) } -> std::same_as<std::uint64_t>;
  {t.wait(rank, flag, value, context)};
  { t.allocate(bytes) } -> std::same_as<void*>;
  {t.deallocate(memory, bytes)};
  { c.footprint() } -> std::same_as<std::size_t>;
  { T::must_drain } -> std::convertible_to<bool>;
  { T::name } -> std::convertible_to<const char*>;
};

/// A mapped transport whose ranks can copy from ordinary memory of their peers, without the peers' doing.
///
/// * `can_pull()`: whether this rank has proven that it can, for all its peers; false until it knows.
/// * `pull(r, a, n, to, context)`: copies n bytes at rank r's own address a; throws peer_lost if the rank is gone, else
///   system_error.
template <class T>
concept pulling_transport = mapped_transport<T> && requires(T& t, int rank, std::uint64_t address, std::size_t bytes,
                                                            std::byte* to, const transport::wait_context& context) {
  { t.can_pull() } -> std::same_as<bool>;
  t.pull(rank, address, bytes, to, context);
};

}  // namespace toroid
