// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

enum class collective { all_reduce, reduce_scatter, all_gather, broadcast, barrier };
enum class launch { threads, processes, mpi };
enum class transport { threads, shm, mpi };
enum class memory { ordinary, shared };
enum class algorithm { automatic, direct, ring, halving_doubling, tree, torus_2d };
enum class element {
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
};
enum class reduction {
  sum,
  product,
  minimum,
  maximum,
  average,
  bit_and,
  bit_or,
  bit_xor,
  logical_and,
  logical_or,
};
enum class format { nccl, osu, csv, json };
enum class checking { none, calls };
enum class opponent { mpi };

/// The words for the values of an enumeration, in the order of its values.
template <class E>
inline constexpr std::array<std::string_view, 0> words{};
template <>
inline constexpr auto words<collective> = std::to_array<std::string_view>({"all_reduce", "reduce_scatter", "all_gather",
                                                                           "broadcast", "barrier"});
template <>
inline constexpr auto words<launch> = std::to_array<std::string_view>({"threads", "processes", "mpi"});
template <>
inline constexpr auto words<transport> = std::to_array<std::string_view>({"threads", "shm", "mpi"});
template <>
inline constexpr auto words<memory> = std::to_array<std::string_view>({"private", "shared"});
template <>
inline constexpr auto words<algorithm> = std::to_array<std::string_view>({"automatic", "direct", "ring",
                                                                          "halving_doubling", "tree", "torus_2d"});
template <>
inline constexpr auto words<element> = std::to_array<std::string_view>({"int8", "uint8", "int32", "uint32", "int64",
                                                                        "uint64", "float16", "bfloat16", "float",
                                                                        "double"});
template <>
inline constexpr auto words<reduction> = std::to_array<std::string_view>({"sum", "product", "minimum", "maximum",
                                                                          "average", "bit_and", "bit_or", "bit_xor",
                                                                          "logical_and", "logical_or"});
template <>
inline constexpr auto words<format> = std::to_array<std::string_view>({"nccl", "osu", "csv", "json"});
template <>
inline constexpr auto words<checking> = std::to_array<std::string_view>({"none", "calls"});
template <>
inline constexpr auto words<opponent> = std::to_array<std::string_view>({"mpi"});

static_assert(words<collective>.size() == std::size_t(collective::barrier) + 1);
static_assert(words<algorithm>.size() == std::size_t(algorithm::torus_2d) + 1);
static_assert(words<element>.size() == std::size_t(element::float64) + 1);
static_assert(words<reduction>.size() == std::size_t(reduction::logical_or) + 1);

template <class E>
constexpr std::string_view word(E value) {
  return words<E>[static_cast<std::size_t>(value)];
}

/// What is to be measured.
struct settings {
  bench::collective collective = collective::all_reduce;
  bench::launch launch = launch::threads;
  bench::transport transport = transport::threads;
  int ranks = 2;
  bench::memory memory = memory::ordinary;
  bench::algorithm algorithm = algorithm::automatic;
  std::optional<std::size_t> segment_bytes;  ///< the algorithm's own choice unless given
  int rows = 0;                              ///< of torus_2d; zero: chosen
  int columns = 0;                           ///< likewise
  bench::element element = element::float32;
  bench::reduction reduction = reduction::sum;
  int root = 0;
  std::vector<std::size_t> sizes;  ///< bytes of the whole buffer, ascending
  std::optional<int> iterations;   ///< calls of a run; by size unless given
  int repeat = 5;                  ///< runs of a line
  bool in_place = true;
  bool out_of_place = true;
  bool pin = true;
  bench::checking checking = checking::calls;
  bench::format format = format::nccl;
  bool full = false;           ///< of format osu: all of its columns
  std::optional<opponent> vs;  ///< whose collective is timed in turn

  bool reduces() const { return collective == collective::all_reduce || collective == collective::reduce_scatter; }
  bool has_data() const { return collective != collective::barrier; }
  bool has_root() const { return collective == collective::broadcast; }
  /// Whether the OSU micro-benchmarks count what one rank brings or gets, instead of the whole buffer.
  bool osu_counts_blocks() const { return collective == collective::all_gather; }
};

std::size_t size_of(element type);
bool is_integer(element type);

/// Why these settings cannot be measured, in a sentence; empty if they can.
std::string refusal(const settings& what);

/// Launches ranks that are threads or forked processes, measures and prints. Returns the number of wrong elements.
std::size_t run(const settings& what);

}  // namespace bench
