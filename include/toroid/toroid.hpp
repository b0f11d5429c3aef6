// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Collective communication between the ranks of a group: everything that needs nothing but the standard library and
/// Linux.
///
///     toroid::run_threads(4, [](auto& comm) {
///       std::vector<float> g(1000, float(comm.rank()));
///       toroid::all_reduce(comm, g);
///     });
#include <toroid/collective/all_gather.hpp>
#include <toroid/collective/all_gather_v.hpp>
#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/all_to_all.hpp>
#include <toroid/collective/barrier.hpp>
#include <toroid/collective/broadcast.hpp>
#include <toroid/collective/fused.hpp>
#include <toroid/collective/gather.hpp>
#include <toroid/collective/gather_v.hpp>
#include <toroid/collective/grid_all_reduce.hpp>
#include <toroid/collective/plan.hpp>
#include <toroid/collective/policies.hpp>
#include <toroid/collective/reduce.hpp>
#include <toroid/collective/reduce_scatter.hpp>
#include <toroid/collective/reduce_scatter_v.hpp>
#include <toroid/collective/scatter.hpp>
#include <toroid/collective/scatter_v.hpp>
#include <toroid/collective/start.hpp>
#include <toroid/communicator/allocator.hpp>
#include <toroid/communicator/communicator.hpp>
#include <toroid/communicator/grid.hpp>
#include <toroid/communicator/pending.hpp>
#include <toroid/communicator/run_processes.hpp>
#include <toroid/communicator/run_threads.hpp>
#include <toroid/communicator/shm.hpp>
#include <toroid/core/error.hpp>
#include <toroid/core/version.hpp>
#include <toroid/transport/shm.hpp>
#include <toroid/transport/threads.hpp>
