// SPDX-License-Identifier: Apache-2.0
#include "core/kernel_harness.hpp"

using namespace kernel_test;
using namespace toroid;

TEST_CASE("reduction loops of float") {
  check_kernels<float, sum, product, minimum, maximum, average, logical_and, logical_or>();
}
TEST_CASE("reduction loops of double") { check_kernels<double, sum, product, minimum, maximum, average, logical_or>(); }
TEST_CASE("reduction loops of float16") {
  check_kernels<float16, sum, product, minimum, maximum, average, logical_and>();
}
TEST_CASE("reduction loops of bfloat16") {
  check_kernels<bfloat16, sum, product, minimum, maximum, average, logical_or>();
}
TEST_CASE("reduction loops of long double, which has no lanes") { check_kernels<long double, sum, maximum, average>(); }
