// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>

namespace bench {

/// What a library calls itself.
struct library_name {
  std::string word;     ///< such as mpich
  std::string version;  ///< in its own words
};

/// The same collective of another library, which is timed in turn with this one's, on the same buffers.
class rival {
 public:
  virtual ~rival() = default;

  /// Before a run, outside of what is timed: everything that the call can know in advance.
  ///
  /// @param in     as in calls; in place the same as `out`
  /// @param count  elements of the whole buffer
  virtual void bind(const std::byte* in, std::byte* out, std::size_t count) = 0;
  virtual void call() = 0;
};

}  // namespace bench
