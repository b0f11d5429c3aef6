// SPDX-License-Identifier: Apache-2.0
// Ranks as processes: one step of gradient descent in which each rank updates only its own block of the parameters.
//
//   broadcast       rank 0's parameters reach every rank
//   reduce_scatter  each rank gets the summed gradient of its own block only
//   all_gather      the updated blocks come together again on every rank
//
// Ten parameters on four ranks: the blocks have 3, 3, 2 and 2 elements, by toroid::block_of.
#include <toroid/toroid.hpp>

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <set>
#include <span>
#include <vector>

namespace {

constexpr int ranks = 4;
constexpr std::size_t count = 10;
constexpr float step = 0.5F;

/// What a rank sends back to the program that launched it. Any trivially copyable type will do.
struct report {
  long process = 0;
  toroid::block own;
  float gradient = 0;  ///< the summed gradient of the first element of the own block
  std::array<float, count> parameters{};
};

template <class Communicator>
report descend(Communicator& comm) {
  // Memory that the other ranks can reach: collectives read and write it in place, where the ordinary memory of a
  // process has to be copied through a staging area. It starts out zero and is freed with the communicator.
  const std::span<float> parameters = toroid::allocate<float>(comm, count);
  const std::span<float> gradient = toroid::allocate<float>(comm, count);

  if (comm.rank() == 0) {
    for (std::size_t i = 0; i < count; ++i) parameters[i] = 100.0F + static_cast<float>(i);
  }
  toroid::broadcast(comm, parameters, 0);

  // Rank r brings the gradient (r + 1) * i: the sum over four ranks is 10 * i.
  for (std::size_t i = 0; i < count; ++i) gradient[i] = static_cast<float>(comm.rank() + 1) * static_cast<float>(i);

  const toroid::block own = toroid::block_of(count, comm.size(), comm.rank());
  std::vector<float> own_gradient(own.count);
  toroid::reduce_scatter(comm, gradient, own_gradient);

  for (std::size_t i = 0; i < own.count; ++i) parameters[own.begin + i] -= step * own_gradient[i];
  toroid::all_gather(comm, parameters);  // in place: each rank's block lies already where it belongs

  report result{getpid(), own, own_gradient.front(), {}};
  for (std::size_t i = 0; i < count; ++i) result.parameters[i] = parameters[i];
  return result;
}

}  // namespace

int main() try {
  // One result per rank comes back, in rank order; an error in any rank would be rethrown here.
  const std::vector<report> reports = toroid::run_processes(ranks, [](auto& comm) { return descend(comm); });

  std::set<long> processes;
  bool same = true;
  for (const report& r : reports) {
    processes.insert(r.process);
    same = same && r.parameters == reports.front().parameters;
  }
  std::printf("%zu ranks in %zu processes\n", reports.size(), processes.size());
  for (std::size_t r = 0; r < reports.size(); ++r) {
    const auto& [process, own, gradient, parameters] = reports[r];
    std::printf("rank %zu: block [%zu, %zu), gradient[%zu] = %g\n", r, own.begin, own.end(), own.begin, gradient);
  }
  std::printf("parameters:");
  for (const float parameter : reports.front().parameters) std::printf(" %g", parameter);
  std::printf("\nthe same on every rank: %s\n", same ? "yes" : "no");
  return same ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "02_processes: %s\n", error.what());
  return 1;
}
