// SPDX-License-Identifier: Apache-2.0
// Gloo's all-reduces of float with sum by the timing rule of toroid-bench, over TCP between processes of one host. See
// README.md.
#include "peers/peer_bench.hpp"

#include <CLI/CLI.hpp>

#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/barrier.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

using namespace bench;

constexpr const char* halving_doubling = "halving_doubling";
constexpr const char* ring = "ring";
constexpr const char* bcube = "bcube";

/// Where the ranks find each other.
class temporary_directory {
 public:
  temporary_directory() : m_path((std::filesystem::temp_directory_path() / "gloo-all-reduce-XXXXXX").string()) {
    if (mkdtemp(m_path.data()) == nullptr) throw std::system_error(errno, std::generic_category(), m_path);
  }
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;
  ~temporary_directory() { remove(); }

  const std::string& path() const { return m_path; }
  void remove() const {
    std::error_code ignored;
    std::filesystem::remove_all(m_path, ignored);
  }

 private:
  std::string m_path;
};

std::shared_ptr<gloo::Context> connect(const std::string& directory, const std::string& interface, int rank,
                                       int ranks) {
  gloo::transport::tcp::attr where;
  where.iface = interface;
  std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(where);
  gloo::rendezvous::FileStore store(directory);
  const auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  return context;
}

class all_reduce {
 public:
  all_reduce(std::shared_ptr<gloo::Context> context, std::string algorithm)
      : m_context(std::move(context)), m_algorithm(std::move(algorithm)) {}

  void bind(float* in, float* out, std::size_t count) {
    if (count > std::size_t(INT_MAX)) throw std::runtime_error("more elements than Gloo can count");
    m_in = in;
    m_out = out;
    m_count = count;
    if (m_algorithm == halving_doubling) {
      // Objects are kept: a message that comes when its receiver's object is gone blocks all that come after it.
      std::unique_ptr<gloo::Algorithm>& object = m_objects[{out, count}];
      if (!object)
        object =
            std::make_unique<gloo::AllreduceHalvingDoubling<float>>(m_context, std::vector<float*>{out}, int(count));
      m_object = object.get();
    } else {
      m_options.emplace(m_context);
      m_options->setAlgorithm(m_algorithm == ring ? gloo::AllreduceOptions::Algorithm::RING
                                                  : gloo::AllreduceOptions::Algorithm::BCUBE);
      m_options->setReduceFunction(static_cast<reduce_function>(gloo::sum<float>));
      if (in != out) m_options->setInput(in, count);
      m_options->setOutput(out, count);
    }
  }

  void call() const {
    if (m_options) {
      gloo::allreduce(*m_options);
      return;
    }
    // This one works in place only.
    if (m_in != m_out) std::memcpy(m_out, m_in, m_count * sizeof(float));
    m_object->run();
  }

 private:
  using reduce_function = void (*)(void*, const void*, const void*, std::size_t);

  std::shared_ptr<gloo::Context> m_context;
  std::string m_algorithm;
  const float* m_in = nullptr;
  float* m_out = nullptr;
  std::size_t m_count = 0;
  std::map<std::pair<float*, std::size_t>, std::unique_ptr<gloo::Algorithm>> m_objects;
  gloo::Algorithm* m_object = nullptr;
  std::optional<gloo::AllreduceOptions> m_options;
};

struct launch {
  peer_settings what;
  peer_name name;
  std::string interface = "lo";
  int ranks = 2;
};

void run_rank(const launch& how, meeting& place, const temporary_directory& directory, int rank) {
  // Gloo's thread inherits the core: what it has received wakes a thread of the same core.
  const std::vector<int> cores = usable_cores();
  const pinned here(cores[std::size_t(rank) % cores.size()]);
  const std::shared_ptr<gloo::Context> context = connect(directory.path(), how.interface, rank, how.ranks);
  gloo::BarrierOptions all(context);
  gloo::barrier(all);
  if (rank == 0) directory.remove();  // at once, since nobody may be left to do it later
  all_reduce peer(context, how.name.algorithm);
  peer_rank<all_reduce>(peer, how.what, place, rank).measure(how.name);
}

/// The status of a child that has ended, as a shell tells it.
int status_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waiting for a rank");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Forks the ranks and waits for all.
/// @return wrong elements
std::uint64_t run(const launch& how) {
  meeting place(how.ranks, how.ranks > int(usable_cores().size()));
  const temporary_directory directory;
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  for (int rank = 0; rank < how.ranks; ++rank) {
    const pid_t child = fork();
    if (child < 0) {
      place.fail("a rank could not be forked");
      break;
    }
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    int status = 0;
    try {
      run_rank(how, place, directory, rank);
    } catch (const std::exception& error) {
      place.fail(error.what());
      status = 1;
    }
    std::fflush(stdout);
    _exit(status);
  }
  for (std::size_t rank = 0; rank < children.size(); ++rank)
    if (const int status = status_of(children[rank]); status != 0)
      place.fail(("rank " + std::to_string(rank) + " ended with status " + std::to_string(status)).c_str());
  if (const std::string why = place.why_failed(); !why.empty()) throw std::runtime_error(why);
  return place.total().wrong;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int wrong_result = 1, wrong_argument = 2;
  launch how;
  how.name = {"gloo", halving_doubling,
              std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) + "." +
                  std::to_string(GLOO_VERSION_PATCH)};
  CLI::App app("Times Gloo's all-reduce of float, sum, over message sizes and checks every result.", "gloo-all-reduce");
  peer_options options(app, how.what);
  app.add_option("--ranks", how.ranks, "number of ranks, which are forked")
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  app.add_option("--algorithm", how.name.algorithm, "how it is done; halving_doubling out of place with a copy before")
      ->check(CLI::IsMember({halving_doubling, ring, bcube}))
      ->capture_default_str();
  app.add_option("--interface", how.interface, "network interface")->capture_default_str();
  try {
    app.parse(argc, argv);
    options.complete();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : wrong_argument;
  }
  try {
    return run(how) == 0 ? 0 : wrong_result;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gloo-all-reduce: %s\n", error.what());
    return wrong_result;
  }
}
