// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/launch.hpp"

#include <atomic>

void conformance::on_processes(int ranks, const toroid::options& chosen, const std::function<void(group_end&)>& f) {
  support::run_processes(ranks, erased(f), chosen);
}

void conformance::on_processes_with_a_late_one(int ranks, int late, const std::function<void(group_end&)>& f) {
  const auto set_up = [late](toroid::transport::shm base) {
    if (base.rank() == late) ::usleep(5000);
    return base;
  };
  support::run_processes_over(ranks, {}, toroid::detail::waiting_of(ranks, {}), set_up, erased(f));
}

namespace {

using namespace conformance;

/// Counts how often the kernel copies from a peer.
class counting : public support::restricted<toroid::transport::shm> {
 public:
  counting(toroid::transport::shm base, support::ways admitted, std::atomic<int>& pulls)
      : restricted(std::move(base), admitted), m_pulls(&pulls) {}
  void pull(int rank, std::uint64_t address, std::size_t bytes, std::byte* to,
            const toroid::transport::wait_context& context) {
    ++*m_pulls;
    restricted::pull(rank, address, bytes, to, context);
  }

 private:
  std::atomic<int>* m_pulls;
};

}  // namespace

conformance::launcher conformance::on_counted_processes(support::ways admitted, std::atomic<int>& pulls) {
  return [=, &pulls](int ranks, const toroid::options& chosen, const std::function<void(group_end&)>& f) {
    const auto count = [&](toroid::transport::shm base) { return counting(std::move(base), admitted, pulls); };
    support::run_processes_over(ranks, chosen, toroid::detail::waiting_of(ranks, chosen), count, [&](auto& comm) {
      support::prefer_pulling(comm);
      end_of end(comm);
      f(end);
    });
  };
}

TEST_CASE("Processes conform in ordinary memory, by whatever path they choose", "[conformance]") {
  check(on_processes, memory_kind::ordinary);
}

TEST_CASE("Processes conform through hand-over regions", "[conformance]") {
  const support::shared_by_all<std::atomic<int>> pulls;
  check(on_counted_processes(support::ways::through_regions, *pulls), memory_kind::ordinary);
  CHECK(*pulls == 0);
}

TEST_CASE("Processes conform where the kernel copies from peers' memory", "[conformance]") {
  const support::shared_by_all<std::atomic<int>> pulls;
  const launcher launch = on_counted_processes(support::ways::all, *pulls);
  // Short vectors never go this way.
  const std::size_t least = toroid::detail::least_pulled_bytes / sizeof(element);
  using kind = choice::kind;
  const std::vector<choice> choices{{kind::automatic, 0}, {kind::direct, 5000}, {kind::ring, 0}, {kind::ring, 5000}};
  for (const int ranks : {2, 3, 5}) {
    for (const std::size_t region : {std::size_t{4096}, std::size_t{0}}) {
      launch(ranks, {.region_bytes = region}, [&](group_end& end) {
        const std::size_t p = static_cast<std::size_t>(end.size());
        check(end, memory_kind::ordinary, {least - 1, least, least + p, 3 * least - 1}, choices, extent::brief);
      });
    }
    launch(ranks, {}, [&](group_end& end) { check(end, memory_kind::ordinary, {100'003}, choices, extent::brief); });
    launch(ranks, {}, [&](group_end& end) { check(end, memory_kind::mixed, {3 * least + 1}, choices, extent::brief); });
  }
  CHECK(*pulls > 0);
}

TEST_CASE("Processes conform in place, in memory from allocate", "[conformance]") {
  check(on_processes, memory_kind::shared);
}

TEST_CASE("Processes conform where one buffer of one rank cannot be reached", "[conformance]") {
  check(on_processes, memory_kind::mixed);
}
