// SPDX-License-Identifier: Apache-2.0
// Six ranks as a grid: the torus over one communicator, then rows and columns as communicators of their own, which
// could be over different transports, then rows of different length.
#include <toroid/toroid.hpp>

#include <cstdio>
#include <vector>

int main() {
  toroid::run_threads(6, [](auto& comm) {
    const auto print = [&](const char* what, float sum) {
      if (comm.rank() == 0) std::printf("%s: %g\n", what, static_cast<double>(sum));
    };
    std::vector<float> v(1000, float(comm.rank()));

    auto torus = toroid::make_grid(comm, {.rows = 2, .columns = 3});  // rank 4 stands in row 1, column 1
    toroid::all_reduce(torus, v);                                     // along both axes at once: 0 + 1 + ... + 5
    print("torus of 2 rows and 3 columns", v[999]);

    auto row = comm.split(comm.rank() / 3);  // ranks 0 to 2, and 3 to 5
    auto column = comm.split(comm.rank() % 3);
    auto grid = toroid::make_grid(row, column);  // all make sure that this is a grid
    toroid::all_reduce(grid, v);                 // all bring 15 now
    print("rows, then columns", v[0]);

    const int host = comm.rank() < 3 ? 0 : comm.rank() < 5 ? 1 : 2;  // 3 + 2 + 1 ranks
    auto hosts = toroid::make_grid_of_rows(comm, host);              // joined by the first ranks of the rows
    toroid::all_reduce(hosts, v, toroid::average{});
    print("average over three uneven hosts", v[500]);
  });
}
