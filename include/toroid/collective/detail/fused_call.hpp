// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/detail/staged_call.hpp>
#include <toroid/collective/detail/travelling.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

/// One operation on several buffers: which of them take a call together.
namespace toroid::detail {

struct fused_part {
  std::byte* data = nullptr;
  std::size_t count = 0;
};

/// That elements can be written to is checked where they come from.
inline fused_part fused_part_of(const void* data, std::size_t count) noexcept {
  return {static_cast<std::byte*>(const_cast<void*>(data)), count};
}

template <class... T>
struct fused_types {};

/// Longer buffers are not packed: a call costs less than copying them twice.
inline constexpr std::size_t most_packed_bytes = std::size_t{8} << 10;

/// Buffers must exist where they have elements, and stand apart.
inline void check_fused(std::span<const fused_part> parts, std::span<const std::size_t> sizes,
                        const call_identity& identity) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    bytes_of(parts[i].count, sizes[i], name_of(identity.collective));
    if (parts[i].count != 0 && parts[i].data == nullptr) [[unlikely]]
      refuse_null(("buffer " + std::to_string(i)).c_str(), parts[i].count, identity);
    const std::uintptr_t mine = address_of(parts[i].data);
    for (std::size_t k = 0; k < i; ++k) {
      const std::uintptr_t other = address_of(parts[k].data);
      if (parts[i].count != 0 && parts[k].count != 0 && mine < other + parts[k].count * sizes[k] &&
          other < mine + parts[i].count * sizes[i]) [[unlikely]]
        refuse(identity.collective, identity.at,
               "buffers " + std::to_string(k) + " and " + std::to_string(i) + " of the fused ones overlap");
    }
  }
}

/// What all calls of one fused operation have in common.
struct fused_call {
  call_identity identity{};  ///< but for types and count
  call_details details{};    ///< but for types and count
  bool called = false;       ///< a call has been made, and the ranks are known to agree on the whole
};

/// A buffer where it stands.
template <class Run>
void call_alone(collective_call call, const fused_part& part, Run run) {
  call.identity.count = part.count;
  call.input = call.result = part.data;
  run(call);
}

/// The buffers of one type.
///
/// @param parts  those
/// @param room   for as many runs
/// @param run    called as run(call)
template <class T, class Policies, class Session, class Run>
void all_reduce_fused_of(Session& session, fused_call& all, std::span<const fused_part> parts,
                         std::span<element_run> room, const Policies& given, Run run) {
  std::size_t total = 0, packed = 0;
  for (const fused_part& part : parts) total += part.count;
  if (total == 0) return;
  all.details.count = total;
  const auto begun = [&] {
    collective_call call;
    call.identity = all.identity;
    erase_travelling<T, Policies>(call, all.details, session.instructions(), &given.combine);
    attach(call, all.details);
    return call;
  };
  const auto alone = [&](const fused_part& part) {
    call_alone(begun(), part, run);
    all.details.inspected_runs = 0;
  };
  for (const fused_part& part : parts)
    if (!travel<T, Policies>::as_stored || part.count < most_packed_bytes / sizeof(T) + 1)
      if (part.count != 0) room[packed++] = {part.data, part.data, part.count};
  if (travel<T, Policies>::as_stored && packed == 1) {
    alone({room[0].result, room[0].count});
  } else if (packed > 0) {
    collective_call call = begun();
    all_reduce_staged(session, call, all.details, staging_plan_for<T, Policies>(session.instructions()),
                      room.first(packed), run);
  }
  if constexpr (travel<T, Policies>::as_stored)
    for (const fused_part& part : parts)
      if (part.count >= most_packed_bytes / sizeof(T) + 1) alone(part);
  all.called = true;
}

template <std::size_t I, class First, class... Rest>
struct type_at : type_at<I - 1, Rest...> {};
template <class First, class... Rest>
struct type_at<0, First, Rest...> {
  using type = First;
};

