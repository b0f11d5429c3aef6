// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace fashion_mnist {

/// The command line is wrong.
class option_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class transport { shm, threads };

inline const char* name_of(transport which) { return which == transport::shm ? "shm" : "threads"; }

struct options {
  int ranks = 2;
  std::string data = "/usr/share/datasets/fashion-mnist";
  int epochs = 10;
  std::size_t batch = 256;
  std::uint64_t seed = 1;
  float learning_rate = 0.01F;
  transport over = transport::shm;
  std::string save;
  bool help = false;
};

/// The text for --help.
inline std::string usage() {
  const options by_default;
  std::ostringstream text;
  text << "usage: fashion_mnist [options]\n"
          "Trains a softmax regression on Fashion-MNIST, the work of each batch shared out among the ranks.\n"
          "  --ranks P          number of ranks (default "
       << by_default.ranks
       << ")\n"
          "  --data DIR         where the four IDX files are (default "
       << by_default.data
       << ")\n"
          "  --epochs N         passes over the training images (default "
       << by_default.epochs
       << ")\n"
          "  --batch B          images in a step, over all ranks (default "
       << by_default.batch
       << ")\n"
          "  --seed S           of the order in which images are visited (default "
       << by_default.seed
       << ")\n"
          "  --learning-rate X  of the first step; it falls linearly to zero (default "
       << by_default.learning_rate
       << ")\n"
          "  --transport T      shm: ranks are processes; threads: ranks are threads (default "
       << name_of(by_default.over)
       << ")\n"
          "  --save FILE        write the trained weights as raw float: 10 x 784 weights, then 10 biases\n"
          "  --help             this text\n";
  return text.str();
}

namespace detail {

template <class Number>
Number parse_number(const std::string& name, std::string_view text) {
  Number value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc::result_out_of_range) throw option_error(name + ": " + std::string(text) + " is out of range");
  if (code != std::errc{} || end != text.data() + text.size()) {
    throw option_error(name + ": '" + std::string(text) + "' is not a number of the kind wanted");
  }
  return value;
}

template <class Number>
Number parse_positive(const std::string& name, std::string_view text) {
  const auto value = parse_number<Number>(name, text);
  if (!(value > 0)) throw option_error(name + ": " + std::string(text) + " is not greater than zero");
  return value;
}

}  // namespace detail

/// @param arguments  the command line without the program's name
/// @throws option_error for an option that is unknown, repeated, without a value, or with one out of range
inline options parse(std::span<char*> arguments) {
  options result;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string name = arguments[i];
    if (!seen.insert(name).second) throw option_error(name + " is given twice");
    if (name == "--help") {
      result.help = true;
      continue;
    }
    const auto value = [&]() -> std::string {
      if (++i == arguments.size()) throw option_error(name + " needs a value");
      return arguments[i];
    };
    if (name == "--ranks") {
      result.ranks = detail::parse_positive<int>(name, value());
    } else if (name == "--data") {
      result.data = value();
    } else if (name == "--epochs") {
      result.epochs = detail::parse_positive<int>(name, value());
    } else if (name == "--batch") {
      result.batch = detail::parse_positive<std::size_t>(name, value());
    } else if (name == "--seed") {
      result.seed = detail::parse_number<std::uint64_t>(name, value());
    } else if (name == "--learning-rate") {
      result.learning_rate = detail::parse_positive<float>(name, value());
      if (!std::isfinite(result.learning_rate)) throw option_error(name + " must be finite");
    } else if (name == "--transport") {
      const std::string which = value();
      if (which == name_of(transport::shm)) {
        result.over = transport::shm;
      } else if (which == name_of(transport::threads)) {
        result.over = transport::threads;
      } else {
        throw option_error(name + ": '" + which + "' is neither shm nor threads");
      }
    } else if (name == "--save") {
      result.save = value();
      if (result.save.empty()) throw option_error(name + " needs the name of a file");
    } else {
      throw option_error("unknown option '" + name + "'");
    }
  }
  return result;
}

}  // namespace fashion_mnist
