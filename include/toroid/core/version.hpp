// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The version of the library, for the preprocessor; `find_package(toroid)` sees the same one.
#define TOROID_VERSION_MAJOR 0
#define TOROID_VERSION_MINOR 1
#define TOROID_VERSION_PATCH 0
