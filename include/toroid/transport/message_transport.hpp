// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace toroid {

/// A transport whose ranks send each other messages, and cannot touch each other's memory.
///
/// A model is one rank's end of a group. It moves bytes between buffers that the library owns, and knows no schedule.
///
/// * `start_send(r, tag, p, n)` / `start_receive(r, tag, p, n)`: begin to send n bytes to rank r, or to receive from
///   it, and return at once; the memory belongs to the transport until the request is complete. Messages from one
///   rank to another with the same tag arrive in the order in which they were sent; tags are from 0 to `largest_tag()`,
///   lengths to `largest_message()`. A receive names the exact length.
/// * `test(request)`: whether it is complete; lets all messages make progress. Once complete it stays so.
/// * `wait(request, deadline)`: the same, but comes back only when it is complete, or the clock of
///   transport::detail::monotonic_nanoseconds() has passed the deadline.
/// * `poll(tag, p, n)`: takes a message of n bytes with this tag, from whomever; the sender's rank, or -1 if none
///   is there.
/// * `give_up(request)`: tries to take a request back; whether the memory is the caller's again.
/// * `abandon()`: the group has failed, with messages under way: what names it must not be given to another group.
/// * `identity()`: a number that all ranks of the group know, and hardly another group has.
/// * Each of these throws system_error where the transport itself fails, but for give_up() and abandon().
template <class T>
concept message_transport = std::movable<T> && std::movable<typename T::request> &&
    requires(T& t, const T& c, int peer, int tag, const std::byte* from, std::byte* to, std::size_t bytes,
             typename T::request& request, std::int64_t deadline) {
  { c.rank() } -> std::same_as<int>;
  { c.size() } -> std::same_as<int>;
  { c.largest_tag() } -> std::same_as<int>;
  { c.largest_message() } -> std::same_as<std::size_t>;
  { c.identity() } -> std::same_as<std::uint64_t>;
  { c.footprint() } -> std::same_as<std::size_t>;
  { t.start_send(peer, tag, from, bytes) } -> std::same_as<typename T::request>;
  { t.start_receive(peer, tag, to, bytes) } -> std::same_as<typename T::request>;
  { t.test(request) } -> std::same_as<bool>;
  { t.wait(request, deadline) } -> std::same_as<bool>;
  { t.poll(tag, to, bytes) } -> std::same_as<int>;
  { t.give_up(request) } -> std::same_as<bool>;
  t.abandon();
  requires noexcept(t.give_up(request))&& noexcept(t.abandon());
  { T::name } -> std::convertible_to<const char*>;
};

}  // namespace toroid
