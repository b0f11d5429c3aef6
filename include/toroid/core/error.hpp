// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdexcept>

namespace toroid {

/// What every error of the library derives from.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A wrong argument. Thrown before any byte moves; the communicator stays whole.
class usage_error : public error {
 public:
  using error::error;
};

/// The ranks disagree about a call: the text names two ranks, both calls and both call sites.
class mismatch_error : public error {
 public:
  using error::error;
};

/// A peer was not heard from within the time that the communicator's options allow.
class timeout_error : public error {
 public:
  using error::error;
};

/// A peer has died, has left, or has failed: it will not answer any more.
class peer_lost : public error {
 public:
  using error::error;
};

/// The operating system refused something: the text names what was asked for and the remedy.
class system_error : public error {
 public:
  using error::error;
};

}  // namespace toroid
