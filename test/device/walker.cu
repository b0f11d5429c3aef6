// SPDX-License-Identifier: Apache-2.0
// The walk, the executor and all schedules compile for a GPU from the same source as for the host. The policy here is
// the simplest that can be right (one thread, floats, sum); it shows what a device policy has to supply. Compiled,
// never run: no GPU is needed.
#include <toroid/collective/detail/mapped_executor.hpp>
#include <toroid/schedule/compose.hpp>
#include <toroid/schedule/halving_doubling.hpp>
#include <toroid/schedule/torus.hpp>
#include <toroid/schedule/tree.hpp>
#include <toroid/schedule/walk.hpp>

#include <cuda/atomic>

#include <cstddef>
#include <cstdint>

namespace {

constexpr int most_ranks = 16;

struct device_buffers {
  const std::byte* input[most_ranks];
  std::byte* result[most_ranks];
  std::byte* regions[most_ranks];
  std::uint64_t* progress[most_ranks];
  std::size_t region_bytes;
};

class device_thread {
 public:
  __device__ device_thread(const device_buffers& buffers, int rank) : m_buffers(buffers), m_rank(rank) {}

  __device__ const std::byte* own_input() const { return m_buffers.input[m_rank]; }
  __device__ std::byte* own_result() const { return m_buffers.result[m_rank]; }
  __device__ const std::byte* input_of(int rank) const { return m_buffers.input[rank]; }
  __device__ std::byte* result_of(int rank) const { return m_buffers.result[rank]; }
  __device__ std::byte* region_of(int rank, int index) const {
    return m_buffers.regions[rank] + static_cast<std::size_t>(index) * m_buffers.region_bytes;
  }
  __device__ const std::byte** sources() { return m_sources; }
  __device__ std::byte** destinations() { return m_destinations; }
  __device__ void note_step(int) {}

  __device__ void wait(int rank, std::uint64_t progress) {
    flag theirs(*m_buffers.progress[rank]);
    while (theirs.load(cuda::std::memory_order_acquire) < progress) {
    }
  }
  __device__ void publish(std::uint64_t progress) {
    flag(*m_buffers.progress[m_rank]).store(progress, cuda::std::memory_order_release);
  }
  __device__ void combine(const toroid::detail::reduce_arguments& a, bool reduces) {
    for (std::size_t i = 0; i < a.count; ++i) {
      float value = reinterpret_cast<const float*>(a.sources[0])[i];
      for (int s = 1; reduces && s < a.source_count; ++s) value += reinterpret_cast<const float*>(a.sources[s])[i];
      for (int d = 0; d < a.destination_count; ++d) reinterpret_cast<float*>(a.destinations[d])[i] = value;
    }
  }

 private:
  using flag = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;
  const device_buffers& m_buffers;
  int m_rank;
  const std::byte* m_sources[most_ranks];
  std::byte* m_destinations[most_ranks + 1];
};

template <class Schedule, toroid::detail::path Path>
__global__ void run(device_buffers buffers, toroid::detail::mapped_problem problem) {
  device_thread policy(buffers, problem.ranks.rank);
  toroid::detail::executor_for<Path, device_thread, Schedule> executor(policy, problem);
  toroid::schedule::walk<Schedule>(problem.ranks, problem.pieces, executor);
  executor.leave();
}

template <class Schedule>
bool compiled() {
  using toroid::detail::path;
  return &run<Schedule, path::in_place> != nullptr && &run<Schedule, path::staged> != nullptr;
}

}  // namespace

int main() {
  using namespace toroid::schedule;
  const bool all = compiled<direct_all_reduce>() && compiled<ring_all_reduce>() && compiled<direct_reduce_scatter>() &&
                   compiled<ring_reduce_scatter>() && compiled<direct_all_gather>() && compiled<ring_all_gather>() &&
                   compiled<direct_broadcast>() && compiled<ring_broadcast>() && compiled<one_shot_all_reduce>() &&
                   compiled<halving_doubling_all_reduce>() && compiled<halving_reduce_scatter>() &&
                   compiled<doubling_all_gather>() && compiled<tree_all_reduce>() && compiled<tree_broadcast>() &&
                   compiled<in_order_tree_all_reduce>() && compiled<torus_2d_all_reduce>();
  return all ? 0 : 1;
}
