// SPDX-License-Identifier: Apache-2.0
// What values are combined with: functors of your own, structs, types that travel, several buffers at once.
#include <toroid/toroid.hpp>

#include <cstdio>
#include <vector>

namespace {

/// A maximum and where it stands.
struct peak {
  float value;
  int rank;
};

/// x -> factor * x + offset. One after the other: order matters.
struct step {
  long factor, offset;
};

template <class Comm>
void functors(Comm& comm) {
  // Elements may be structs, and an operator anything that takes two of them. It sees them in rank order.
  std::vector<step> steps(3, {comm.rank() + 1, 1});
  toroid::all_reduce(comm, steps, [](step first, step then) {
    return step{first.factor * then.factor, first.offset * then.factor + then.offset};
  });
  if (comm.rank() == 0) std::printf("four steps: x -> %ld x + %ld\n", steps[0].factor, steps[0].offset);

  // A ring reorders operands, and takes an operator only if its author says that this changes nothing.
  std::vector<peak> peaks(1, {static_cast<float>(10 * comm.rank() % 30), comm.rank()});
  const auto greater = [](peak a, peak b) {
    return a.value > b.value || (a.value == b.value && a.rank < b.rank) ? a : b;
  };
  toroid::all_reduce(comm, peaks, toroid::commutative(greater), toroid::ring{});
  if (comm.rank() == 0) std::printf("the peak is %g, on rank %d\n", static_cast<double>(peaks[0].value), peaks[0].rank);
}

template <class Comm>
void types(Comm& comm) {
  // Sums of floats that cancel out: in double they come out right.
  const float parts[] = {1e8f, 1.0f, -1e8f, 1.0f};
  std::vector<float> rough(1, parts[comm.rank()]), fine = rough;
  toroid::all_reduce(comm, rough);
  toroid::all_reduce(comm, fine, toroid::accumulate<double>);
  if (comm.rank() == 0)
    std::printf("as float %g, as double %g\n", static_cast<double>(rough[0]), static_cast<double>(fine[0]));

  // Gradients may travel as bfloat16: half the bytes, eight bits of precision, the same bits on all ranks.
  std::vector<float> gradient(1000, 1.001f);
  toroid::all_reduce(comm, gradient, toroid::wire<toroid::bfloat16>, toroid::average{}, toroid::ring{});
  if (comm.rank() == 0)
    std::printf("an average of 1.001, travelling as bfloat16: %g\n", static_cast<double>(gradient[0]));

  // Who needs the same bits however a vector is cut says so; with toroid::ring{} this would not compile.
  toroid::all_reduce(comm, gradient, toroid::require<toroid::determinism::any_chunking>);
}

template <class Comm>
void buffers(Comm& comm) {
  std::vector<float> weights(3, 1.0f), bias(1, 0.5f);
  double loss = comm.rank();
  toroid::all_reduce(comm, toroid::fused(weights, bias, std::span(&loss, 1)), toroid::average{});
  if (comm.rank() == 0)
    std::printf("weights %g, bias %g, loss %g\n", static_cast<double>(weights[0]), static_cast<double>(bias[0]), loss);
}

}  // namespace

int main() {
  toroid::run_threads(4, [](auto& comm) {
    functors(comm);
    types(comm);
    buffers(comm);
    const auto plan = toroid::plan<int>(comm, 1000, toroid::average{}, toroid::ring{});
    if (comm.rank() == 0) std::printf("an average of int travels as %s\n", plan.wire.c_str());
  });
}
