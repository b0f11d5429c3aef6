// SPDX-License-Identifier: Apache-2.0
#include <toroid/toroid.hpp>

#include <cstdio>
#include <vector>

int main() {
  float first = 0;
  toroid::run_threads(3, [&](auto& comm) {
    std::vector<float> values(1000, static_cast<float>(comm.rank() + 1));
    toroid::all_reduce(comm, values);
    if (comm.rank() == 0) first = values.front();
  });
  std::printf("toroid %d.%d.%d: 1 + 2 + 3 = %g\n", TOROID_VERSION_MAJOR, TOROID_VERSION_MINOR, TOROID_VERSION_PATCH,
              static_cast<double>(first));
  return first == 6.0f ? 0 : 1;
}
