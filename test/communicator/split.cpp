// SPDX-License-Identifier: Apache-2.0
#include "communicator/named_group.hpp"
#include "communicator/split_tables.hpp"
#include "support/catch.hpp"
#include "support/launch.hpp"
#include "support/process_state.hpp"
#include "support/sanitizers.hpp"

#include <toroid/collective/barrier.hpp>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Groups that are split off: who is in which, in which order, with which options, and that old and new groups leave
// each other alone.

namespace {

using support::demand;
using support::demand_words;
using support::text_of;

/// Both groups of a split by parity, and what a rank outside does not see.
template <class Communicator>
void split_twice(Communicator& comm) {
  auto half = comm.split(comm.rank() / 4);
  auto pair = half.split(half.rank() % 2 == 0 ? toroid::colour(7) : toroid::colour(-7), -half.rank());
  auto alone = pair.split(comm.rank());
  demand(half.size() == 4 && pair.size() == 2 && alone.size() == 1, "sizes ", half.size(), ", ", pair.size(), ", ",
         alone.size());
  splits::check_sum(comm, 28 + 8);
  splits::check_sum(half, comm.rank() < 4 ? 10 : 26, comm.rank() + 1);
  const int other = half.rank() < 2 ? comm.rank() + 2 : comm.rank() - 2;
  splits::check_sum(pair, comm.rank() + other + 2, comm.rank() + 1);
  demand(pair.rank() == (comm.rank() > other ? 0 : 1), "rank ", pair.rank(), " in the order of negative keys");
  splits::check_sum(alone, 5, 5);
}

template <class Communicator>
void end_in_any_order(Communicator& comm) {
  auto first = comm.split(comm.rank() % 2);
  auto second = comm.split(comm.rank() / 2);
  second.abort();
  demand_words(text_of<toroid::peer_lost>([&] { toroid::barrier(second); }), "has aborted");
  splits::check_sum(first, 2);
  splits::check_sum(comm, 10);
  auto third = comm.split(0, -comm.rank());
  { const auto ended = std::move(comm); }
  splits::check_sum(first, 2);
  splits::check_sum(third, 10);
  auto fourth = third.split(third.rank() < 2);
  third.abort();
  demand_words(text_of<toroid::peer_lost>([&] { toroid::barrier(third); }), "has aborted");
  demand_words(text_of<toroid::peer_lost>([&] { (void)third.split(0); }), "has aborted");
  splits::check_sum(fourth, 2);
}

template <class Communicator>
void refuse_empty(Communicator& comm) {
  auto none = comm.split(toroid::no_group);
  demand(!none, "a group of none");
  demand_words(text_of<toroid::usage_error>([&] { toroid::barrier(none); }), "no group");
  demand_words(text_of<toroid::usage_error>([&] { (void)none.split(0); }), "empty");
  none.abort();
  none = comm.split(0);
  demand(static_cast<bool>(none), "a group that converts to false");
  splits::check_sum(none, 3);
}

template <class Communicator>
void inherit(Communicator& comm, const toroid::options& chosen) {
  auto same = comm.split(comm.rank() < 2 ? 1 : 2);
  auto& session = toroid::detail::access::session(same);
  demand(session.chosen().timeout == chosen.timeout && session.chosen().checking == chosen.checking, "other options");
  demand(session.transport().region_bytes() == chosen.region_bytes, "regions of ", session.transport().region_bytes());
  demand(session.transport().how().spins == chosen.spins, session.transport().how().spins, " spins");
  demand(session.transport().how().timeout == chosen.timeout.count(), "another timeout to wait with");

  toroid::options other = chosen;
  other.timeout = std::chrono::milliseconds(60);
  other.region_bytes = 16384;
  other.spins = 11;
  other.checking = toroid::check::calls;
  auto short_lived = comm.split(0, 0, other);
  auto& theirs = toroid::detail::access::session(short_lived);
  demand(theirs.transport().region_bytes() == 16384 && theirs.transport().how().spins == 11, "options not taken");
  const std::size_t regions = 4 * theirs.transport().region_bytes();
  demand(short_lived.footprint() >= regions && short_lived.footprint() < regions + 65536, "a footprint of ",
         short_lived.footprint());
  // A rank that is late in the new group: the old one has more patience, and does not mind.
  if (comm.rank() == 1)
    demand_words(text_of<toroid::timeout_error>([&] { toroid::barrier(short_lived); }), "60 ms", "barrier (call 1,");
  splits::check_sum(comm, 4);
}

template <class Communicator>
void refuse_options(Communicator& comm, const toroid::options& chosen) {
  toroid::options other = chosen;
  if (comm.rank() == 2) other.region_bytes = 8192;
  demand_words(text_of<toroid::usage_error>([&] { (void)comm.split(0, 0, other); }), "region_bytes", "8192", "rank 2");
  auto fine = comm.split(comm.rank() == 2, 0, other);  // not in one group
  splits::check_sum(fine, comm.rank() == 2 ? 1 : 2);
  other = chosen;
  if (comm.rank() == 1) other.timeout = std::chrono::nanoseconds(0);
  demand_words(text_of<toroid::usage_error>([&] { (void)comm.split(0, 0, other); }), "timeout");
  splits::check_sum(comm, 3);
}

template <class Communicator>
void meet_another_call(Communicator& comm) {
  const std::string text = text_of<toroid::mismatch_error>([&] {
    if (comm.rank() == 1)
      toroid::barrier(comm);
    else
      (void)comm.split(0);
    toroid::barrier(comm);
  });
  demand_words(text, "split", "barrier");
}

template <class Communicator>
void come_and_go(Communicator& comm, int times) {
  for (int i = 0; i < times; ++i) {
    auto group = comm.split((comm.rank() + i) % 2, i % 3 == 0 ? -comm.rank() : 0);
    int one = 1;
    toroid::all_reduce(group, std::span(&one, 1));
    demand(one == group.size(), "sum ", i, " is ", one);
    if (i % 5 == 4) group.abort();
  }
}

void demand_no_growth(const support::process_state& before, const support::process_state& after) {
  demand(after.descriptors == before.descriptors, before.descriptors, " descriptors became ", after.descriptors);
  demand(after.threads == before.threads, before.threads, " threads became ", after.threads);
  demand(after.mappings <= before.mappings + 16, before.mappings, " mappings became ", after.mappings);
}

void leave_nothing(int times) {
  const toroid::options chosen{.region_bytes = 4096, .shared_bytes = std::size_t{1} << 20};
  support::run_threads(
      2, [](auto& comm) { come_and_go(comm, 3); }, chosen);
  const auto before = support::process_state::now();
  support::run_threads(
      4, [&](auto& comm) { come_and_go(comm, times); }, chosen);
  demand_no_growth(before, support::process_state::now());
  support::run_processes(
      4,
      [&](auto& comm) {
        come_and_go(comm, 3);
        toroid::barrier(comm);
        const auto own_before = support::process_state::now();
        come_and_go(comm, times);
        demand_no_growth(own_before, support::process_state::now());
      },
      chosen);
  demand_no_growth(before, support::process_state::now());
}

}  // namespace

