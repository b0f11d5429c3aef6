// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/collective/detail/collective_call.hpp>
#include <toroid/topology/block.hpp>
#include <toroid/transport/mailbox.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace toroid::detail {

/// A collective on blocks that callers lay out. See schedule/exchange.hpp.
struct exchange_call : collective_call {
  std::vector<block> outgoing;  ///< in the input
  std::vector<block> incoming;  ///< in the result

  /// The longest block that this rank knows of.
  std::size_t longest() const noexcept {
    std::size_t found = 0;
    for (const block& b : outgoing)
      if (b.count > found) found = b.count;
    for (const block& b : incoming)
      if (b.count > found) found = b.count;
    return found;
  }
  std::size_t outgoing_elements() const noexcept {
    std::size_t all = 0;
    for (const block& b : outgoing) all += b.count;
    return all;
  }
};

/// What an entry into an exchange says, behind the addresses of the buffers: the longest block, where blocks stand in
/// the input, and, if they are short enough, the blocks themselves, one behind the other.
class exchange_entry {
 public:
  static constexpr std::size_t capacity =
      transport::inline_bytes - sizeof(transport::buffer_addresses) - sizeof(std::size_t);
  /// More ranks than this have no room for their tables.
  static constexpr int most_ranks = static_cast<int>(capacity / sizeof(block));
  /// Beside transport::buffer_addresses' ways: the blocks are in the entry.
  static constexpr std::uint64_t has_blocks = 16;

  explicit exchange_entry(transport::entry& e) noexcept : m_bytes(e.payload + sizeof(transport::buffer_addresses)) {}

  void write(const exchange_call& call) const noexcept {
    const std::size_t longest = call.longest();
    std::memcpy(m_bytes, &longest, sizeof longest);
    if (!call.outgoing.empty())
      std::memcpy(m_bytes + sizeof longest, call.outgoing.data(), call.outgoing.size() * sizeof(block));
  }
  std::size_t longest() const noexcept {
    std::size_t longest = 0;
    std::memcpy(&longest, m_bytes, sizeof longest);
    return longest;
  }
  block outgoing(int index) const noexcept {
    block found;
    std::memcpy(&found, m_bytes + sizeof(std::size_t) + static_cast<std::size_t>(index) * sizeof(block), sizeof found);
    return found;
  }
  /// Where the blocks stand, behind a table of so many.
  std::byte* blocks(std::size_t table) const noexcept { return m_bytes + sizeof(std::size_t) + table * sizeof(block); }
  static bool fit(std::size_t table, std::size_t bytes) noexcept { return table * sizeof(block) + bytes <= capacity; }

 private:
  std::byte* m_bytes;
};

}  // namespace toroid::detail
