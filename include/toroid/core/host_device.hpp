// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks what runs on the CPU and inside a CUDA kernel alike; nothing but the CPU where no CUDA compiler is at work.
#if defined(__CUDACC__)
#define TOROID_HOST_DEVICE __host__ __device__
#else
#define TOROID_HOST_DEVICE
#endif