TEST_CASE("A split puts ranks of one colour together, in the order of their keys", "[split]") {
  for (const splits::table& one : splits::tables()) {
    INFO(one.name);
    support::run_both(static_cast<int>(one.wishes.size()), [&](auto& comm) { splits::check(comm, one); });
  }
}

TEST_CASE("One rank can be split from itself", "[split]") {
  support::run_both(1, [](auto& comm) {
    auto same = comm.split(-3);
    splits::check_sum(same, 1);
    demand(!comm.split(toroid::no_group), "a group");
  });
}

TEST_CASE("Groups that were split off can be split", "[split]") {
  support::run_both(8, [](auto& comm) { split_twice(comm); });
}

TEST_CASE("Old and new groups end in any order, and one's abort does not touch the other", "[split]") {
  support::run_both(4, [](auto& comm) { end_in_any_order(comm); });
}

TEST_CASE("What a rank without a group gets refuses every call", "[split]") {
  support::run_both(3, [](auto& comm) { refuse_empty(comm); });
}

TEST_CASE("A new group has the options of the old one, or others", "[split]") {
  const toroid::options chosen{
      .timeout = std::chrono::seconds(77), .checking = toroid::check::none, .spins = 33, .region_bytes = 8192};
  support::run_both(
      4, [&](auto& comm) { inherit(comm, chosen); }, chosen);
}

TEST_CASE("Options that are wrong, or differ within a colour, are refused on all ranks", "[split]") {
  const toroid::options chosen{.region_bytes = 4096};
  support::run_both(
      3, [&](auto& comm) { refuse_options(comm, chosen); }, chosen);
}

TEST_CASE("Processes that joined by a name can be split", "[split][named]") {
  for (const splits::table& one : splits::tables()) {
    INFO(one.name);
    const int ranks = static_cast<int>(one.wishes.size());
    const std::string name = named::fresh_name("split");
    const support::watchdog guard(support::patience);
    named::processes all(ranks);
    for (int r = 0; r < ranks; ++r)
      all.start(r, [&, r] {
        auto comm = toroid::shm::make_communicator(name, r, ranks, named::patient());
        splits::check(comm, one);
        auto same = comm.split(0);
        { const auto ended = std::move(comm); }
        splits::check_sum(same, ranks);
      });
    for (const named::ending& how : all.join()) {
      INFO(how.words());
      CHECK(how.right);
    }
  }
}

TEST_CASE("A split that meets another call is a mismatch", "[split]") {
  support::run_both(3, [](auto& comm) { meet_another_call(comm); });
}

TEST_CASE("Fifty groups that come and go leave nothing", "[split]") { leave_nothing(support::sanitized ? 20 : 50); }

TEST_CASE("A thousand groups that come and go leave nothing", "[split][slow]") { leave_nothing(1000); }
