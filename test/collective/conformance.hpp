// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "support/launch.hpp"

#include <toroid/collective/all_gather.hpp>
#include <toroid/collective/all_reduce.hpp>
#include <toroid/collective/barrier.hpp>
#include <toroid/collective/broadcast.hpp>
#include <toroid/collective/plan.hpp>
#include <toroid/collective/reduce_scatter.hpp>
#include <toroid/communicator/communicator.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// What every transport must do, as one suite: all collectives, algorithms and numbers of ranks, counts around every
/// edge, in place and out of place, element by element. A transport is held against it in about twenty lines; see
/// test/transport/conform_threads.cpp.
namespace conformance {

/// One type is enough: types and operators are held against the reduction loops elsewhere.
using element = std::uint32_t;

/// An algorithm with its options.
struct choice {
  enum class kind { automatic, direct, ring, halving_doubling, tree, torus_2d } algorithm = kind::automatic;
  std::size_t segment_bytes = 0;
  int rows = 0;  ///< of a torus; zero: chosen
  std::string name() const;

  bool scatters() const { return algorithm <= kind::halving_doubling; }  ///< and gathers
  bool broadcasts() const { return algorithm <= kind::ring || algorithm == kind::tree; }
};

/// One rank's end of a group, its type erased, so that the suite itself is compiled once.
class group_end {
 public:
  virtual ~group_end() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// In place where `in` and `out` begin at the same address.
  virtual void all_reduce(std::span<const element> in, std::span<element> out, choice how) = 0;
  virtual void reduce_scatter(std::span<const element> in, std::span<element> out, choice how) = 0;
  /// In place where `in` is inside `out`.
  virtual void all_gather(std::span<const element> in, std::span<element> out, choice how) = 0;
  virtual void broadcast(std::span<element> buffer, int root, choice how) = 0;
  virtual void barrier() = 0;
  virtual std::span<std::byte> allocate(std::size_t bytes) = 0;
  virtual void deallocate(std::span<std::byte> memory) = 0;
  /// What all_reduce would do with so many elements.
  virtual toroid::call_plan plan(std::size_t count, choice how) = 0;
  virtual std::size_t footprint() const = 0;
  virtual void abort() = 0;
  /// Destroys the communicator.
  virtual void drop() = 0;
  /// Counts as if so many calls and steps had been made; on every rank, before the first call.
  virtual void start_at(std::uint64_t calls, std::uint64_t steps) = 0;
};

template <class Communicator>
class end_of final : public group_end {
 public:
  explicit end_of(Communicator& comm) : m_comm(comm) {}
  int rank() const override { return m_comm.rank(); }
  int size() const override { return m_comm.size(); }
  void all_reduce(std::span<const element> in, std::span<element> out, choice how) override {
    with(how, [&](auto algorithm) {
      if (in.data() == out.data())
        toroid::all_reduce(m_comm, out, algorithm);
      else
        toroid::all_reduce(m_comm, in, out, algorithm);
    });
  }
  void reduce_scatter(std::span<const element> in, std::span<element> out, choice how) override {
    with(
        how, [&](auto algorithm) requires scatters<decltype(algorithm)> {
          toroid::reduce_scatter(m_comm, in, out, algorithm);
        });
  }
  void all_gather(std::span<const element> in, std::span<element> out, choice how) override {
    with(
        how, [&](auto algorithm) requires scatters<decltype(algorithm)> {
          toroid::all_gather(m_comm, in, out, algorithm);
        });
  }
  void broadcast(std::span<element> buffer, int root, choice how) override {
    with(
        how, [&](auto algorithm) requires broadcasts<decltype(algorithm)> {
          toroid::broadcast(m_comm, buffer, root, algorithm);
        });
  }
  void barrier() override { toroid::barrier(m_comm); }
  std::span<std::byte> allocate(std::size_t bytes) override { return toroid::allocate<std::byte>(m_comm, bytes); }
  void deallocate(std::span<std::byte> memory) override { toroid::deallocate(m_comm, memory); }
  toroid::call_plan plan(std::size_t count, choice how) override {
    toroid::call_plan answer;
    with(how, [&](auto algorithm) { answer = toroid::plan<element>(m_comm, count, algorithm); });
    return answer;
  }
  std::size_t footprint() const override { return m_comm.footprint(); }
  void abort() override { m_comm.abort(); }
  void drop() override { const Communicator gone = std::move(m_comm); }
  void start_at(std::uint64_t calls, std::uint64_t steps) override {
    toroid::detail::access::session(m_comm).start_at(calls, steps);
  }

