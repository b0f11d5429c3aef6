// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "calls.hpp"
#include "output.hpp"
#include "patterns.hpp"
#include "rival.hpp"
#include "settings.hpp"
#include "timing.hpp"

#include <toroid/toroid.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace bench {

/// A rank's buffer: ordinary memory, or memory that the peers can reach.
template <class Communicator>
class rank_buffer {
 public:
  /// @pre  kind is memory::ordinary where peers can reach none
  rank_buffer(Communicator& comm, memory kind, std::size_t bytes) : m_comm(comm) {
    if constexpr (shares)
      if (kind == memory::shared) {
        m_shared = toroid::allocate<std::byte>(comm, bytes);
        return;
      }
    m_ordinary = std::make_unique<page_buffer>(bytes);
  }
  rank_buffer(const rank_buffer&) = delete;
  rank_buffer& operator=(const rank_buffer&) = delete;
  ~rank_buffer() {
    if constexpr (shares)
      if (!m_ordinary) toroid::deallocate(m_comm, m_shared);
  }
  std::byte* data() const { return m_ordinary ? m_ordinary->data() : m_shared.data(); }

 private:
  static constexpr bool shares = is_mapped<Communicator>;

  Communicator& m_comm;
  std::unique_ptr<page_buffer> m_ordinary;
  std::span<std::byte> m_shared;
};

/// One rank's part of a benchmark.
template <class Communicator>
class rank_of_benchmark {
 public:
  /// @param against  timed in turn, or null
  rank_of_benchmark(Communicator& comm, const settings& what, meeting& place, const calls<Communicator>& functions,
                    rival* against)
      : m_comm(comm),
        m_what(what),
        m_place(place),
        m_self(place, comm.rank()),
        m_functions(functions),
        m_rival(against),
        m_patterns(what.has_data() ? make_patterns(what) : patterns{}),
        m_in(comm, what.memory, what.sizes.back()),
        m_out(comm, what.memory, what.out_of_place ? what.sizes.back() : 0) {}

  void measure(output& print) {
    for (const std::size_t bytes : m_what.sizes) measure(bytes, print);
  }

 private:
  enum class where { in_place, out_of_place };

  /// What the runs of one line have shown so far, on rank 0.
  struct samples {
    std::vector<double> medians, times, skews;
    std::vector<double> spent;  ///< by rank, in all calls together, from its own start to its own end
    std::uint64_t wrong = 0;
  };

  void measure(std::size_t bytes, output& print) {
    line result;
    result.bytes = bytes;
    result.count = m_what.has_data() ? bytes / size_of(m_what.element) : 0;
    result.iterations = m_what.iterations.value_or(iterations_for(bytes, m_place.crowded()));
    samples out_of_place, in_place, vs_out_of_place, vs_in_place;
    std::vector<double> probes{m_self.probe()};
    for (int run = 0; run < m_what.repeat; ++run) {
      const auto measured = [&](where form, bool of_rival, samples& to) {
        if (first()) print.progress(bytes, run);
        measure_run(form, of_rival, result, to);
        probes.push_back(m_self.probe());
      };
      const auto alternated = [&](where form, samples& own, samples& other) {
        const bool rival_first = run % 2 == 1;  // neither always comes after the other
        if (m_rival != nullptr && rival_first) measured(form, true, other);
        measured(form, false, own);
        if (m_rival != nullptr && !rival_first) measured(form, true, other);
      };
      if (m_what.out_of_place) alternated(where::out_of_place, out_of_place, vs_out_of_place);
      if (m_what.in_place) alternated(where::in_place, in_place, vs_in_place);
    }
    if (!first()) return;
    result.barrier_ns = median(probes);
    result.placement = placement_of(probes, m_place.crowded());
    const auto told = [&](const samples& own, const samples& other) {
      measured_form form{summary(own, bytes), {}};
      if (m_rival != nullptr) form.vs = summary(other, bytes);
      return form;
    };
    if (m_what.out_of_place) result.out_of_place = told(out_of_place, vs_out_of_place);
    if (m_what.in_place) result.in_place = told(in_place, vs_in_place);
    print.add(result, m_place.total());
  }

  void measure_run(where form, bool of_rival, const line& at, samples& to) {
    std::byte* const in = m_in.data();
    std::byte* const out = form == where::in_place ? in : m_out.data();
    if (of_rival) {
      m_rival->bind(in, out, at.count);
      timed_calls(form, in, out, at, to, [this] { m_rival->call(); });
    } else {
      const auto function = form == where::in_place ? m_functions.in_place : m_functions.out_of_place;
      timed_calls(form, in, out, at, to, [&] { function(m_comm, m_what, in, out, at.count); });
    }
  }

  template <class Call>
  void timed_calls(where form, std::byte* in, std::byte* out, const line& at, samples& to, Call call) {
    std::vector<double> times;
    to.spent.resize(std::size_t(m_what.ranks));
    for (int i = 0; i <= at.iterations; ++i, ++m_call) {
      prepare(form, in, at.count);
      m_self.barrier();
      m_self.barrier();
      m_self.stamp_start();
      call();
      m_self.stamp_end();
      m_self.barrier();
      if (first() && i > 0) {
        const call_times took = times_of(m_place);
        times.push_back(took.time);
        to.skews.push_back(took.skew);
        for (int r = 0; r < m_what.ranks; ++r)
          to.spent[std::size_t(r)] += double(m_place.line(r).end - m_place.line(r).start) / 1e3;
      }
      m_place.line(m_comm.rank()).wrong = wrong(form, in, out, at.count);
      m_self.barrier();
      if (first())
        for (int r = 0; r < m_what.ranks; ++r) to.wrong += m_place.line(r).wrong;
    }
    if (!first()) return;
    to.medians.push_back(median(times));
    to.times.insert(to.times.end(), times.begin(), times.end());
  }

