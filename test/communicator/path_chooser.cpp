// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <toroid/communicator/path_chooser.hpp>

#include <cstddef>
#include <cstdint>

// The choice between two ways to move ordinary memory: it finds the faster one, and notices when that changes.

namespace {

using toroid::detail::path_chooser;

constexpr std::size_t kib = 1024, mib = 1024 * kib;

/// Makes calls whose durations are as given, and counts how many went the slower way.
int slow_calls(path_chooser& chooser, std::size_t bytes, int calls, std::int64_t staged, std::int64_t pulled) {
  int slow = 0;
  for (int i = 0; i < calls; ++i) {
    const path_chooser::way way = chooser.choose(bytes);
    const std::int64_t took = way == path_chooser::staged ? staged : pulled;
    chooser.note(bytes, way, took);
    if (took > (staged < pulled ? staged : pulled)) ++slow;
  }
  return slow;
}

}  // namespace

TEST_CASE("The slower way is tried a few times, then now and then") {
  for (const std::size_t bytes : {64 * kib, 64 * mib}) {
    for (const bool staged_wins : {false, true}) {
      path_chooser chooser;
      const std::int64_t fast = 1000, slow = 3000;
      const int trials = slow_calls(chooser, bytes, 60, staged_wins ? fast : slow, staged_wins ? slow : fast);
      CHECK(trials >= 1);
      CHECK(trials <= 3);
      const int later = slow_calls(chooser, bytes, 6400, staged_wins ? fast : slow, staged_wins ? slow : fast);
      CHECK(later >= 50);
      CHECK(later <= 150);
    }
  }
}

TEST_CASE("A first call that maps pages does not decide") {
  path_chooser chooser;
  REQUIRE(chooser.choose(64 * mib) == path_chooser::staged);
  chooser.note(64 * mib, path_chooser::staged, 1'000'000);  // would take 1000 later
  CHECK(slow_calls(chooser, 64 * mib, 40, 1000, 3000) <= 2);
}

TEST_CASE("The choice follows when the other way becomes faster") {
  for (const std::size_t bytes : {64 * kib, 64 * mib}) {
    path_chooser chooser;
    slow_calls(chooser, bytes, 1000, 1000, 3000);
    slow_calls(chooser, bytes, 1000, 9000, 3000);  // the winner has become slow: seen at once or at the next trial
    CHECK(slow_calls(chooser, bytes, 64, 9000, 3000) <= 2);
  }
}

TEST_CASE("Magnitudes learn apart") {
  path_chooser chooser;
  slow_calls(chooser, 64 * kib, 100, 1000, 3000);
  slow_calls(chooser, 64 * mib, 100, 3000, 1000);
  CHECK(slow_calls(chooser, 64 * kib, 20, 1000, 3000) <= 1);
  CHECK(slow_calls(chooser, 64 * mib, 20, 3000, 1000) <= 1);
}
