// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/process_state.hpp"

#include <toroid/toroid.hpp>
#include <toroid/transport/fault_injecting.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

// One rank loses its signals, or dies, at every place of a call where that can happen, one after the other. Every rank
// gets an error that names it, soon; what was returned as good before is right; buffers are freed at once.

namespace {

using toroid::transport::death;
using toroid::transport::fault_counts;
using toroid::transport::fault_injecting;
using toroid::transport::faults;
using toroid::transport::rank_has_died;
using clock_type = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int most_ranks = 4;
constexpr std::size_t beside_the_flag = 9, in_regions = 1500, pullable = 9000;
static_assert(pullable * sizeof(std::uint32_t) >= toroid::detail::least_pulled_bytes);

enum class ground { threads, processes };
enum class path { in_place, staged, pulled };
enum class algorithm { direct, ring };

/// What the ranks do: the same all-reduce again and again.
struct scenario {
  ground where = ground::threads;
  path how = path::in_place;
  algorithm by = algorithm::direct;
  std::size_t count = in_regions;
  int ranks = 2;

  std::string name() const {
    return support::joined(where == ground::threads ? "threads, " : "processes, ",
                           how == path::in_place ? "in place, "
                           : how == path::staged ? "staged, "
                                                 : "pulled, ",
                           by == algorithm::direct ? "direct, " : "ring, ", count, " elements, ", ranks, " ranks");
  }
};

struct trial {
  scenario what{};
  int culprit = 0;
  faults chosen{};
  milliseconds limit{};
  int calls = 20;  ///< at most
};

enum class end : int { none, timeout, lost, died, another, without_an_error };

/// What became of a rank, in memory that all share.
struct outcome {
  std::atomic<end> how{end::none};
  std::atomic<bool> wrong{false};    ///< a result that was returned as good is not
  std::atomic<bool> changed{false};  ///< the next call gave something else than the same error
  std::atomic<bool> slow{false};
  char text[1000] = {};
};
struct record {
  fault_counts culprit{};
  outcome ranks[most_ranks];
};

/// Buffers of a call, and what happens to them when it is over.
template <class Communicator>
class call_buffers {
 public:
  using element = std::uint32_t;
  call_buffers(Communicator& comm, const scenario& what)
      : m_comm(comm), m_count(what.count), m_allocated(what.where == ground::processes && what.how == path::in_place) {
    if (m_allocated) {
      m_in = toroid::allocate<element>(comm, m_count);
      m_out = toroid::allocate<element>(comm, m_count);
    } else {
      m_ordinary = std::make_unique<element[]>(2 * m_count);
      m_in = {m_ordinary.get(), m_count};
      m_out = {m_ordinary.get() + m_count, m_count};
    }
  }
  call_buffers(const call_buffers&) = delete;
  call_buffers& operator=(const call_buffers&) = delete;
  /// Whoever reads or writes them from now on gets caught, by wrong results or by a sanitizer.
  ~call_buffers() {
    if (m_ordinary != nullptr) std::fill_n(m_ordinary.get(), 2 * m_count, element{0xdeadbeef});
    if (!m_allocated) return;
    toroid::deallocate(m_comm, m_in);
    toroid::deallocate(m_comm, m_out);
  }
  /// Ordinary memory that shall live on.
  std::unique_ptr<element[]> release() { return std::move(m_ordinary); }

  std::span<element> in() const { return m_in; }
  std::span<element> out() const { return m_out; }

