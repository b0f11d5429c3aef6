// SPDX-License-Identifier: Apache-2.0
// Data-parallel training: a softmax regression on Fashion-MNIST. Every rank holds the whole model, takes its share of
// each batch, and the ranks add up their gradients with one all-reduce a step.
#include "dataset.hpp"
#include "options.hpp"
#include "softmax.hpp"

#include <toroid/toroid.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fashion_mnist {
namespace {

using clock = std::chrono::steady_clock;

double seconds(clock::duration time) { return std::chrono::duration<double>(time).count(); }

double percent(std::uint64_t part, std::size_t whole) {
  return 100 * static_cast<double>(part) / static_cast<double>(whole);
}

/// What a rank returns: the same on every rank, or something is wrong.
struct outcome {
  std::uint64_t fingerprint = 0;  ///< of the trained parameters
  std::uint64_t right = 0;        ///< test images classified right
};

/// The order in which an epoch visits the images. It depends on nothing but the arguments, so that all ranks agree on
/// it without a word, and any number of ranks sees the same batches.
std::vector<std::uint32_t> order_of(std::size_t images, std::uint64_t seed, int epoch) {
  std::vector<std::uint32_t> order(images);
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  std::seed_seq sequence{seed & 0xffffffffU, seed >> 32U, static_cast<std::uint64_t>(epoch)};
  std::mt19937_64 random(sequence);
  // Not std::shuffle: which draws it makes differs between standard libraries.
  for (std::size_t i = images; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

/// The 64-bit FNV-1a hash of the bytes.
std::uint64_t fingerprint_of(std::span<const float> values) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const std::byte byte : std::as_bytes(values)) {
    hash ^= std::to_integer<std::uint64_t>(byte);
    hash *= 0x100000001b3U;
  }
  return hash;
}

/// Adds up the scores of all ranks: a struct and a function will do where numbers and sum will not.
template <class Communicator>
score total(Communicator& comm, score mine) {
  toroid::all_reduce(comm, std::span(&mine, 1), [](const score& a, const score& b) { return a + b; });
  return mine;
}

/// How many test images the model classifies right: each rank counts over its block, so the sum is exact.
template <class Communicator>
std::uint64_t evaluate(Communicator& comm, const dataset& data, parameters_view parameters) {
  const toroid::block mine = toroid::block_of(data.test.size(), comm.size(), comm.rank());
  std::uint64_t right = 0;
  for (std::size_t i = mine.begin; i < mine.end(); ++i) {
    if (classify(parameters, data.standardise(data.test.pixels(i))) == data.test.label(i)) ++right;
  }
  toroid::all_reduce(comm, std::span(&right, 1));
  return right;
}

/// Trains on one rank of several.
/// @param weights  where rank 0 writes the trained parameters, if open
template <class Communicator>
outcome train(Communicator& comm, const dataset& data, const options& chosen, std::ofstream& weights) {
  const std::size_t images = data.training.size();
  const std::size_t steps = static_cast<std::size_t>(chosen.epochs) * ((images - 1) / chosen.batch + 1);
  const bool speaks = comm.rank() == 0;

  std::vector<float> memory(parameter_count);
  const std::span<float, parameter_count> parameters(memory);
  // Every rank reads and writes the gradients of all the others here, without a copy between.
  const gradient_view gradient(toroid::allocate<float>(comm, parameter_count));
  momentum_descent descent(0.9F);

  outcome result;
  std::size_t step = 0;
  for (int epoch = 0; epoch < chosen.epochs; ++epoch) {
    const clock::time_point start = clock::now();
    clock::duration reducing{};
    score mine;
    const std::vector<std::uint32_t> order = order_of(images, chosen.seed, epoch);
    for (std::size_t first = 0; first < images; first += chosen.batch, ++step) {
      const std::size_t count = std::min(chosen.batch, images - first);
      const toroid::block share = toroid::block_of(count, comm.size(), comm.rank());
      std::fill(gradient.begin(), gradient.end(), 0.0F);
      for (std::size_t i = share.begin; i < share.end(); ++i) {
        const std::size_t which = order[first + i];
        mine = mine +
               learn(parameters, data.standardise(data.training.pixels(which)), data.training.label(which), gradient);
      }
      const clock::time_point ready = clock::now();
      // The sum, divided by the images of the batch: an average over ranks would be wrong, as their shares differ.
      toroid::all_reduce(comm, gradient);
      reducing += clock::now() - ready;
      const float left = 1.0F - static_cast<float>(step) / static_cast<float>(steps);
      descent.step(parameters, gradient, count, chosen.learning_rate * left);
    }
    const double elapsed = seconds(clock::now() - start);

    const score all = total(comm, mine);
    result.right = evaluate(comm, data, parameters);
    if (speaks) {
      std::printf("epoch %2d/%d  loss %.4f  training %.2f %%  test %.2f %%  %.0f images/s  all-reduce %.1f %%\n",
                  epoch + 1, chosen.epochs, all.loss / static_cast<double>(images), percent(all.right, images),
                  percent(result.right, data.test.size()), static_cast<double>(images) / elapsed,
                  100 * seconds(reducing) / elapsed);
      std::fflush(stdout);
    }
  }

  if (speaks && weights.is_open()) {
    const auto bytes = std::as_bytes(std::span(memory));
    weights.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    weights.close();
    if (!weights) throw std::runtime_error(chosen.save + ": cannot write the weights");
  }
  result.fingerprint = fingerprint_of(memory);
  return result;
}

/// Launches the ranks. @return what each of them returned, by rank
std::vector<outcome> train_on_all(const dataset& data, const options& chosen, std::ofstream& weights) {
  const auto rank = [&](auto& comm) { return train(comm, data, chosen, weights); };
  if (chosen.over == transport::shm) return toroid::run_processes(chosen.ranks, rank);
  std::vector<outcome> outcomes(static_cast<std::size_t>(chosen.ranks));
  toroid::run_threads(chosen.ranks, [&](auto& comm) { outcomes[static_cast<std::size_t>(comm.rank())] = rank(comm); });
  return outcomes;
}

void run(const options& chosen) {
  const clock::time_point start = clock::now();
  // Read before the ranks exist: the images are decoded once, a damaged file is reported once, and the processes
  // forked from here share the pages, since nobody writes to them.
  const dataset data(chosen.data);

  std::ofstream weights;
  if (!chosen.save.empty()) {  // opened first: a bad name is not to be found out after the training
    errno = 0;
    weights.open(chosen.save, std::ios::binary);
    if (!weights) throw std::runtime_error(chosen.save + ": cannot open for writing: " + std::strerror(errno));
  }

  std::printf("%zu training and %zu test images; %d ranks over %s; batches of %zu\n", data.training.size(),
              data.test.size(), chosen.ranks, name_of(chosen.over), chosen.batch);

  const std::vector<outcome> outcomes = train_on_all(data, chosen, weights);
  for (std::size_t r = 1; r < outcomes.size(); ++r) {
    if (outcomes[r].fingerprint != outcomes[0].fingerprint || outcomes[r].right != outcomes[0].right) {
      throw std::runtime_error("ranks 0 and " + std::to_string(r) + " have ended with different weights");
    }
  }
  std::printf("test accuracy %.2f %% after %.1f s; weights %016" PRIx64 " on every rank\n",
              percent(outcomes[0].right, data.test.size()), seconds(clock::now() - start), outcomes[0].fingerprint);
}

}  // namespace
}  // namespace fashion_mnist

int main(int argc, char** argv) try {
  const auto chosen = fashion_mnist::parse(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
  if (chosen.help) {
    std::fputs(fashion_mnist::usage().c_str(), stdout);
  } else {
    fashion_mnist::run(chosen);
  }
  return 0;
} catch (const fashion_mnist::option_error& error) {
  std::fprintf(stderr, "fashion_mnist: %s\n%s", error.what(), fashion_mnist::usage().c_str());
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "fashion_mnist: %s\n", error.what());
  return 1;
}
