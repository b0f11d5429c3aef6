// SPDX-License-Identifier: Apache-2.0
// With two_units_b.cpp: two files that include the library and use the same parts of it make one program.
#include <toroid/toroid.hpp>

#include <vector>

float sum_in_the_other_unit(int ranks);

int main() {
  std::vector<float> result(1);
  toroid::run_threads(2, [&](auto& comm) {
    std::vector<float> value(1, static_cast<float>(comm.rank() + 1));
    toroid::all_reduce(comm, value);
    if (comm.rank() == 0) result = value;
  });
  return result[0] == 3.0f && sum_in_the_other_unit(2) == 3.0f ? 0 : 1;
}