/// Calls all_reduce_fused_of for each type, in the order in which they first come, from buffer I on.
template <std::size_t I, class... T, class Session, class Policies, class Run>
void all_reduce_each_type(Session& session, fused_call& all, const std::array<fused_part, sizeof...(T)>& parts,
                          const Policies& given, Run run) {
  constexpr std::size_t buffers = sizeof...(T);
  if constexpr (I < buffers) {
    using type = typename type_at<I, T...>::type;
    constexpr std::array<bool, buffers> same{std::is_same_v<T, type>...};
    constexpr bool is_first = [](const std::array<bool, buffers>& alike) {
      for (std::size_t i = 0; i < I; ++i)
        if (alike[i]) return false;
      return true;
    }(same);
    if constexpr (is_first) {
      std::array<fused_part, buffers> mine;
      std::array<element_run, buffers> room;
      std::size_t count = 0;
      for (std::size_t i = I; i < buffers; ++i)
        if (same[i]) mine[count++] = parts[i];
      all_reduce_fused_of<type>(session, all, std::span<const fused_part>(mine.data(), count), room, given, run);
    }
    all_reduce_each_type<I + 1, T...>(session, all, parts, given, run);
  }
}

template <class Transport, class... T, class... Given>
void all_reduce_fused(communicator<Transport>& comm, fused_types<T...>,
                      const std::array<fused_part, sizeof...(T)>& parts, call_site at, const Given&... all_given) {
  using policies = trailing_policies<std::decay_t<Given>...>;
  at = policies::site(at, all_given...);
  using algorithm_type = typename policies::algorithm;
  using carried_out = algorithm_for<algorithm_type, is_commutative<typename policies::operation>>;
  (check_trailing_policies<T, policies>(), ...);
  const policies given = policies::of(all_given...);
  auto& session = access::session(comm);
  fused_call all;
  all.identity.collective = collective_kind::all_reduce;
  all.identity.algorithm = algorithm_of<carried_out>;
  all.identity.segment_bytes = segment_bytes_of(given.how);
  all.identity.at = at;
  constexpr std::size_t buffers = sizeof...(T);
  const std::array<std::size_t, buffers> sizes{sizeof(T)...};
  const std::array<std::uint32_t, buffers> codes{element_code<T>()...};
  check_fused(parts, sizes, all.identity);
  if constexpr (std::is_same_v<algorithm_type, torus_2d>)
    all.identity.rows = grid_of(given.how, session.transport().size(), all.identity).rows;
  std::array<std::size_t, buffers> lengths;
  std::array<inspected_run, buffers> inspected{inspected_run{nullptr, 0, flaw_finder_for<T>()}...};
  std::uint64_t digest = buffers + 1;
  for (std::size_t i = 0; i < buffers; ++i) {
    lengths[i] = parts[i].count;
    inspected[i].elements = parts[i].data;
    inspected[i].count = parts[i].count;
    digest = (digest ^ codes[i]) * 0x9e3779b97f4a7c15u;
    digest = (digest ^ digest >> 31 ^ lengths[i]) * 0xbf58476d1ce4e5b9u;
  }
  all.details.fused = true;
  all.details.lengths = lengths.data();
  all.details.buffers = buffers;
  all.details.digest = digest;
  all.details.inspected = inspected.data();
  all.details.inspected_runs = buffers;
  const auto run = [&](const collective_call& call) { run_all_reduce<carried_out>(session, call); };
  all_reduce_each_type<0, T...>(session, all, parts, given, run);
  if (all.called) return;
  // Nothing to combine; yet the ranks must agree on that.
  collective_call call;
  call.identity = all.identity;
  erase<std::byte, void>(call, session.instructions(), nullptr);
  call.identity.operation = operator_code<typename policies::operation>();
  all.details.storage = call.identity.element;
  all.details.storage_size = 1;
  call.reduce = call.copy;
  attach(call, all.details);
  run(call);
}

}  // namespace toroid::detail
