// SPDX-License-Identifier: Apache-2.0
#include "core/kernel_harness.hpp"

using namespace kernel_test;
using namespace toroid;

TEST_CASE("reduction loops of integers: arithmetic") {
  check_kernels<std::int8_t, sum, product>();
  check_kernels<std::uint16_t, sum, product>();
  check_kernels<std::int32_t, sum, product>();
  check_kernels<std::uint64_t, sum, product>();
}
TEST_CASE("reduction loops of integers: order") {
  check_kernels<std::int8_t, minimum, maximum>();
  check_kernels<std::uint8_t, minimum, maximum>();
  check_kernels<std::int16_t, minimum>();
  check_kernels<std::uint16_t, maximum>();
  check_kernels<std::int32_t, minimum, maximum>();
  check_kernels<std::uint32_t, minimum>();
  check_kernels<std::int64_t, minimum, maximum>();
  check_kernels<std::uint64_t, minimum, maximum>();
}
TEST_CASE("reduction loops of integers: bits and truth") {
  check_kernels<std::int8_t, bit_and, logical_and>();
  check_kernels<std::uint16_t, bit_or, logical_or>();
  check_kernels<std::int32_t, bit_xor, logical_and>();
  check_kernels<std::uint64_t, bit_and, logical_or>();
}
TEST_CASE("reduction loops of integers: average") {
  check_kernels<std::int8_t, average>();
  check_kernels<std::uint16_t, average>();
  check_kernels<std::int32_t, average>();
  check_kernels<std::uint32_t, average>();
  check_kernels<std::int64_t, average>();
  check_kernels<std::uint64_t, average>();
}
TEST_CASE("reduction loops of bool") {
  check_kernels<bool, sum, product, minimum, maximum, bit_and, bit_or, bit_xor, logical_and, logical_or>();
}
