// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/schedule/concept.hpp>
#include <toroid/schedule/layout.hpp>
#include <toroid/schedule/operation.hpp>
#include <toroid/topology/block.hpp>
#include <toroid/topology/grid.hpp>
#include <toroid/topology/ring.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <vector>

/// What a schedule costs: exactly in elements, and in seconds by the alpha-beta-gamma model with contention for links.
namespace toroid::schedule {

/// What one rank moves and computes in a whole call, in elements of the vector.
struct traffic {
  std::size_t sent = 0;      ///< to peers, each copy counted
  std::size_t received = 0;  ///< from peers
  std::size_t reduced = 0;   ///< applications of the operator
  std::size_t messages = 0;  ///< sent
};

/// Counts, with blocks as toroid::block_of cuts them.
///
/// @param count  elements of the whole vector, any value
///
/// Cost: walks all steps of the rank.
template <schedule_type S>
constexpr traffic traffic_of(S, problem p, std::size_t count) {
  traffic sum;
  const int blocks = S::blocks(p);
  for (int step = 0; step < S::steps(p); ++step) {
    const int operations = S::operations(p, step);
    for (int i = 0; i < operations; ++i) {
      const operation op = S::at(p, step, i);
      std::size_t elements = 0;
      for (int b = 0; b < op.blocks.count; ++b) elements += block_at<S>(p, count, op.blocks.at(b, blocks)).count;
      const auto peers_in = [&](const peers& set) {
        return static_cast<std::size_t>(set.count - (set.contains(p.rank, p.ranks) ? 1 : 0));
      };
      sum.sent += peers_in(op.to) * elements;
      sum.messages += peers_in(op.to);
      sum.received += peers_in(op.from) * elements;
      sum.reduced += static_cast<std::size_t>(op.from.count - 1) * elements;
    }
  }
  return sum;
}

/// The constants of the model.
struct machine {
  double alpha = 0;  ///< seconds from the start of a step to the arrival of a message without content
  double beta = 0;   ///< seconds per byte on one link, in one direction
  double gamma = 0;  ///< seconds per byte for one application of the operator
};

/// How ranks are wired. A link carries its messages one after the other; links work beside each other.
///
/// Every rank has one link of each of `lanes` kinds, and route(from, to, ranks, use) calls use(lane, rank) for each
/// link that a message passes. Wirings look the same from every rank.
template <class W>
concept wiring = requires(const W& w) {
  { W::lanes } -> std::convertible_to<int>;
  w.route(0, 1, 2, [](int, int) {});
};

/// A switch that never blocks: a message occupies its sender's way in and its receiver's way out.
struct crossbar {
  static constexpr int lanes = 2;
  template <class Use>
  constexpr void route(int from, int to, int, Use use) const {
    use(0, from);
    use(1, to);
  }
};

/// A link from each rank to its right neighbour and one to its left. Messages go the shorter way round, to the right
/// if both are equal.
struct ring_of_links {
  static constexpr int lanes = 2;
  template <class Use>
  constexpr void route(int from, int to, int ranks, Use use) const {
    const int ahead = topology::wrap(to - from, ranks);
    if (2 * ahead <= ranks)
      for (int i = 0; i < ahead; ++i) use(0, topology::wrap(from + i, ranks));
    else
      for (int i = 0; i < ranks - ahead; ++i) use(1, topology::wrap(from - i, ranks));
  }
};

/// Ranks as a grid with wrap-around, a link to each of the four neighbours. Messages go along the row first, then along
/// the column, each the shorter way round.
struct torus_of_links {
  topology::grid shape;
  static constexpr int lanes = 4;  ///< right, left, down, up
  template <class Use>
  constexpr void route(int from, int to, int, Use use) const {
    const int row = shape.row_of(from), column = shape.column_of(to);
    ring_of_links{}.route(shape.column_of(from), column, shape.columns,
                          [&](int lane, int c) { use(lane, shape.rank_at(row, c)); });
    ring_of_links{}.route(row, shape.row_of(to), shape.rows,
                          [&](int lane, int r) { use(2 + lane, shape.rank_at(r, column)); });
  }
};

static_assert(wiring<crossbar> && wiring<ring_of_links> && wiring<torus_of_links>);

/// What cost() says about a call.
struct schedule_cost {
  double seconds = 0;
  int rounds = 0;           ///< steps in which something is sent
  std::size_t sent = 0;     ///< bytes, by the rank that sends most
  std::size_t reduced = 0;  ///< bytes, by the rank that reduces most
};

namespace detail {

/// What happens in one step, in bytes.
struct step_load {
  bool sends = false;       ///< somebody does
  std::size_t link = 0;     ///< over the busiest link
  std::size_t reduced = 0;  ///< by the busiest rank
};

/// Adds up loads per link, step by step and over all steps. Where all ranks do the same, one rank's messages tell the
/// load of every link: what it puts on any link of a lane, others put on each.
template <schedule_type S, wiring W>
class loads {
 public:
  /// @param bytes  of the vector that is handled, or of a piece of it
  loads(int ranks, int rows, std::size_t bytes, W w)
      : m_ranks(ranks), m_rows(rows), m_bytes(bytes), m_wiring(w), m_symmetric(is_symmetric()) {
    const std::size_t links = static_cast<std::size_t>(W::lanes) * (m_symmetric ? 1 : static_cast<std::size_t>(ranks));
    m_step.resize(links);
    m_all.resize(links);
    const std::size_t walked = m_symmetric ? 1 : static_cast<std::size_t>(ranks);
    m_sent.resize(walked);
    m_reduced.resize(walked);
  }

