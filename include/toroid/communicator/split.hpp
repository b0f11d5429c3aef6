// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/colour.hpp>
#include <toroid/communicator/communicator.hpp>
#include <toroid/communicator/exchange.hpp>
#include <toroid/communicator/options.hpp>
#include <toroid/core/call_site.hpp>
#include <toroid/core/error.hpp>
#include <toroid/transport/mapped_endpoint.hpp>

#include <sys/random.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// How a communicator is divided. What depends on the transport is a splitter.
namespace toroid::detail {

/// A number that tells one group from all others.
inline std::uint64_t random_number(const char* whom) {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
    throw system_error(std::string("toroid: ") + whom + ": getrandom failed");
  return number;
}

/// The group that a rank goes to.
struct new_group {
  std::vector<int>
      members{};  ///< their numbers in the group that is split, in the order of the new one; none: no group
  int rank = 0;   ///< this rank's number in it

  int size() const noexcept { return static_cast<int>(members.size()); }
  bool is_none() const noexcept { return members.empty(); }
  /// The rank 0 of the new group, by its number in the old one.
  int founder() const noexcept { return members.front(); }
};

/// What a splitter is told about the call.
struct split_call {
  std::string title;         ///< what its errors begin with: names the call
  std::int64_t nanoseconds;  ///< longest wait for another rank
  std::uint64_t last;        ///< the call in which a rank tells whether it has finished
};

/// Makes one rank's end of a new group: the customisation point of split() for a transport. Used once, by all ranks of
/// the group that is split, whether they join a new one or not. Specialise it in a header that the transport's launcher
/// includes.
///
/// * `splitter(old, group, chosen, call)`: the rank's end of the group that is split, where the rank goes, the new
///   group's options, and what a split_call says. Keeps references to the first three.
/// * `offer begin()`: on founders only. Makes what the others need, and says where it is in a trivially copyable
/// record.
/// * `std::optional<Transport> finish(const offer&)`: on all ranks, once all founders have begun; with the founder's
///   record. Nothing where the rank goes to no group.
/// * The destructor takes back what is needed for the set-up only, also after a failure.
/// * Each but the destructor may throw: then all ranks get the error, and none a new group.
template <class Transport>
class splitter {
  static_assert(!sizeof(Transport), "toroid: communicators over this transport cannot be split");
};

/// A transport around another one, which can be put around another end of that kind too: `t.around(end)`.
template <class Transport>
concept transport_around_another = requires(const Transport& t, typename Transport::base_transport end) {
  { t.around(std::move(end)) } -> std::same_as<Transport>;
};

template <transport_around_another Transport>
class splitter<Transport> {
  using base = splitter<typename Transport::base_transport>;

 public:
  using offer = typename base::offer;
  splitter(Transport& old, const new_group& group, const options& chosen, const split_call& call)
      : m_old(old), m_base(old, group, chosen, call) {}
  offer begin() { return m_base.begin(); }
  std::optional<Transport> finish(const offer& there) {
    std::optional<typename Transport::base_transport> end = m_base.finish(there);
    if (!end) return std::nullopt;
    return m_old.around(std::move(*end));
  }

