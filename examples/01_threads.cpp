// SPDX-License-Identifier: Apache-2.0
// The smallest complete program: four ranks, threads of one process, add up their vectors.
#include <toroid/toroid.hpp>

#include <cstdio>
#include <vector>

int main() {
  toroid::run_threads(4, [](auto& comm) {            // f runs on four threads; comm knows which rank it is
    std::vector<float> v(1000, float(comm.rank()));  // rank r brings a thousand times r
    toroid::all_reduce(comm, v);                     // in place, sum: every rank now has 0 + 1 + 2 + 3
    if (comm.rank() == 0) std::printf("v[0] = %g, v[999] = %g\n", v[0], v[999]);
  });
}
