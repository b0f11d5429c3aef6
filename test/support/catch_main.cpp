// SPDX-License-Identifier: Apache-2.0
// Compiled once for all test programs. Version 2 is built here rather than taken from the distribution's archive, whose
// older language level leaves out what C++20 test files refer to. Version 3 brings main() in its library.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
