// SPDX-License-Identifier: Apache-2.0
// The checker against programs whose outcomes under the C++ memory orders are known.
#include "model/variables.hpp"
#include "support/catch.hpp"

#include <string>
#include <vector>

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;
constexpr auto acq_rel = std::memory_order_acq_rel;
constexpr auto seq_cst = std::memory_order_seq_cst;

/// Up to three atomics, all 0 at first, and threads over them.
struct litmus {
  model::machine m;
  model::atomic x{m, "x"}, y{m, "y"}, z{m, "z"};

  template <class... Programs>
  explicit litmus(Programs... programs) {
    (m.add_thread("thread " + std::to_string(m_count++), [this, programs] { return programs(*this); }), ...);
  }

  /// Whether some execution ends with these results of the threads (and values of x, y, z, if more are given).
  bool shows(const std::vector<std::uint64_t>& wanted) {
    if (!m_explored) {
      m_found = m.explore();
      INFO(m_found.text());
      REQUIRE(m_found.fault.empty());
      m_explored = true;
    }
    for (const auto& outcome : m_found.outcomes)
      if (std::equal(wanted.begin(), wanted.end(), outcome.begin())) return true;
    return false;
  }

 private:
  int m_count = 0;
  bool m_explored = false;
  model::report m_found;
};

std::uint64_t two(std::uint64_t first, std::uint64_t second) { return 10 * first + second; }

using order = std::memory_order;

/// Message passing: a flag announces data.
bool message_passing(order flag_store, order flag_load) {
  litmus l(
      [=](litmus& v) {
        v.x.store(1, relaxed);
        v.y.store(1, flag_store);
        return std::uint64_t{0};
      },
      [=](litmus& v) {
        const std::uint64_t flag = v.y.load(flag_load);
        return two(flag, v.x.load(relaxed));
      });
  CHECK(l.shows({0, 11}));
  CHECK(l.shows({0, 0}));
  return l.shows({0, 10});
}

/// Store buffering: each stores its own and loads the other's.
bool store_buffering(order store, order load, bool fences = false) {
  const auto side = [=](model::machine& m, model::atomic& mine, model::atomic& other) {
    mine.store(1, store);
    if (fences) m.fence(seq_cst);
    return std::uint64_t{other.load(load)};
  };
  litmus l([=](litmus& v) { return side(v.m, v.x, v.y); }, [=](litmus& v) { return side(v.m, v.y, v.x); });
  CHECK(l.shows({0, 1}));
  CHECK(l.shows({1, 1}));
  return l.shows({0, 0});
}

/// Two readers of two independent writes: do they agree which came first?
bool independent_reads(order store, order load) {
  litmus l([=](litmus& v) { return v.x.store(1, store), std::uint64_t{0}; },
           [=](litmus& v) { return v.y.store(1, store), std::uint64_t{0}; },
           [=](litmus& v) {
             const std::uint64_t first = v.x.load(load);
             return two(first, v.y.load(load));
           },
           [=](litmus& v) {
             const std::uint64_t first = v.y.load(load);
             return two(first, v.x.load(load));
           });
  CHECK(l.shows({0, 0, 11, 11}));
  return l.shows({0, 0, 10, 10});
}

bool load_buffering(order store, order load) {
  litmus l(
      [=](litmus& v) {
        const std::uint64_t got = v.x.load(load);
        v.y.store(1, store);
        return got;
      },
      [=](litmus& v) {
        const std::uint64_t got = v.y.load(load);
        v.x.store(1, store);
        return got;
      });
  CHECK(l.shows({0, 1}));
  return l.shows({1, 1});
}

/// 2+2W: each stores to both, in opposite orders; do the first stores win?
bool two_plus_two_writes(order store) {
  litmus l([=](litmus& v) { return v.x.store(1, store), v.y.store(2, store), std::uint64_t{0}; },
           [=](litmus& v) { return v.y.store(1, store), v.x.store(2, store), std::uint64_t{0}; });
  CHECK(l.shows({0, 0, 2, 2}));
  CHECK(l.shows({0, 0, 2, 1}));
  return l.shows({0, 0, 1, 1});
}