 private:
  template <class A>
  static constexpr bool scatters = !std::is_same_v<A, toroid::tree> && !std::is_same_v<A, toroid::torus_2d>;
  template <class A>
  static constexpr bool broadcasts =
      !std::is_same_v<A, toroid::halving_doubling> && !std::is_same_v<A, toroid::torus_2d>;

  template <class F, class A>
  static void call(F& f, const A& algorithm) {
    if constexpr (std::is_invocable_v<F&, const A&>)
      f(algorithm);
    else
      throw toroid::usage_error("the suite asks for a call that does not compile");
  }
  template <class F>
  static void with(choice how, F f) {
    switch (how.algorithm) {
      case choice::kind::automatic:
        return call(f, toroid::automatic{});
      case choice::kind::direct:
        return call(f, toroid::direct{.segment_bytes = how.segment_bytes});
      case choice::kind::ring:
        return call(f, toroid::ring{.segment_bytes = how.segment_bytes});
      case choice::kind::halving_doubling:
        return call(f, toroid::halving_doubling{.segment_bytes = how.segment_bytes});
      case choice::kind::tree:
        return call(f, toroid::tree{.segment_bytes = how.segment_bytes});
      case choice::kind::torus_2d:
        return call(f, toroid::torus_2d{.rows = how.rows, .segment_bytes = how.segment_bytes});
    }
  }
  Communicator& m_comm;
};

/// Where the buffers of the ranks lie.
enum class memory_kind {
  ordinary,  ///< each rank's own, between fences
  shared,    ///< from toroid::allocate
  mixed,     ///< from toroid::allocate, but for one buffer of one rank, by turns
};

/// Runs a function on all ranks of a new group; rethrows the first error.
using launcher =
    std::function<void(int ranks, const toroid::options& chosen, const std::function<void(group_end&)>& f)>;

/// The launchers of the two transports, for tests that look at what both must do.
void on_threads(int ranks, const toroid::options& chosen, const std::function<void(group_end&)>& f);
void on_processes(int ranks, const toroid::options& chosen, const std::function<void(group_end&)>& f);
/// The same, counting how often the kernel copies from a peer; short of what is admitted, it does so wherever it may.
launcher on_counted_processes(support::ways admitted, std::atomic<int>& pulls);
/// On processes of which one is late to set up its end.
void on_processes_with_a_late_one(int ranks, int late, const std::function<void(group_end&)>& f);
inline void on_both(int ranks, const toroid::options& chosen, const std::function<void(group_end&)>& f) {
  on_threads(ranks, chosen, f);
  on_processes(ranks, chosen, f);
}

/// How much of the product to run.
enum class extent { whole, brief };

/// The algorithms that every transport is held against, and those that have segments also with short ones.
std::vector<choice> all_choices();
/// The same of the algorithms for many ranks, which use whatever a schedule can say.
std::vector<choice> many_rank_choices();

/// Throws support::check_failed where the transport breaks the contract, or what a call threw.
void check(const launcher& launch, memory_kind where, extent how_much = extent::whole);

/// The same for one number of ranks, and possibly for other algorithms.
void check(const launcher& launch, memory_kind where, extent how_much, int ranks,
           std::vector<choice> choices = all_choices());

/// The same for given counts and algorithms, in a group that runs already; to be called by all ranks.
void check(group_end& end, memory_kind where, const std::vector<std::size_t>& counts,
           const std::vector<choice>& choices, extent how_much);

/// The same for counts around every edge.
void check(group_end& end, memory_kind where, extent how_much, const std::vector<choice>& choices);

/// For launchers: from a communicator to the suite's view of it.
inline auto erased(std::function<void(group_end&)> f) {
  return [f = std::move(f)](auto& comm) {
    end_of end(comm);
    f(end);
  };
}

}  // namespace conformance
