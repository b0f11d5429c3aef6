// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"
#include "rank_of_benchmark.hpp"
#include "settings.hpp"
#include "timing.hpp"

#include <toroid/toroid.hpp>

#include <cstddef>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace bench {

double bus_factor(const settings& what) {
  const double p = what.ranks;
  switch (what.collective) {
    case collective::all_reduce:
      return 2 * (p - 1) / p;
    case collective::reduce_scatter:
    case collective::all_gather:
      return (p - 1) / p;
    case collective::broadcast:
    case collective::barrier:
      return 1;
  }
  return 1;
}

std::size_t run(const settings& what) {
  const std::vector<int> cores = usable_cores();
  meeting place(what.ranks, what.ranks > int(cores.size()));
  output print(what, cores);
  const auto body = [&](auto& comm) {
    using communicator = std::remove_reference_t<decltype(comm)>;
    try {
      std::optional<pinned> here;
      if (what.pin) here.emplace(cores[std::size_t(comm.rank()) % cores.size()]);
      rank_of_benchmark<communicator>(comm, what, place, chosen_calls<communicator>(what), nullptr).measure(print);
    } catch (const std::exception& error) {
      place.fail(error.what());
      throw;
    }
  };
  toroid::options options;
  options.checking = what.checking == checking::none ? toroid::check::none : toroid::check::calls;
  print.header();
  print.flush();  // before processes are forked
  try {
    if (what.launch == launch::threads)
      toroid::run_threads(what.ranks, body, options);
    else
      toroid::run_processes(what.ranks, body, options);
  } catch (const std::exception& error) {
    const std::string first = place.why_failed();  // the others only know that somebody failed
    const std::string why = first.empty() ? error.what() : first;
    print.footer(place.total(), why);
    throw std::runtime_error(why);
  }
  print.footer(place.total());
  return place.total().wrong;
}

}  // namespace bench
