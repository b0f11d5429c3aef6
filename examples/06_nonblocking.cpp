// SPDX-License-Identifier: Apache-2.0
// Collectives that are started and complete later: a backward pass whose gradients are summed while it goes on.
//
//   start_all_reduce   takes part in the sum from now on, and returns a toroid::pending at once
//   pending::test      looks whether the sum is complete, and goes on with it meanwhile
//   pending::wait      returns once it is
//
// Until then the buffer belongs to the call. Calls on one communicator run in the order in which they were started, and
// may be waited for in any order.
#include <toroid/toroid.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace {

constexpr int ranks = 3, layers = 4;
constexpr std::size_t parameters = 50'000;

/// What a layer's backward pass would compute, a part at a time.
void compute(std::vector<float>& gradient, int layer, int rank, std::size_t part, std::size_t parts) {
  const toroid::block own = toroid::block_of(gradient.size(), static_cast<int>(parts), static_cast<int>(part));
  for (std::size_t i = own.begin; i < own.begin + own.count; ++i) gradient[i] = static_cast<float>(layer * 10 + rank);
}

}  // namespace

int main() {
  // With {.progress = toroid::progress::thread} as the last argument, sums would get on while nobody looks for them.
  toroid::run_threads(ranks, [](auto& comm) {
    std::array<std::vector<float>, layers> gradients;
    std::array<toroid::pending, layers> sums;
    for (int layer = layers - 1; layer >= 0; --layer) {  // from the last layer to the first
      const auto l = static_cast<std::size_t>(layer);
      gradients[l].resize(parameters);
      constexpr std::size_t parts = 8;
      for (std::size_t part = 0; part < parts; ++part) {
        compute(gradients[l], layer, comm.rank(), part, parts);
        if (layer + 1 < layers) (void)sums[l + 1].test();  // the layer after this one gets on meanwhile
      }
      sums[l] = toroid::start_all_reduce(comm, gradients[l], toroid::average{});
    }
    for (int layer = 0; layer < layers; ++layer) {  // the optimizer begins with the first layer
      const auto l = static_cast<std::size_t>(layer);
      sums[l].wait();
      if (comm.rank() == 0) std::printf("layer %d: average gradient %g\n", layer, gradients[l][parameters - 1]);
    }
  });
}