  /// What this rank brings: all of the buffer, or of an all-gather the own block.
  toroid::block brought(std::size_t count) const {
    if (m_what.collective == collective::all_gather) return toroid::block_of(count, m_what.ranks, m_comm.rank());
    return {0, count};
  }
  std::byte* input_at(where form, std::byte* in, toroid::block own) const {
    return form == where::in_place ? in + own.begin * size_of(m_what.element) : in;
  }

  void prepare(where form, std::byte* in, std::size_t count) {
    if (!m_what.has_data()) return;
    const toroid::block own = brought(count);
    own_pattern().fill(input_at(form, in, own), own.begin, own.count, m_call);
  }

  /// Elements of the result that are wrong, and of an input that should have stayed.
  std::size_t wrong(where form, std::byte* in, const std::byte* out, std::size_t count) {
    if (!m_what.has_data()) return left_too_early();
    std::size_t result = 0;
    switch (m_what.collective) {
      case collective::all_reduce:
        result = m_patterns.reduced.wrong(out, 0, count, m_call);
        break;
      case collective::reduce_scatter: {
        const toroid::block own = toroid::block_of(count, m_what.ranks, m_comm.rank());
        result = m_patterns.reduced.wrong(out, own.begin, own.count, m_call);
        break;
      }
      case collective::all_gather:
        for (int r = 0; r < m_what.ranks; ++r) {
          const toroid::block part = toroid::block_of(count, m_what.ranks, r);
          result += m_patterns.inputs[std::size_t(r)].wrong(out + part.begin * size_of(m_what.element), part.begin,
                                                            part.count, m_call);
        }
        break;
      case collective::broadcast:
        result = m_patterns.inputs[std::size_t(m_what.root)].wrong(out, 0, count, m_call);
        break;
      case collective::barrier:
        break;
    }
    if (form == where::in_place) return result;
    const toroid::block own = brought(count);
    return result + own_pattern().wrong(input_at(form, in, own), own.begin, own.count, m_call);
  }

  /// A barrier moves no data; it is wrong for a rank to leave before the last one has come.
  std::size_t left_too_early() {
    std::int64_t last = 0;
    for (int r = 0; r < m_what.ranks; ++r) last = std::max(last, m_place.line(r).start);
    return m_place.line(m_comm.rank()).end < last ? 1 : 0;
  }

  figure summary(const samples& from, std::size_t bytes) const {
    figure result;
    result.time = median(from.medians);
    result.least = *std::min_element(from.times.begin(), from.times.end());
    result.p50 = percentile(from.times, 0.50);
    result.p99 = percentile(from.times, 0.99);
    result.skew = median(from.skews);
    const double calls = double(from.times.size());
    const auto [shortest, longest] = std::minmax_element(from.spent.begin(), from.spent.end());
    result.rank_least = *shortest / calls;
    result.rank_most = *longest / calls;
    result.rank_average = std::accumulate(from.spent.begin(), from.spent.end(), 0.0) / calls / m_what.ranks;
    result.algorithm_bandwidth = result.time > 0 ? double(bytes) / result.time / 1e3 : 0;
    result.bus_bandwidth = result.algorithm_bandwidth * bus_factor(m_what);
    result.wrong = from.wrong;
    return result;
  }

  const pattern& own_pattern() const { return m_patterns.inputs[std::size_t(m_comm.rank())]; }
  bool first() const { return m_comm.rank() == 0; }

  Communicator& m_comm;
  const settings& m_what;
  meeting& m_place;
  member m_self;
  calls<Communicator> m_functions;
  rival* m_rival;
  patterns m_patterns;
  rank_buffer<Communicator> m_in, m_out;
  std::size_t m_call = 0;
};

template <class Communicator>
calls<Communicator> narrow_or_unsigned_calls(const settings& what) {
  switch (what.element) {
    case element::int8:
      return calls_over<Communicator, std::int8_t>(what);
    case element::uint8:
      return calls_over<Communicator, std::uint8_t>(what);
    case element::uint32:
      return calls_over<Communicator, std::uint32_t>(what);
    case element::uint64:
      return calls_over<Communicator, std::uint64_t>(what);
    case element::float16:
      return calls_over<Communicator, toroid::float16>(what);
    case element::bfloat16:
      return calls_over<Communicator, toroid::bfloat16>(what);
    default:
      return {};
  }
}

/// The calls of all collectives, operators and algorithms that settings may name.
template <class Communicator>
calls<Communicator> chosen_calls(const settings& what) {
  if (what.collective == collective::barrier)
    return {
        [](Communicator& comm, const settings&, const std::byte*, std::byte*, std::size_t) { toroid::barrier(comm); },
        nullptr};
  switch (what.element) {
    case element::int32:
      return calls_over<Communicator, std::int32_t>(what);
    case element::int64:
      return calls_over<Communicator, std::int64_t>(what);
    case element::float32:
      return calls_over<Communicator, float>(what);
    case element::float64:
      return calls_over<Communicator, double>(what);
    default:
      if constexpr (is_mapped<Communicator>) return narrow_or_unsigned_calls<Communicator>(what);
  }
  return {};
}

}  // namespace bench
