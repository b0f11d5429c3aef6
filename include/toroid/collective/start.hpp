// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/all_gather.hpp>
#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/barrier.hpp>
#include <toroid/collective/broadcast.hpp>
#include <toroid/collective/detail/start.hpp>
#include <toroid/collective/gather.hpp>
#include <toroid/collective/reduce.hpp>
#include <toroid/collective/reduce_scatter.hpp>
#include <toroid/collective/scatter.hpp>
#include <toroid/communicator/pending.hpp>
#include <toroid/core/buffer.hpp>
#include <toroid/core/call_site.hpp>

#include <utility>

/// Collectives that are started, and complete later: the arguments, refusals and results, bit for bit, of those without
/// `start_`; all that is said there holds. Besides,
///
/// * all ranks start, and call, the collectives of one communicator in the same order; the order in which they wait,
///   and how calls on different communicators are ordered, does not matter;
/// * buffers belong to the call until it has been waited for (toroid::pending); the operator is copied;
/// * only usage_error is thrown by the start; all else by pending::wait() and test();
/// * a rank that has started a call takes part in it until it is complete: one that never waits holds its peers up.
///
/// Cost: that of the blocking call, and some 100 ns; memory is allocated only when more calls are in flight on the
/// communicator than ever before.
namespace toroid {

/// Starts all_reduce(comm, buffer, policies...), in place; they may be an operator, an algorithm and require<level>.
///
///     toroid::pending sum = toroid::start_all_reduce(comm, gradient);
///     sum.wait();
template <group C, any_range B, policy P0 = detail::not_given, policy P1 = detail::not_given,
          policy P2 = detail::not_given, policy P3 = detail::not_given, policy P4 = detail::not_given>
pending start_all_reduce(C&& comm, B&& buffer, const P0& p0 = {}, const P1& p1 = {}, const P2& p2 = {},
                         const P3& p3 = {}, const P4& p4 = {}, call_site at = call_site::current()) {
  return detail::start(comm,
                       [&](auto& stand_in) { all_reduce(stand_in, std::forward<B>(buffer), p0, p1, p2, p3, p4, at); });
}

/// Starts all_reduce(comm, in, out, policies...).
template <group C, any_range I, any_range O, policy P0 = detail::not_given, policy P1 = detail::not_given,
          policy P2 = detail::not_given, policy P3 = detail::not_given, policy P4 = detail::not_given>
pending start_all_reduce(C&& comm, I&& in, O&& out, const P0& p0 = {}, const P1& p1 = {}, const P2& p2 = {},
                         const P3& p3 = {}, const P4& p4 = {}, call_site at = call_site::current()) {
  detail::check_lives_on<I>();
  return detail::start(comm, [&](auto& stand_in) {
    all_reduce(stand_in, std::forward<I>(in), std::forward<O>(out), p0, p1, p2, p3, p4, at);
  });
}

/// Starts reduce_scatter(comm, in, out, policies...).
template <group C, any_range I, any_range O, policy P0 = detail::not_given, policy P1 = detail::not_given,
          policy P2 = detail::not_given, policy P3 = detail::not_given, policy P4 = detail::not_given>
pending start_reduce_scatter(C&& comm, I&& in, O&& out, const P0& p0 = {}, const P1& p1 = {}, const P2& p2 = {},
                             const P3& p3 = {}, const P4& p4 = {}, call_site at = call_site::current()) {
  detail::check_lives_on<I>();
  return detail::start(comm, [&](auto& stand_in) {
    reduce_scatter(stand_in, std::forward<I>(in), std::forward<O>(out), p0, p1, p2, p3, p4, at);
  });
}

/// Starts all_gather(comm, in, out, how).
template <group C, any_range I, any_range O, algorithm Algorithm = automatic>
pending start_all_gather(C&& comm, I&& in, O&& out, const Algorithm& how = {}, call_site at = call_site::current()) {
  detail::check_lives_on<I>();
  return detail::start(
      comm, [&](auto& stand_in) { all_gather(stand_in, std::forward<I>(in), std::forward<O>(out), how, at); });
}

/// Starts all_gather(comm, buffer, how), in place.
template <group C, any_range B, algorithm Algorithm = automatic>
pending start_all_gather(C&& comm, B&& buffer, const Algorithm& how = {}, call_site at = call_site::current()) {
  return detail::start(comm, [&](auto& stand_in) { all_gather(stand_in, std::forward<B>(buffer), how, at); });
}

/// Starts broadcast(comm, buffer, root, how).
template <group C, any_range B, algorithm Algorithm = automatic>
pending start_broadcast(C&& comm, B&& buffer, int root, const Algorithm& how = {},
                        call_site at = call_site::current()) {
  return detail::start(comm, [&](auto& stand_in) { broadcast(stand_in, std::forward<B>(buffer), root, how, at); });
}

/// Starts reduce(comm, in, out, root, first, second).
template <group C, any_range I, any_range O, policy First = detail::not_given, policy Second = detail::not_given>
pending start_reduce(C&& comm, I&& in, O&& out, int root, const First& first = {}, const Second& second = {},
                     call_site at = call_site::current()) {
  detail::check_lives_on<I>();
  return detail::start(comm, [&](auto& stand_in) {
    reduce(stand_in, std::forward<I>(in), std::forward<O>(out), root, first, second, at);
  });
}

/// Starts reduce(comm, buffer, root, first, second), in place.
template <group C, any_range B, policy First = detail::not_given, policy Second = detail::not_given>
pending start_reduce(C&& comm, B&& buffer, int root, const First& first = {}, const Second& second = {},
                     call_site at = call_site::current()) {
  return detail::start(comm,
                       [&](auto& stand_in) { reduce(stand_in, std::forward<B>(buffer), root, first, second, at); });
}

/// Starts gather(comm, in, out, root, how).
template <group C, any_range I, any_range O, algorithm Algorithm = automatic>
pending start_gather(C&& comm, I&& in, O&& out, int root, const Algorithm& how = {},
                     call_site at = call_site::current()) {
  detail::check_lives_on<I>();
  return detail::start(
      comm, [&](auto& stand_in) { gather(stand_in, std::forward<I>(in), std::forward<O>(out), root, how, at); });
}

/// Starts scatter(comm, in, out, root, how).
template <group C, any_range I, any_range O, algorithm Algorithm = automatic>
pending start_scatter(C&& comm, I&& in, O&& out, int root, const Algorithm& how = {},
                      call_site at = call_site::current()) {
  detail::check_lives_on<I>();
  return detail::start(
      comm, [&](auto& stand_in) { scatter(stand_in, std::forward<I>(in), std::forward<O>(out), root, how, at); });
}

/// Starts barrier(comm): complete once all ranks have started, or called, theirs.
template <group C>
pending start_barrier(C&& comm, call_site at = call_site::current()) {
  return detail::start(comm, [&](auto& stand_in) { barrier(stand_in, at); });
}

}  // namespace toroid
