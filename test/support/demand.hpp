// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>

namespace support {

/// What a rank throws when it finds something wrong. Catch2's assertions must not be used on several threads, and tell
/// a forked process's parent nothing; launchers bring this error back instead.
class check_failed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The parts one after the other, as a stream prints them.
template <class... Parts>
std::string joined(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

/// Throws check_failed with the parts as its text unless `holds`.
template <class... Parts>
void demand(bool holds, const Parts&... parts) {
  if (!holds) throw check_failed(joined(parts...));
}

/// Whether `text` contains each of `words`; if not, throws check_failed with both.
template <class... Words>
void demand_words(const std::string& text, const Words&... words) {
  (demand(text.find(words) != std::string::npos, "no \"", words, "\" in \"", text, "\""), ...);
}

/// The text of the error of type Error that `f` throws; check_failed if it throws nothing or something else.
template <class Error, class F>
std::string text_of(F&& f) {
  try {
    try {
      f();
    } catch (const Error& error) {
      return error.what();
    }
  } catch (const std::exception& error) {
    throw check_failed(joined("another error than expected: ", error.what()));
  }
  throw check_failed("no error where one is expected");
}

}  // namespace support
