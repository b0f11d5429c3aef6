// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/call_site.hpp>
#include <toroid/core/element.hpp>
#include <toroid/core/operators.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace toroid::detail {

enum class collective_kind : std::uint8_t { all_reduce, reduce_scatter, all_gather, broadcast, barrier };
enum class algorithm_kind : std::uint8_t {
  automatic,
  direct,
  ring,
  halving_doubling,
  tree,
  tree_in_order,  ///< `tree`, with an operator that does not commute
  torus_2d,
  own  ///< the program's
};

inline const char* name_of(collective_kind kind) noexcept {
  constexpr const char* names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier"};
  return names[static_cast<int>(kind)];
}
inline const char* name_of(algorithm_kind kind) noexcept {
  constexpr const char* names[] = {"automatic", "direct",        "ring",     "halving_doubling",
                                   "tree",      "tree in order", "torus_2d", "an algorithm of the program"};
  return names[static_cast<int>(kind)];
}

/// What all ranks must agree on in a call, and what an error says about it.
struct call_identity {
  collective_kind collective = collective_kind::barrier;
  algorithm_kind algorithm = algorithm_kind::automatic;
  std::uint32_t element = 0;    ///< element_code
  std::uint32_t operation = 0;  ///< operator_code; 0 without an operator
  std::size_t element_size = 1;
  std::size_t count = 0;          ///< elements of the whole vector
  std::size_t segment_bytes = 0;  ///< of the algorithm's options
  int root = 0;
  int rows = 1;  ///< of the grid that the algorithm sees in the ranks
  call_site at{};

  /// One word that differs, but for rare collisions, where anything but the call site differs.
  constexpr std::uint64_t signature() const noexcept {
    std::uint64_t word = (static_cast<std::uint64_t>(element) << 32 | operation) * 0x9e3779b97f4a7c15u;
    word ^= static_cast<std::uint64_t>(collective) << 56 | static_cast<std::uint64_t>(algorithm) << 48;
    word += count * 0xbf58476d1ce4e5b9u;
    word ^= segment_bytes * 0x94d049bb133111ebu;
    const std::uint64_t place = static_cast<std::uint64_t>(rows) << 32 | static_cast<std::uint32_t>(root);
    return word + place * 0xd6e8feb86659fd93u;
  }

  std::string describe() const {
    std::string text = name_of(collective);
    if (collective != collective_kind::barrier) {
      text += " of " + std::to_string(count) + " " + element_name(element) + " (" + std::to_string(element_size) +
              " bytes each)";
      if (collective == collective_kind::all_reduce || collective == collective_kind::reduce_scatter)
        text += std::string(", ") + operator_name(operation);
      text += std::string(", ") + name_of(algorithm);
      if (algorithm == algorithm_kind::torus_2d) text += " in " + std::to_string(rows) + (rows == 1 ? " row" : " rows");
      if (segment_bytes != 0) text += " in segments of " + std::to_string(segment_bytes) + " bytes";
      if (collective == collective_kind::broadcast) text += ", root " + std::to_string(root);
    }
    return text + " at " + at.file + ":" + std::to_string(at.line);
  }
};

}  // namespace toroid::detail
