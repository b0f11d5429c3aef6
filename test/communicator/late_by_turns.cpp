// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/random.hpp"
#include "support/sanitizers.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

// Calls of changing length in which one rank after another comes late.

namespace {

using namespace conformance;
using support::demand;

/// Lengths in any order, and in every call one rank that is late. Whoever is early has the next call's data ready while
/// others still read this call's.
void one_late_in_every_call(group_end& end, int calls, std::uint64_t seed) {
  support::random_numbers same_on_all(seed);
  constexpr std::size_t lengths[] = {1, 3, 17, 4096, 65'537, 2, 1'000'000};
  constexpr choice::kind kinds[] = {choice::kind::automatic, choice::kind::direct, choice::kind::ring};
  const element p = static_cast<element>(end.size()), r = static_cast<element>(end.rank());
  std::vector<element> values(1'000'000);
  for (int call = 0; call < calls; ++call) {
    const std::size_t count = lengths[same_on_all.below(std::size(lengths))];
    const choice how{kinds[same_on_all.below(std::size(kinds))], 0};
    const bool late = same_on_all.below(p) == r;
    const useconds_t how_late = static_cast<useconds_t>(same_on_all.below(2000));
    const std::span<element> v = std::span<element>(values).first(count);
    const element salt = static_cast<element>(7 * call);
    for (std::size_t i = 0; i < count; ++i) v[i] = salt + static_cast<element>(i) + r;
    if (late) ::usleep(how_late);
    end.all_reduce(v, v, how);
    const auto wanted = [&](std::size_t i) { return p * (salt + static_cast<element>(i)) + p * (p - 1) / 2; };
    std::size_t wrong = 0;  // counted first: a text for each of a billion elements would take minutes
    for (std::size_t i = 0; i < count; ++i) wrong += v[i] != wanted(i) ? 1u : 0u;
    for (std::size_t i = 0; wrong != 0 && i < count; ++i)
      demand(v[i] == wanted(i), "call ", call, " by ", how.name(), ", element ", i, " of ", count, " is ", v[i]);
  }
}

/// Seconds, for ten thousand calls on a machine that is slow and loaded.
constexpr unsigned long_patience = 580;

}  // namespace

TEST_CASE("In every call another rank is late, and lengths change", "[many]") {
  on_both(4, {}, [](group_end& end) { one_late_in_every_call(end, support::sanitized ? 12 : 100, 4); });
}

TEST_CASE("In ten thousand calls another rank is late, ranks being threads", "[many][slow]") {
  support::run_threads(4, erased([](group_end& end) { one_late_in_every_call(end, 10'000, 5); }), {}, long_patience);
}

TEST_CASE("In ten thousand calls another rank is late, ranks being processes", "[many][slow]") {
  support::run_processes(4, erased([](group_end& end) { one_late_in_every_call(end, 10'000, 6); }), {}, long_patience);
}