/// R: a store against a store and a load.
bool store_against_load(order store, order load) {
  litmus l([=](litmus& v) { return v.x.store(1, store), v.y.store(1, store), std::uint64_t{0}; },
           [=](litmus& v) {
             v.y.store(2, store);
             return std::uint64_t{v.x.load(load)};
           });
  return l.shows({0, 0, 1, 2});
}

}  // namespace

TEST_CASE("message passing needs release and acquire") {
  CHECK_FALSE(message_passing(release, acquire));
  CHECK_FALSE(message_passing(seq_cst, seq_cst));
  CHECK(message_passing(relaxed, acquire));
  CHECK(message_passing(release, relaxed));
  CHECK(message_passing(relaxed, relaxed));
}

TEST_CASE("message passing by fences") {
  const auto shown = [](bool first, bool second) {
    litmus l(
        [=](litmus& v) {
          v.x.store(1, relaxed);
          if (first) v.m.fence(release);
          v.y.store(1, relaxed);
          return std::uint64_t{0};
        },
        [=](litmus& v) {
          const std::uint64_t flag = v.y.load(relaxed);
          if (second) v.m.fence(acquire);
          return two(flag, v.x.load(relaxed));
        });
    return l.shows({0, 10});
  };
  CHECK_FALSE(shown(true, true));
  CHECK(shown(false, true));
  CHECK(shown(true, false));
}

TEST_CASE("store buffering needs sequential consistency") {
  CHECK_FALSE(store_buffering(seq_cst, seq_cst));
  CHECK_FALSE(store_buffering(relaxed, relaxed, true));
  CHECK(store_buffering(release, acquire));
  CHECK(store_buffering(seq_cst, acquire));
  CHECK(store_buffering(release, seq_cst));
}

TEST_CASE("a sequentially consistent exchange does not order a relaxed load behind it") {
  const auto shown = [](order load) {
    const auto side = [=](model::atomic& mine, model::atomic& other) {
      mine.exchange(1, seq_cst);
      return std::uint64_t{other.load(load)};
    };
    litmus l([=](litmus& v) { return side(v.x, v.y); }, [=](litmus& v) { return side(v.y, v.x); });
    return l.shows({0, 0});
  };
  CHECK_FALSE(shown(seq_cst));
  CHECK(shown(relaxed));
}

TEST_CASE("one membarrier orders both sides of store buffering") {
  const auto shown = [](bool barrier) {
    litmus l([](litmus& v) { return v.x.store(1, relaxed), std::uint64_t{v.y.load(relaxed)}; },
             [=](litmus& v) {
               v.y.store(1, relaxed);
               if (barrier) v.m.membarrier();
               return std::uint64_t{v.x.load(relaxed)};
             });
    CHECK(l.shows({1, 0}));
    CHECK(l.shows({0, 1}));
    CHECK(l.shows({1, 1}));
    return l.shows({0, 0});
  };
  CHECK_FALSE(shown(true));
  CHECK(shown(false));
}

TEST_CASE("independent reads of independent writes") {
  CHECK_FALSE(independent_reads(seq_cst, seq_cst));
  CHECK(independent_reads(release, acquire));
  CHECK(independent_reads(seq_cst, acquire));
}

TEST_CASE("load buffering is not shown, also where the standard allows it") {
  CHECK_FALSE(load_buffering(release, acquire));
  CHECK_FALSE(load_buffering(relaxed, relaxed));  // a limit of the checker
}

TEST_CASE("stores to two places in opposite orders") {
  CHECK_FALSE(two_plus_two_writes(seq_cst));
  CHECK(two_plus_two_writes(release));
  CHECK(two_plus_two_writes(relaxed));
}

TEST_CASE("a store against a store and a load") {
  CHECK_FALSE(store_against_load(seq_cst, seq_cst));
  CHECK(store_against_load(release, acquire));
}

TEST_CASE("reads of one place never go back") {
  litmus l([](litmus& v) { return v.x.store(1, relaxed), v.x.store(2, relaxed), std::uint64_t{0}; },
           [](litmus& v) {
             const std::uint64_t first = v.x.load(relaxed);
             return two(first, v.x.load(relaxed));
           });
  CHECK(l.shows({0, 0}));
  CHECK(l.shows({0, 2}));
  CHECK(l.shows({0, 12}));
  CHECK(l.shows({0, 22}));
  CHECK_FALSE(l.shows({0, 10}));
  CHECK_FALSE(l.shows({0, 20}));
  CHECK_FALSE(l.shows({0, 21}));
}

