// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Micro-benchmarks of the library's parts. Each function registers those of one file.
namespace bench::micro {

void register_reduce_kernels();
void register_hand_over();
void register_schedule_walk();

}  // namespace bench::micro