  /// One step of a class that has `repeated` of them.
  step_load add(int step, int repeated) {
    step_load found;
    std::fill(m_step.begin(), m_step.end(), 0);
    for (int rank = 0; rank < (m_symmetric ? 1 : m_ranks); ++rank) add_rank(rank, step, repeated, found);
    for (std::size_t i = 0; i < m_step.size(); ++i) {
      found.link = std::max(found.link, m_step[i]);
      m_all[i] += m_step[i] * static_cast<std::size_t>(repeated);
    }
    return found;
  }

  /// Of all steps together.
  std::size_t busiest_link() const { return *std::max_element(m_all.begin(), m_all.end()); }
  std::size_t busiest_sender() const { return *std::max_element(m_sent.begin(), m_sent.end()); }
  std::size_t busiest_reducer() const { return *std::max_element(m_reduced.begin(), m_reduced.end()); }

 private:
  /// Rooted schedules treat ranks differently, and in those rank 0 acts differently if it is the root.
  bool is_symmetric() const {
    if (m_ranks == 1) return true;
    if (ranks_differ<S>()) return false;
    const problem root{0, m_ranks, 0, m_rows}, other{0, m_ranks, 1, m_rows};
    for (int c = 0; c < S::class_count(root); ++c) {
      const int step = S::class_at(root, c).first;
      if (S::operations(root, step) != S::operations(other, step)) return false;
      for (int i = 0; i < S::operations(root, step); ++i)
        if (!same(S::at(root, step, i), S::at(other, step, i))) return false;
    }
    return true;
  }
  static bool same(const operation& a, const operation& b) {
    const auto same_peers = [](const peers& p, const peers& q) {
      return p.first == q.first && p.step == q.step && p.count == q.count && p.extra == q.extra;
    };
    return same_peers(a.from, b.from) && same_peers(a.to, b.to) && a.blocks.count == b.blocks.count;
  }