TEST_CASE("a thread reads what it has stored, or something newer") {
  litmus l([](litmus& v) { return v.x.store(1, relaxed), std::uint64_t{v.x.load(relaxed)}; },
           [](litmus& v) { return v.x.store(2, relaxed), std::uint64_t{v.x.load(relaxed)}; });
  CHECK_FALSE(l.shows({0}));
  CHECK(l.shows({1, 2}));
  CHECK(l.shows({2, 2}));
  CHECK(l.shows({1, 1}));
  CHECK_FALSE(l.shows({2, 1}));  // 1 before 2, and 2 before 1
}

TEST_CASE("what was acquired is released again") {
  const auto shown = [](order middle) {
    litmus l([](litmus& v) { return v.x.store(1, relaxed), v.y.store(1, release), std::uint64_t{0}; },
             [=](litmus& v) {
               if (v.y.load(middle) == 1) v.z.store(1, release);
               return std::uint64_t{0};
             },
             [](litmus& v) {
               const std::uint64_t flag = v.z.load(acquire);
               return two(flag, v.x.load(relaxed));
             });
    return l.shows({0, 0, 10});
  };
  CHECK_FALSE(shown(acquire));
  CHECK(shown(relaxed));
}

TEST_CASE("a read-modify-write continues a release sequence, a store does not") {
  const auto shown = [](bool modify) {
    litmus l([](litmus& v) { return v.x.store(1, relaxed), v.y.store(1, release), std::uint64_t{0}; },
             [=](litmus& v) {
               if (modify) return v.y.fetch_add(1, relaxed);
               const std::uint64_t got = v.y.load(relaxed);
               if (got == 1) v.y.store(2, relaxed);
               return got;
             },
             [](litmus& v) {
               const std::uint64_t flag = v.y.load(acquire);
               return two(flag, v.x.load(relaxed));
             });
    return l.shows({0, 1, 20});
  };
  CHECK_FALSE(shown(true));
  CHECK(shown(false));
}

TEST_CASE("read-modify-writes lose nothing, loads and stores do") {
  const auto sums = [](bool modify) {
    const auto add = [=](litmus& v) {
      if (modify)
        v.x.fetch_add(1, relaxed);
      else
        v.x.store(v.x.load(relaxed) + 1, relaxed);
      return std::uint64_t{0};
    };
    litmus l(add, add, add);
    CHECK(l.shows({0, 0, 0, 3}));
    return l.shows({0, 0, 0, 2}) || l.shows({0, 0, 0, 1});
  };
  CHECK_FALSE(sums(true));
  CHECK(sums(false));
}

TEST_CASE("of several that compare and exchange one wins") {
  const auto claim = [](litmus& v) {
    std::uint64_t nobody = 0;
    return std::uint64_t{v.x.compare_exchange_strong(nobody, 1, acq_rel)};
  };
  litmus l(claim, claim, claim);
  CHECK(l.shows({1, 0, 0}));
  CHECK(l.shows({0, 1, 0}));
  CHECK(l.shows({0, 0, 1}));
  CHECK_FALSE(l.shows({0, 0, 0}));
  CHECK_FALSE(l.shows({1, 1, 0}));
}

namespace {

/// One thread writes data and raises a flag, the other waits for it.
std::string handed_over(order flag_store, order flag_load, bool read_back) {
  model::machine m;
  model::atomic flag(m, "flag"), seen(m, "seen");
  model::plain data(m, "data");
  m.add_thread("writer", [&] {
    data.write(7);
    flag.store(1, flag_store);
    if (read_back) {
      seen.await(1, acquire);
      data.write(8);
    }
    return std::uint64_t{0};
  });
  m.add_thread("reader", [&] {
    flag.await(1, flag_load);
    const std::uint64_t got = data.read();
    m.require(got == 7, "wrong value");
    if (read_back) {
      seen.store(1, release);
      data.read();  // once too often
    }
    return got;
  });
  return m.explore().fault;
}

}  // namespace

TEST_CASE("an access of plain data that is not ordered is a race") {
  CHECK(handed_over(release, acquire, false).empty());
  CHECK(handed_over(relaxed, acquire, false).find("data race: reader reads data") == 0);
  CHECK(handed_over(release, relaxed, false).find("data race: reader reads data") == 0);
  // The second read comes after what was released.
  CHECK(handed_over(release, acquire, true).find("data race") == 0);
}