 private:
  Communicator& m_comm;
  std::size_t m_count;
  bool m_allocated;
  std::unique_ptr<element[]> m_ordinary;
  std::span<element> m_in, m_out;
};

template <class Communicator>
void sum(Communicator& comm, algorithm by, std::span<const std::uint32_t> in, std::span<std::uint32_t> out) {
  if (by == algorithm::ring)
    toroid::all_reduce(comm, in, out, toroid::ring{});
  else
    toroid::all_reduce(comm, in, out, toroid::direct{});
}

/// Calls until an error comes. @return buffers that must outlive the other ranks
template <class Communicator>
std::unique_ptr<std::uint32_t[]> play(Communicator& comm, const trial& t, record& seen) {
  outcome& mine = seen.ranks[comm.rank()];
  const auto finish = [&](end how, const char* text) {
    std::strncpy(mine.text, text, sizeof mine.text - 1);
    mine.how = how;
  };
  const auto again = [&]<class Error>(const Error& error) {
    std::uint32_t value = 1;
    try {
      toroid::all_reduce(comm, std::span(&value, 1));
      mine.changed = true;
    } catch (const Error& repeated) {
      if (std::strcmp(repeated.what(), error.what()) != 0) mine.changed = true;
    } catch (...) {
      mine.changed = true;
    }
  };
  if (t.what.how == path::pulled) support::prefer_pulling(comm);
  for (int call = 1; call <= t.calls; ++call) {
    call_buffers<Communicator> buffers(comm, t.what);
    const auto given = [&](int rank, std::size_t i) {
      return static_cast<std::uint32_t>(1000 * call + 100 * (rank + 1)) + static_cast<std::uint32_t>(i % 89);
    };
    for (std::size_t i = 0; i < t.what.count; ++i) buffers.in()[i] = given(comm.rank(), i);
    const auto began = clock_type::now();
    try {
      sum(comm, t.what.by, buffers.in(), buffers.out());
    } catch (const toroid::timeout_error& error) {
      finish(end::timeout, error.what());
      again(error);
    } catch (const toroid::peer_lost& error) {
      finish(end::lost, error.what());
      again(error);
    } catch (const rank_has_died& error) {
      finish(end::died, error.what());
      again(error);
    } catch (const std::exception& error) {
      finish(end::another, error.what());
    }
    if (mine.how != end::none) {
      if (clock_type::now() - began > t.limit + std::chrono::seconds(10)) mine.slow = true;
      // Where an entry is lost among threads, nobody knows that the culprit may be inside.
      if (t.what.where == ground::threads && seen.culprit.dropped_entries > 0) return buffers.release();
      return {};
    }
    for (std::size_t i = 0; i < t.what.count; ++i) {
      std::uint32_t wanted = 0;
      for (int r = 0; r < comm.size(); ++r) wanted += given(r, i);
      if (buffers.out()[i] != wanted || buffers.in()[i] != given(comm.rank(), i)) mine.wrong = true;
    }
  }
  finish(end::without_an_error, "");
  return {};
}

toroid::options options_of(const trial& t) {
  return {.timeout = t.limit, .region_bytes = 4096 * most_ranks, .shared_bytes = std::size_t{1} << 20};
}
toroid::transport::waiting waiting_of(const trial& t) {
  return {.spins = 50, .yields = 5, .timeout = std::chrono::nanoseconds(t.limit).count()};
}
faults faults_of(const trial& t, int rank, record& seen) {
  constexpr faults none{.delay_one_in = 0, .interrupt_one_in = 0};
  faults chosen = rank == t.culprit ? t.chosen : none;
  if (rank == t.culprit) chosen.counts = &seen.culprit;
  return chosen;
}

/// Runs groups side by side, since most of their time is waiting.
void on_threads(const std::vector<trial>& trials, const support::shared_by_all<record>& seen) {
  using transport_type = fault_injecting<support::restricted<toroid::transport::threads>>;
  using comm_type = toroid::communicator<transport_type>;
  std::vector<comm_type> ends;
  std::vector<std::size_t> whose;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const trial& t = trials[i];
    const auto memory =
        std::make_shared<toroid::transport::threads::shared_memory>(t.what.ranks, options_of(t).region_bytes);
    const auto ways = t.what.how == path::in_place ? support::ways::all : support::ways::through_regions;
    for (int r = 0; r < t.what.ranks; ++r) {
      support::restricted base(toroid::transport::threads(r, memory, waiting_of(t)), ways);
      ends.emplace_back(transport_type(std::move(base), faults_of(t, r, seen[i])), options_of(t));
      whose.push_back(i);
    }
  }
  std::vector<std::unique_ptr<std::uint32_t[]>> kept(ends.size());
  std::vector<std::thread> threads;
  for (std::size_t k = 0; k < ends.size(); ++k)
    threads.emplace_back([&, k] {
      comm_type comm = std::move(ends[k]);
      kept[k] = play(comm, trials[whose[k]], seen[whose[k]]);
    });
  for (std::thread& thread : threads) thread.join();
}

