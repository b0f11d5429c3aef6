// SPDX-License-Identifier: Apache-2.0
#pragma once

// Catch2 in either of its shapes: version 3 (headers by topic) or version 2 (one header).
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