  void add_rank(int rank, int step, int repeated, step_load& found) {
    const problem p{rank, m_ranks, 0, m_rows};
    const int all_blocks = S::blocks(p);
    std::size_t sent = 0, reduced = 0;
    const int operations = S::operations(p, step);
    for (int i = 0; i < operations; ++i) {
      const operation op = S::at(p, step, i);
      std::size_t bytes = 0;
      if constexpr (weighted<S>)
        for (int b = 0; b < op.blocks.count; ++b) bytes += longest_at<S>(p, m_bytes, op.blocks.at(b, all_blocks));
      else
        bytes = static_cast<std::size_t>(op.blocks.count) * longest_block(m_bytes, all_blocks);
      reduced += static_cast<std::size_t>(op.from.count - 1) * bytes;
      for (int d = 0; d < op.to.count; ++d) {
        const int to = op.to.at(d, m_ranks);
        if (to == rank) continue;
        found.sends = true;
        sent += bytes;
        m_wiring.route(rank, to, m_ranks, [&](int lane, int at) { m_step[link(lane, at)] += bytes; });
      }
    }
    found.reduced = std::max(found.reduced, reduced);
    m_sent[static_cast<std::size_t>(rank)] += sent * static_cast<std::size_t>(repeated);
    m_reduced[static_cast<std::size_t>(rank)] += reduced * static_cast<std::size_t>(repeated);
  }

  std::size_t link(int lane, int rank) const {
    const std::size_t l = static_cast<std::size_t>(lane);
    return m_symmetric ? l : l * static_cast<std::size_t>(m_ranks) + static_cast<std::size_t>(rank);
  }

  int m_ranks, m_rows;
  std::size_t m_bytes;
  W m_wiring;
  bool m_symmetric;
  std::vector<std::size_t> m_step, m_all;      // per lane, or per link where ranks differ
  std::vector<std::size_t> m_sent, m_reduced;  // per rank walked, in all steps
};

}  // namespace detail

/// The time a call takes by the alpha-beta-gamma model.
///
/// What is sent in step s arrives in step s + 1: together they are one round. A round takes alpha if anything is sent,
/// beta for each byte on the busiest link, and gamma for each byte that the busiest rank then combines; a rank sends to
/// several peers at once, so alpha is paid once. The announcing first step and the receiving last one so cost nothing
/// by themselves. Pieces of a pipelined schedule follow each other as fast as the busiest link and rank let them, those
/// of others one after the other.
///
/// Every block counts as much as the longest one (of its part), cut at bytes rather than elements.
///
/// @param ranks   at least 1
/// @param bytes   of the whole vector, any value
/// @param w       how ranks are wired
/// @param pieces  at least 1
/// @param rows    of the grid that the ranks form
///
/// Cost: one step of each class, of rank 0 alone: a microsecond for a ring of 65,536 ranks. A schedule that depends on
/// a root, or whose ranks differ, is walked for all ranks instead.
///
/// Example: `cost(ring_all_reduce{}, 64, 100 << 20, {5e-6, 1 / 25e9}).seconds`
template <schedule_type S, wiring W = crossbar>
schedule_cost cost(S, int ranks, std::size_t bytes, machine m, W w = {}, int pieces = 1, int rows = 1) {
  const problem zero{0, ranks, 0, rows};
  const auto seconds = [&](std::size_t on_link, std::size_t reduced) {
    return m.beta * static_cast<double>(on_link) + m.gamma * static_cast<double>(reduced);
  };
  detail::loads<S, W> loads(ranks, rows, longest_block(bytes, pieces), w);
  schedule_cost sum;
  double first_piece = 0;
  for (int c = 0; c < S::class_count(zero); ++c) {
    const step_class run = S::class_at(zero, c);
    const detail::step_load step = loads.add(run.first, run.count);
    if (step.sends) sum.rounds += run.count;
    first_piece += run.count * ((step.sends ? m.alpha : 0) + seconds(step.link, step.reduced));
  }
  const double steady = (sum.rounds > 0 ? m.alpha : 0) + seconds(loads.busiest_link(), loads.busiest_reducer());
  sum.seconds = first_piece + (pieces - 1) * (S::pipelined ? steady : first_piece);
  sum.sent = loads.busiest_sender() * static_cast<std::size_t>(pieces);
  sum.reduced = loads.busiest_reducer() * static_cast<std::size_t>(pieces);
  return sum;
}

}  // namespace toroid::schedule