void on_processes(const std::vector<trial>& trials, const support::shared_by_all<record>& seen) {
  using transport_type = support::restricted<fault_injecting<toroid::transport::shm>>;
  std::fflush(nullptr);  // else every process prints what this one has not yet
  std::vector<std::unique_ptr<toroid::detail::forked_group>> groups;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const trial& t = trials[i];
    groups.push_back(std::make_unique<toroid::detail::forked_group>(t.what.ranks, options_of(t)));
    const auto ways = t.what.how == path::staged ? support::ways::through_regions : support::ways::all;
    for (int r = 0; r < t.what.ranks; ++r) {
      groups.back()->start(r, [&](support::shm_memory memory) {
        fault_injecting base(toroid::transport::shm(r, std::move(memory), waiting_of(t)), faults_of(t, r, seen[i]));
        toroid::communicator<transport_type> comm(transport_type(std::move(base), ways), options_of(t));
        (void)play(comm, t, seen[i]);
      });
    }
  }
  for (const auto& group : groups) {
    try {
      group->join();
    } catch (const toroid::peer_lost&) {  // a process was killed: its peers have written down what they saw of it
    }
  }
}

/// Runs trials, some at a time, until each of them is as it must be, or is hopeless.
///
/// @param verdict  throws check_failed for what is never right; returns what may be a machine's having been busy for
///                 longer than the limit, which is then tried again with a longer one
void run(std::vector<trial> trials, const std::function<std::string(const trial&, const record&)>& verdict) {
  constexpr std::size_t at_a_time = 8;
  constexpr int attempts = 4;
  for (int attempt = 1; !trials.empty(); ++attempt) {
    std::vector<trial> once_more;
    for (std::size_t first = 0; first < trials.size(); first += at_a_time) {
      const std::size_t last = std::min(first + at_a_time, trials.size());
      const std::vector<trial> some(trials.begin() + static_cast<std::ptrdiff_t>(first),
                                    trials.begin() + static_cast<std::ptrdiff_t>(last));
      const support::watchdog guard(support::patience);
      const support::shared_by_all<record> seen(some.size());
      const support::process_state before = support::process_state::now();
      if (some.front().what.where == ground::threads)
        on_threads(some, seen);
      else
        on_processes(some, seen);
      const support::process_state after = support::process_state::now();
      CHECK(after.descriptors == before.descriptors);
      CHECK_FALSE(after.has_children);
      for (std::size_t i = 0; i < some.size(); ++i) {
        const trial& t = some[i];
        const std::string what = support::joined(t.what.name(), "; rank ", t.culprit, ", drops from ",
                                                 t.chosen.drop_from, ", dies at ", t.chosen.dies_at, ": ");
        for (int r = 0; r < t.what.ranks; ++r) {
          const outcome& one = seen[i].ranks[r];
          INFO(what << "rank " << r << " says: " << one.text);
          CHECK_FALSE(one.wrong);
          CHECK_FALSE(one.changed);
        }
        const std::string complaint = verdict(t, seen[i]);
        if (complaint.empty()) continue;
        if (attempt == attempts) FAIL(what << complaint);
        once_more.push_back(t);
        once_more.back().limit *= 4;
      }
    }
    trials = std::move(once_more);
  }
}

/// What each rank but the culprit must have seen.
std::string others_saw(const trial& t, const record& seen, end how) {
  const std::string culprit = "rank " + std::to_string(t.culprit);
  for (int r = 0; r < t.what.ranks; ++r) {
    const outcome& one = seen.ranks[r];
    if (r == t.culprit) continue;
    if (one.how != how || std::string(one.text).find(culprit) == std::string::npos || one.slow)
      return support::joined("rank ", r, " ended in way ", static_cast<int>(one.how.load()), one.slow ? ", slowly" : "",
                             ", with the text: ", one.text);
  }
  return {};
}

