// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "calls.hpp"

#include <toroid/toroid.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

/// Definitions for calls.hpp, included only by the files that instantiate them.
namespace bench {
namespace detail {

template <class T>
std::span<const T> input(const std::byte* data, std::size_t count) {
  return {reinterpret_cast<const T*>(data), count};
}
template <class T>
std::span<T> result(std::byte* data, std::size_t count) {
  return {reinterpret_cast<T*>(data), count};
}

template <class Algorithm>
Algorithm made_from(const settings& what) {
  Algorithm algorithm{};
  if constexpr (requires { algorithm.segment_bytes; })
    if (what.segment_bytes) algorithm.segment_bytes = *what.segment_bytes;
  if constexpr (std::is_same_v<Algorithm, toroid::torus_2d>) {
    algorithm.rows = what.rows;
    algorithm.columns = what.columns;
  }
  return algorithm;
}

template <class Algorithm>
inline constexpr bool in_two_halves =
    !std::is_same_v<Algorithm, toroid::tree> && !std::is_same_v<Algorithm, toroid::torus_2d>;
template <class Algorithm>
inline constexpr bool in_one_pass =
    std::is_same_v<Algorithm, toroid::automatic> || std::is_same_v<Algorithm, toroid::direct>;

template <class T, class Communicator, class Algorithm, class Op>
calls<Communicator> reducing(const settings& what) {
  if (what.collective == collective::reduce_scatter) {
    if constexpr (in_two_halves<Algorithm>)
      return {nullptr,
              [](Communicator& comm, const settings& s, const std::byte* in, std::byte* out, std::size_t count) {
                const std::size_t own = toroid::block_of(count, comm.size(), comm.rank()).count;
                toroid::reduce_scatter(comm, input<T>(in, count), result<T>(out, own), Op{}, made_from<Algorithm>(s));
              }};
    return {};
  }
  return {[](Communicator& comm, const settings& s, const std::byte*, std::byte* out, std::size_t count) {
            toroid::all_reduce(comm, result<T>(out, count), Op{}, made_from<Algorithm>(s));
          },
          [](Communicator& comm, const settings& s, const std::byte* in, std::byte* out, std::size_t count) {
            toroid::all_reduce(comm, input<T>(in, count), result<T>(out, count), Op{}, made_from<Algorithm>(s));
          }};
}

template <class T, class Communicator, class Algorithm>
calls<Communicator> moving(const settings& what) {
  if (what.collective == collective::broadcast) {
    if constexpr (!std::is_same_v<Algorithm, toroid::halving_doubling> && !std::is_same_v<Algorithm, toroid::torus_2d>)
      return {[](Communicator& comm, const settings& s, const std::byte*, std::byte* out, std::size_t count) {
                toroid::broadcast(comm, result<T>(out, count), s.root, made_from<Algorithm>(s));
              },
              nullptr};
    return {};
  }
  if constexpr (in_two_halves<Algorithm>)
    return {[](Communicator& comm, const settings& s, const std::byte*, std::byte* out, std::size_t count) {
              toroid::all_gather(comm, result<T>(out, count), made_from<Algorithm>(s));
            },
            [](Communicator& comm, const settings& s, const std::byte* in, std::byte* out, std::size_t count) {
              const std::size_t own = toroid::block_of(count, comm.size(), comm.rank()).count;
              toroid::all_gather(comm, input<T>(in, own), result<T>(out, count), made_from<Algorithm>(s));
            }};
  return {};
}

template <class T, class Communicator, class Algorithm>
calls<Communicator> with_algorithm(const settings& what) {
  if (!what.reduces()) return moving<T, Communicator, Algorithm>(what);
  switch (what.reduction) {
    case reduction::sum:
      return reducing<T, Communicator, Algorithm, toroid::sum>(what);
    case reduction::product:
      return reducing<T, Communicator, Algorithm, toroid::product>(what);
    case reduction::minimum:
      return reducing<T, Communicator, Algorithm, toroid::minimum>(what);
    case reduction::maximum:
      return reducing<T, Communicator, Algorithm, toroid::maximum>(what);
    case reduction::average:
      if constexpr (std::floating_point<T> || in_one_pass<Algorithm>)
        return reducing<T, Communicator, Algorithm, toroid::average>(what);
      break;
    case reduction::bit_and:
      if constexpr (std::integral<T>) return reducing<T, Communicator, Algorithm, toroid::bit_and>(what);
      break;
    case reduction::bit_or:
      if constexpr (std::integral<T>) return reducing<T, Communicator, Algorithm, toroid::bit_or>(what);
      break;
    case reduction::bit_xor:
      if constexpr (std::integral<T>) return reducing<T, Communicator, Algorithm, toroid::bit_xor>(what);
      break;
    case reduction::logical_and:
      return reducing<T, Communicator, Algorithm, toroid::logical_and>(what);
    case reduction::logical_or:
      return reducing<T, Communicator, Algorithm, toroid::logical_or>(what);
  }
  return {};
}

template <class T, class Communicator>
calls<Communicator> over(const settings& what) {
  switch (what.algorithm) {
    case algorithm::automatic:
      return with_algorithm<T, Communicator, toroid::automatic>(what);
    case algorithm::direct:
      return with_algorithm<T, Communicator, toroid::direct>(what);
    case algorithm::ring:
      return with_algorithm<T, Communicator, toroid::ring>(what);
    case algorithm::halving_doubling:
      return with_algorithm<T, Communicator, toroid::halving_doubling>(what);
    case algorithm::tree:
      return with_algorithm<T, Communicator, toroid::tree>(what);
    case algorithm::torus_2d:
      return with_algorithm<T, Communicator, toroid::torus_2d>(what);
  }
  return {};
}

}  // namespace detail

template <class Communicator, class T>
calls<Communicator> calls_over(const settings& what) {
  return detail::over<T, Communicator>(what);
}

}  // namespace bench