TEST_CASE("two unordered writes and an unordered write behind a read are races") {
  for (const bool first_reads : {false, true}) {
    model::machine m;
    model::plain data(m, "data");
    m.add_thread("a", [&] { return first_reads ? data.read() : (data.write(1), 0); });
    m.add_thread("b", [&] { return data.write(2), std::uint64_t{0}; });
    CHECK(m.explore().fault.find("data race: b writes data") == 0);
  }
}

TEST_CASE("two readers are no race") {
  model::machine m;
  model::plain data(m, "data", 5);
  for (const char* name : {"a", "b", "c"}) m.add_thread(name, [&] { return data.read(); });
  const model::report found = m.explore();
  CHECK(found.fault.empty());
  CHECK(found.outcomes == std::set<std::vector<std::uint64_t>>{{5, 5, 5}});
}

namespace {

/// A sleeper and a waker, with the faults that a futex knows.
std::string put_to_sleep(bool compares, bool bumps, bool wakes) {
  model::machine m;
  model::atomic word(m, "word"), flag(m, "flag");
  m.add_thread("sleeper", [&] {
    while (true) {
      const std::uint64_t seen = word.load(acquire);
      if (flag.load(acquire) >= 1) return std::uint64_t{0};
      word.futex_wait(compares ? seen : std::uint64_t{bumps});
    }
  });
  m.add_thread("waker", [&] {
    flag.store(1, relaxed);
    if (bumps) word.fetch_add(1, release);
    if (wakes) word.futex_wake();
    return std::uint64_t{0};
  });
  return m.explore().fault;
}

}  // namespace

TEST_CASE("a futex loses no wake-up if it is used as it should be") {
  CHECK(put_to_sleep(true, true, true).empty());
  CHECK(put_to_sleep(true, false, true).find("deadlock: sleeper sleeps") == 0);
  CHECK(put_to_sleep(true, true, false).find("deadlock: sleeper sleeps") == 0);
  CHECK(put_to_sleep(false, true, true).find("deadlock: sleeper sleeps") == 0);
}

TEST_CASE("threads that wait for each other are a deadlock") {
  model::machine m;
  model::atomic x(m, "x"), y(m, "y");
  m.add_thread("a", [&] { return y.await(1, acquire), x.store(1, release), std::uint64_t{0}; });
  m.add_thread("b", [&] { return x.await(1, acquire), y.store(1, release), std::uint64_t{0}; });
  CHECK(m.explore().fault == "deadlock: a waits; b waits;");
}

TEST_CASE("a fault is told with the shortest way to it") {
  model::machine m;
  model::atomic flag(m, "flag");
  model::plain data(m, "data");
  m.add_thread("writer", [&] {
    const model::machine::inside in(m, "publish");
    flag.store(1, release);
    data.write(7);
    return std::uint64_t{0};
  });
  m.add_thread("reader", [&] {
    flag.await(1, acquire);
    return data.read();
  });
  const model::report found = m.explore();
  CHECK(found.fault == "data race: reader reads data, not ordered after an access by writer");
  CHECK(found.trace == std::vector<std::string>{"writer in publish: flag.store(1, release)",
                                                "writer in publish: writes data = 7",
                                                "reader: waits until flag.load(acquire) is 1", "reader: reads data"});
}

TEST_CASE("a program that depends on something else than its operations is refused") {
  model::machine m;
  model::atomic x(m, "x"), y(m, "y");
  int runs = 0;
  m.add_thread("moody", [&] {
    (runs++ % 2 == 0 ? x : y).store(1, relaxed);
    x.store(2, relaxed);
    return std::uint64_t{0};
  });
  CHECK_THROWS_AS(m.explore(), std::logic_error);
}

TEST_CASE("more states than allowed are a fault") {
  model::machine m;
  model::atomic x(m, "x");
  for (const char* name : {"a", "b", "c"})
    m.add_thread(name, [&] {
      for (int i = 0; i < 4; ++i) x.fetch_add(1, relaxed);
      return std::uint64_t{0};
    });
  CHECK(m.explore(20).fault.find("more states than the limit of 20") == 0);
}
