// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/core/call_site.hpp>
#include <toroid/core/element.hpp>
#include <toroid/core/operators.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace toroid::detail {

enum class collective_kind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  barrier,
  reduce,
  gather,
  scatter,
  all_to_all,
  all_gather_v,
  gather_v,
  scatter_v,
  all_to_all_v,
  reduce_scatter_v,
  split,
  make_grid
};
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
  constexpr const char* names[] = {"all_reduce",   "reduce_scatter",   "all_gather", "broadcast",
                                   "barrier",      "reduce",           "gather",     "scatter",
                                   "all_to_all",   "all_gather_v",     "gather_v",   "scatter_v",
                                   "all_to_all_v", "reduce_scatter_v", "split",      "make_grid"};
  return names[static_cast<int>(kind)];
}
constexpr bool combines(collective_kind kind) noexcept {
  using enum collective_kind;
  return kind == all_reduce || kind == reduce_scatter || kind == reduce || kind == reduce_scatter_v;
}
constexpr bool has_root(collective_kind kind) noexcept {
  using enum collective_kind;
  return kind == broadcast || kind == reduce || kind == gather || kind == scatter || kind == gather_v ||
         kind == scatter_v;
}
/// Whether all ranks know how many elements move in all.
constexpr bool has_count(collective_kind kind) noexcept {
  using enum collective_kind;
  return kind != barrier && kind != gather_v && kind != scatter_v && kind != all_to_all_v;
}
inline const char* name_of(algorithm_kind kind) noexcept {
  constexpr const char* names[] = {"automatic", "direct",        "ring",     "halving_doubling",
                                   "tree",      "tree in order", "torus_2d", "an algorithm of the program"};
  return names[static_cast<int>(kind)];
}

/// Values of the caller's that are searched with check::data.
struct inspected_run {
  const std::byte* elements = nullptr;
  std::size_t count = 0;
  std::size_t (*first_flaw)(const std::byte*, std::size_t) = nullptr;  ///< null: there can be none
};

/// What all ranks must agree on besides, in a call that is one part of an operation, or whose elements travel, or are
/// combined, as another type than they are stored in.
struct call_details {
  std::uint32_t storage = 0;      ///< element_code of the caller's elements
  std::uint32_t accumulator = 0;  ///< element_code of what they are combined as
  std::size_t storage_size = 0;
  std::size_t count = 0;                 ///< elements of the whole operation, or of one type of them
  bool fused = false;                    ///< several buffers: `lengths` of them
  const std::size_t* lengths = nullptr;  ///< of the buffers, in elements
  std::size_t buffers = 0;
  std::uint64_t digest = 0;  ///< of the types, the order and the lengths of fused buffers
  // With check::data: what the first part looks at, for all parts. Later ones look at nothing.
  const inspected_run* inspected = nullptr;
  std::size_t inspected_runs = 0;

  /// 24 bits that differ, but for rare collisions, where details do.
  constexpr std::uint32_t signature() const noexcept {
    std::uint64_t word = (static_cast<std::uint64_t>(storage) << 32 | accumulator) * 0x9e3779b97f4a7c15u;
    word = (word ^ word >> 32 ^ count) * 0xbf58476d1ce4e5b9u;
    word = (word ^ word >> 29 ^ digest) * 0x94d049bb133111ebu;
    return static_cast<std::uint32_t>(word >> 40);
  }
};

/// What all ranks must agree on in a call, and what an error says about it.
struct call_identity {
  collective_kind collective = collective_kind::barrier;
  algorithm_kind algorithm = algorithm_kind::automatic;
  std::uint32_t element = 0;    ///< element_code
  std::uint32_t operation = 0;  ///< operator_code, 0 without an operator; above its 8 bits the details' signature
  std::uint32_t element_size = 1;
  std::size_t count = 0;          ///< elements of the whole vector
  std::size_t segment_bytes = 0;  ///< of the algorithm's options
  int root = 0;
  int rows = 1;  ///< of the grid that the algorithm sees in the ranks
  call_site at{};
  const call_details* details = nullptr;  ///< as long as the call lasts; null in most calls

  /// One word that differs, but for rare collisions, where anything but the call site differs.
  constexpr std::uint64_t signature() const noexcept {
    std::uint64_t word = (static_cast<std::uint64_t>(element) << 32 | operation) * 0x9e3779b97f4a7c15u;
    word ^= static_cast<std::uint64_t>(collective) << 56 | static_cast<std::uint64_t>(algorithm) << 48;
    word += count * 0xbf58476d1ce4e5b9u;
    word ^= segment_bytes * 0x94d049bb133111ebu;
    const std::uint64_t place = static_cast<std::uint64_t>(rows) << 32 | static_cast<std::uint32_t>(root);
    return word + place * 0xd6e8feb86659fd93u;
  }

  /// Whether it is about a vector of somebody's, rather than about the group itself.
  constexpr bool moves_elements() const noexcept {
    return collective != collective_kind::barrier && collective != collective_kind::split &&
           collective != collective_kind::make_grid;
  }

  std::string describe() const {
    std::string text = name_of(collective);
    if (moves_elements()) {
      if (details != nullptr)
        text += describe_details();
      else
        text += " of " + (has_count(collective) ? std::to_string(count) + " " : std::string()) + element_name(element) +
                " (" + std::to_string(element_size) + " bytes each)";
      if (combines(collective)) text += std::string(", ") + operator_name(operation & 0xff);
      text += std::string(", ") + name_of(algorithm);
      if (algorithm == algorithm_kind::torus_2d) text += " in " + std::to_string(rows) + (rows == 1 ? " row" : " rows");
      if (segment_bytes != 0) text += " in segments of " + std::to_string(segment_bytes) + " bytes";
      if (has_root(collective)) text += ", root " + std::to_string(root);
    }
    return text + " at " + at.file + ":" + std::to_string(at.line);
  }

  std::string describe_details() const {
    std::string text = " of " + std::to_string(details->count) + " " + element_name(details->storage) + " (" +
                       std::to_string(details->storage_size) + " bytes each)";
    if (element != details->storage) text += std::string(" as ") + element_name(element);
    if (details->accumulator != 0) text += std::string(", accumulated as ") + element_name(details->accumulator);
    if (!details->fused) return text;
    text += ", fused from buffers of";
    for (std::size_t i = 0; i < details->buffers && i < 8; ++i)
      text += (i == 0 ? " " : " + ") + std::to_string(details->lengths[i]);
    if (details->buffers == 0) text += " nothing";
    return details->buffers > 8 ? text + " + ..." : text;
  }
};

}  // namespace toroid::detail
