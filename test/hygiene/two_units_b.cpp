// SPDX-License-Identifier: Apache-2.0
#include <toroid/toroid.hpp>

#include <vector>

float sum_in_the_other_unit(int ranks) {
  std::vector<float> result(1);
  toroid::run_threads(ranks, [&](auto& comm) {
    std::vector<float> value(1, static_cast<float>(comm.rank() + 1));
    toroid::all_reduce(comm, value);
    if (comm.rank() == 0) result = value;
  });
  return result[0];
}