/// Places of two faultless calls: signals, and signals and waits together.
struct places {
  std::uint64_t signals = 0, all = 0;
};
places places_in(const scenario& what) {
  places found;
  trial t{.what = what, .chosen = {.delay_one_in = 0, .interrupt_one_in = 0}, .limit = milliseconds(20'000)};
  t.calls = 2;
  run({t}, [&](const trial&, const record& seen) {
    for (int r = 0; r < what.ranks; ++r) REQUIRE(seen.ranks[r].how == end::without_an_error);
    found = {seen.culprit.signals, seen.culprit.signals + seen.culprit.waits};
    return std::string();
  });
  REQUIRE(found.signals >= 2);
  REQUIRE(found.all > found.signals);
  return found;
}

/// All paths of one kind of ranks.
std::vector<scenario> scenarios(ground where, std::initializer_list<int> numbers_of_ranks) {
  std::vector<scenario> all;
  for (const int ranks : numbers_of_ranks) {
    all.push_back({where, path::staged, algorithm::direct, beside_the_flag, ranks});
    for (const path how : {path::in_place, path::staged})
      for (const algorithm by : {algorithm::direct, algorithm::ring})
        all.push_back({where, how, by, in_regions, ranks});
    if (where == ground::processes) all.push_back({where, path::pulled, algorithm::direct, pullable, ranks});
  }
  return all;
}

constexpr milliseconds short_limit(150), long_limit(30'000);

void drop_at_every_signal(const std::vector<scenario>& all) {
  std::vector<trial> trials;
  for (const scenario& what : all) {
    const std::uint64_t signals = places_in(what).signals;
    for (std::uint64_t n = 1; n <= signals; ++n) {
      faults chosen{.delay_one_in = 0, .interrupt_one_in = 0, .drop_from = n};
      trials.push_back({what, static_cast<int>(n) % what.ranks, chosen, short_limit});
    }
  }
  run(trials, [](const trial& t, const record& seen) -> std::string {
    for (int r = 0; r < t.what.ranks; ++r) {
      INFO(t.what.name() << "; rank " << t.culprit << " drops from " << t.chosen.drop_from << "; rank " << r
                         << " says: " << seen.ranks[r].text);
      CHECK(seen.ranks[r].how == end::timeout);
    }
    if (seen.culprit.dropped_entries + seen.culprit.dropped_steps == 0) return "nothing was dropped";
    const std::string own = seen.ranks[t.culprit].text;
    if (own.find("rank " + std::to_string(t.culprit)) == std::string::npos) return "the culprit says: " + own;
    return others_saw(t, seen, end::timeout);
  });
}

void die_everywhere(const std::vector<scenario>& all, std::initializer_list<death> ways) {
  std::vector<trial> trials;
  for (const scenario& what : all) {
    const std::uint64_t count = places_in(what).all;
    for (std::uint64_t n = 1; n <= count; ++n) {
      // By turns: each way at each place would take long.
      const death how = ways.begin()[n % ways.size()];
      faults chosen{.delay_one_in = 0, .interrupt_one_in = 0, .dies_at = n, .dies_by = how};
      trials.push_back(
          {what, static_cast<int>(n) % what.ranks, chosen, how == death::silent ? short_limit : long_limit});
    }
  }
  run(trials, [](const trial& t, const record& seen) -> std::string {
    if (seen.culprit.deaths != 1) return "nobody has died";
    const bool leaves_no_trace = t.chosen.dies_by == death::exits || t.chosen.dies_by == death::killed;
    if (seen.ranks[t.culprit].how != (leaves_no_trace ? end::none : end::died)) return "the culprit lives";
    return others_saw(t, seen, t.chosen.dies_by == death::silent ? end::timeout : end::lost);
  });
}

}  // namespace

TEST_CASE("A lost signal of a thread ends in a timeout_error that names it, on all ranks", "[faults]") {
  drop_at_every_signal(scenarios(ground::threads, {2, 3}));
}

TEST_CASE("A lost signal of a process ends in a timeout_error that names it, on all ranks", "[faults]") {
  drop_at_every_signal(scenarios(ground::processes, {2}));
}

TEST_CASE("A lost signal of one of four ranks ends in a timeout_error that names it", "[faults][slow]") {
  drop_at_every_signal(scenarios(ground::threads, {4}));
  drop_at_every_signal(scenarios(ground::processes, {3, 4}));
}

TEST_CASE("A thread that dies is lost to all others, wherever it was", "[faults]") {
  die_everywhere(scenarios(ground::threads, {2, 3}), {death::throws});
}

TEST_CASE("A process that dies is lost to all others, wherever it was", "[faults]") {
  die_everywhere(scenarios(ground::processes, {2}), {death::throws, death::exits, death::killed});
}

TEST_CASE("A rank that falls silent is named by a timeout_error", "[faults]") {
  const scenario on_threads{ground::threads, path::in_place, algorithm::direct, in_regions, 3};
  const scenario on_processes{ground::processes, path::staged, algorithm::ring, in_regions, 2};
  die_everywhere({on_threads}, {death::silent});
  die_everywhere({on_processes}, {death::silent});
}

TEST_CASE("One of four ranks that dies is lost to all others", "[faults][slow]") {
  die_everywhere(scenarios(ground::threads, {4}), {death::throws, death::silent});
  die_everywhere(scenarios(ground::processes, {3, 4}), {death::throws, death::exits, death::killed, death::silent});
}

TEST_CASE("A rank that waits at the end of a chain names who holds it up", "[faults]") {
  // Rank 1 waits for rank 0, which waits for rank 2, whose first step is lost. Rank 1 loses patience first.
  const toroid::options options{.timeout = short_limit};
  const auto memory =
      std::make_shared<toroid::transport::threads::shared_memory>(3, toroid::detail::region_bytes_of(3, options));
  const support::watchdog guard(support::patience);
  std::vector<std::thread> threads;
  std::string texts[3];
  for (int r = 0; r < 3; ++r)
    threads.emplace_back([&, r] {
      const toroid::transport::waiting how{.spins = 50, .yields = 5, .timeout = r == 1 ? 150'000'000 : 60'000'000'000};
      faults chosen{.delay_one_in = 0, .interrupt_one_in = 0};
      if (r == 2) chosen.drop_from = 2;
      support::restricted base(toroid::transport::threads(r, memory, how), support::ways::through_regions);
      toroid::communicator<fault_injecting<decltype(base)>> comm(fault_injecting(std::move(base), chosen), options);
      std::vector<std::uint32_t> values(in_regions);
      try {
        toroid::all_reduce(comm, values, toroid::ring{});
      } catch (const toroid::timeout_error& error) {
        texts[r] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts)
    support::demand_words(text, "rank 1 reports", "waited for rank 0", "not yet in this call: none",
                          "furthest behind: rank 2");
}

TEST_CASE("Signals lost now and then never make a wrong result", "[faults]") {
  for (const ground where : {ground::threads, ground::processes}) {
    std::vector<trial> trials;
    for (const scenario& what : scenarios(where, {2, 3}))
      for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        const faults chosen{.seed = seed, .delay_one_in = 0, .interrupt_one_in = 0, .drop_one_in = 7};
        trials.push_back({what, what.ranks - 1, chosen, short_limit});
      }
    std::uint64_t lost = 0;
    run(trials, [&](const trial& t, const record& seen) -> std::string {
      lost += seen.culprit.dropped_entries + seen.culprit.dropped_steps;
      for (int r = 0; r < t.what.ranks; ++r) {
        INFO(t.what.name() << ": " << seen.ranks[r].text);
        // Twenty calls may have ended well for some before a lost last signal makes others wait for who has left.
        const end how = seen.ranks[r].how;
        CHECK((how == end::timeout || how == end::lost || how == end::without_an_error));
      }
      return {};
    });
    CHECK(lost > 0);
  }
}