 private:
  Transport& m_old;
  base m_base;
};

/// What a rank asks for.
struct split_wish {
  colour which;
  exact_integer key;
  std::uint64_t region_bytes, shared_bytes;
  std::int32_t checking, in_directory;
  outcome part{};
};

/// @throws usage_error  if two ranks that go to one group have asked for different options
inline void check_same_options(const std::vector<split_wish>& all, std::size_t a, std::size_t b) {
  const auto check = [&](std::uint64_t one, std::uint64_t other, const char* option) {
    if (one != other)
      throw usage_error(std::string("toroid: split: options.") + option + " is " + std::to_string(one) + " on rank " +
                        std::to_string(a) + " and " + std::to_string(other) + " on rank " + std::to_string(b) +
                        ", which go to one group and must use the same");
  };
  check(all[a].region_bytes, all[b].region_bytes, "region_bytes");
  check(all[a].shared_bytes, all[b].shared_bytes, "shared_bytes");
  check(static_cast<std::uint64_t>(all[a].checking), static_cast<std::uint64_t>(all[b].checking), "checking");
  check(static_cast<std::uint64_t>(all[a].in_directory), static_cast<std::uint64_t>(all[b].in_directory), "directory");
}

/// @return where `rank` goes; the same wishes lead to the same groups on all ranks
inline new_group group_of(const std::vector<split_wish>& all, int rank) {
  new_group found;
  const split_wish& mine = all[static_cast<std::size_t>(rank)];
  std::vector<int>& members = found.members;
  for (int r = 0; r < static_cast<int>(all.size()); ++r) {
    const split_wish& theirs = all[static_cast<std::size_t>(r)];
    if (!mine.which.joins(theirs.which)) continue;
    // Mostly they come in order: then this is where it stays.
    members.push_back(r);
    for (std::size_t i = members.size() - 1; i > 0; --i) {
      if (!(theirs.key < all[static_cast<std::size_t>(members[i - 1])].key)) break;
      std::swap(members[i - 1], members[i]);
    }
  }
  while (!members.empty() && members[static_cast<std::size_t>(found.rank)] != rank) ++found.rank;
  return found;
}

/// communicator::split.
template <class Transport>
communicator<Transport> split(communicator<Transport>& old, const colour& which, const exact_integer& key,
                              const options& chosen, call_site at) {
  auto& session = access::session(old);
  const int rank = old.rank();
  call_identity identity;
  identity.collective = collective_kind::split;
  identity.at = at;

  split_wish mine{which,
                  key,
                  chosen.region_bytes,
                  chosen.shared_bytes,
                  static_cast<std::int32_t>(chosen.checking),
                  chosen.directory.empty() ? 0 : 1};
  mine.part = outcome::of([&] { check_options(1, chosen); });
  const std::vector<split_wish> wishes = exchange(session, identity, mine);
  all_or_none(wishes, rank);
  const new_group group = group_of(wishes, rank);

  struct offer_record {
    typename splitter<Transport>::offer what{};
    outcome part{};
  };
  const split_call call{transport::mapped_endpoint::describe(session.context()), session.chosen().timeout.count(),
                        session.call() + 2};
  splitter<Transport> maker(session.transport(), group, chosen, call);
  offer_record offer;
  offer.part = outcome::of([&] {
    if (group.is_none()) return;
    check_same_options(wishes, static_cast<std::size_t>(group.founder()), static_cast<std::size_t>(rank));
    if (group.founder() == rank) offer.what = maker.begin();
  });
  const std::vector<offer_record> offers = exchange(session, identity, offer);
  all_or_none(offers, rank);

  struct ending {
    outcome part{};
  };
  std::optional<communicator<Transport>> made;
  ending end;
  end.part = outcome::of([&] {
    const int founder = group.is_none() ? rank : group.founder();
    std::optional<Transport> there = maker.finish(offers[static_cast<std::size_t>(founder)].what);
    if (there) made.emplace(std::move(*there), chosen);
  });
  all_or_none(exchange(session, identity, end), rank);
  return made ? std::move(*made) : access::empty<Transport>();
}

}  // namespace toroid::detail

namespace toroid {

template <class Transport>
communicator<Transport> communicator<Transport>::split(const colour& which, const exact_integer& key, call_site at) {
  return detail::split(*this, which, key, detail::access::session(*this).chosen(), at);
}

template <class Transport>
communicator<Transport> communicator<Transport>::split(const colour& which, const exact_integer& key,
                                                       const options& chosen,
                                                       call_site at) requires mapped_transport<Transport> {
  return detail::split(*this, which, key, chosen, at);
}

}  // namespace toroid
