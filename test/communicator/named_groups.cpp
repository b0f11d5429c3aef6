// SPDX-License-Identifier: Apache-2.0
#include "communicator/named_group.hpp"
#include "support/catch.hpp"
#include "support/process_state.hpp"
#include "support/random.hpp"
#include "support/sanitizers.hpp"

#include <toroid/toroid.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace named {

using conformance::choice;
using conformance::element;
using support::demand;
using support::demand_words;

void as_rank(const std::string& name, int rank, int ranks, const toroid::options& chosen,
             const std::function<void(group_end&)>& f) {
  auto comm = toroid::shm::make_communicator(name, rank, ranks, chosen);
  conformance::end_of end(comm);
  try {
    f(end);
  } catch (const std::exception& error) {
    if (toroid::detail::access::owns(comm))
      toroid::detail::access::session(comm).fail(support::joined("rank ", rank, " has failed: ", error.what()));
    throw;
  }
}

void start_group(processes& where, const std::string& name, int ranks, const toroid::options& chosen,
                 const std::function<void(group_end&)>& f) {
  for (int r = 0; r < ranks; ++r) where.start(r, [&, r] { as_rank(name, r, ranks, chosen, f); });
}

void demand_right(const std::vector<ending>& endings) {
  std::string wrong;
  for (std::size_t i = 0; i < endings.size(); ++i)
    if (!endings[i].right) wrong += support::joined("\nprocess ", i, ": ", endings[i].words());
  demand(wrong.empty(), "not all processes ended well:", wrong);
}

void run_group(const std::string& name, int ranks, const toroid::options& chosen,
               const std::function<void(group_end&)>& f) {
  const support::watchdog guard(support::patience);
  processes all(ranks);
  start_group(all, name, ranks, chosen, f);
  demand_right(all.join());
}

namespace {

element brought(int rank, std::size_t index) {
  return static_cast<element>(rank) * 1'000'003 + static_cast<element>(index) * 7 + 1;
}

void demand_same(element found, element expected, const group_end& end, const char* what, std::size_t index) {
  demand(found == expected, "rank ", end.rank(), " of ", end.size(), ": ", what, ": element ", index, " is ", found,
         ", not ", expected);
}

void use_with(group_end& end, std::size_t count, choice how, bool shared) {
  const int p = end.size(), rank = end.rank();
  std::vector<element> ordinary(count);
  std::span<element> values(ordinary);
  std::span<std::byte> memory;
  if (shared) {
    memory = end.allocate(count * sizeof(element));
    values = {reinterpret_cast<element*>(memory.data()), count};
  }
  const auto fill = [&] {
    for (std::size_t i = 0; i < count; ++i) values[i] = brought(rank, i);
  };
  const auto sum = [&](std::size_t i) {
    element all = 0;
    for (int r = 0; r < p; ++r) all += brought(r, i);
    return all;
  };
  const toroid::block own = toroid::block_of(count, p, rank);
  fill();
  end.all_reduce(values, values, how);
  for (std::size_t i = 0; i < count; ++i) demand_same(values[i], sum(i), end, "all_reduce", i);
  end.barrier();
  fill();
  end.reduce_scatter(values, values.subspan(own.begin, own.count), how);
  for (std::size_t i = own.begin; i < own.end(); ++i) demand_same(values[i], sum(i), end, "reduce_scatter", i);
  end.all_gather(values.subspan(own.begin, own.count), values, how);
  for (std::size_t i = 0; i < count; ++i) demand_same(values[i], sum(i), end, "all_gather", i);
  fill();
  const int root = static_cast<int>(count) % p;
  end.broadcast(values, root, how);
  for (std::size_t i = 0; i < count; ++i) demand_same(values[i], brought(root, i), end, "broadcast", i);
  if (shared) end.deallocate(memory);
}

}  // namespace

void use(group_end& end) {
  for (const choice how : {choice{}, choice{choice::kind::direct, 0}, choice{choice::kind::ring, 0}})
    for (const bool shared : {false, true})
      for (const std::size_t count : {std::size_t{0}, std::size_t{5}, std::size_t{5003}})
        use_with(end, count, how, shared);
}

void use_briefly(group_end& end) {
  use_with(end, 3, {}, false);
  use_with(end, 3001, {}, true);
}

namespace {

using support::text_of;
using toroid::detail::local_socket;
using toroid::detail::set_up_message;
using kind = set_up_message::kind;

toroid::options hasty(int milliseconds) {
  toroid::options chosen = patient();
  chosen.timeout = std::chrono::milliseconds(milliseconds);
  return chosen;
}

/// Address of one of a name's two sockets.
std::string address_of(const std::string& name, const char* purpose, uid_t user = ::geteuid()) {
  return support::joined("toroid.", user, ".", name, ".", purpose);
}

/// Sockets of this machine whose name contains `words`.
int sockets_named(const std::string& words) {
  std::ifstream table("/proc/net/unix");
  int count = 0;
  for (std::string line; std::getline(table, line);) count += line.find(words) != std::string::npos;
  return count;
}

/// What a stranger holds of a connection to rank 0.
local_socket call_rank0(const std::string& name, uid_t user = ::geteuid()) {
  std::optional<local_socket> socket;
  await(
      [&] {
        socket.emplace(local_socket::make());
        return socket->connect_to(address_of(name, "set-up", user)) == 0;
      },
      "rank 0 listens");
  return std::move(*socket);
}

set_up_message hello(int rank, int ranks, const toroid::options& chosen) {
  const toroid::transport::shm::segments sizes(toroid::detail::region_bytes_of(ranks, chosen),
                                               toroid::detail::shared_bytes_of(chosen));
  set_up_message m;
  m.rank = rank;
  m.ranks = ranks;
  m.checking = static_cast<std::uint32_t>(chosen.checking);
  m.in_directory = chosen.directory.empty() ? 0 : 1;
  m.region_bytes = sizes.region_bytes();
  m.shared_bytes = sizes.shared_bytes();
  m.nanoseconds_left = chosen.timeout.count();
  return m;
}

/// The next message from rank 0, or closed.
local_socket::outcome next(local_socket& from, set_up_message& m) {
  toroid::transport::file_descriptor file;
  local_socket::outcome got{};
  await([&] { return (got = from.receive(m, file)) != local_socket::outcome::nothing_yet; }, "rank 0 says something");
  return got;
}

void set_limit(int what, rlim_t value) {
  rlimit limit{};
  ::getrlimit(static_cast<__rlimit_resource_t>(what), &limit);
  limit.rlim_cur = value;
  ::setrlimit(static_cast<__rlimit_resource_t>(what), &limit);
}

constexpr uid_t somebody_else = 54'321;

bool may_become_others() {
  if (::geteuid() == 0) return true;
  WARN("skipped: only root can run a process as another user");
  return false;
}

void become(uid_t user) { demand(::setuid(user) == 0, "setuid: ", std::strerror(errno)); }

/// Whether a process has failed with an error of that kind whose text has these words.
template <class... Words>
void failed(const ending& how, failure expected, const Words&... words) {
  INFO(how.words());
  CHECK_FALSE(how.right);
  CHECK(static_cast<int>(how.how) == static_cast<int>(expected));
  for (const std::string& expected_words : {std::string(words)...})
    CHECK(how.text.find(expected_words) != std::string::npos);
}

}  // namespace
}  // namespace named

namespace {
using namespace named;
}

TEST_CASE("Named groups of one, two and three ranks compute right results", "[named]") {
  for (const int ranks : {1, 2, 3}) run_group(fresh_name("few"), ranks, patient(), use);
}

TEST_CASE("Named groups conform", "[named]") {
  const conformance::launcher launch = [](int ranks, toroid::options chosen, const auto& f) {
    chosen.shared_bytes = std::size_t{1} << 26;
    run_group(fresh_name("conform"), ranks, chosen, f);
  };
  for (const auto where : {conformance::memory_kind::ordinary, conformance::memory_kind::shared})
    conformance::check(launch, where, conformance::extent::brief, 3);
}

TEST_CASE("Named groups of all sizes conform in full", "[named][slow]") {
  const conformance::launcher launch = [](int ranks, toroid::options chosen, const auto& f) {
    chosen.shared_bytes = std::size_t{1} << 28;
    run_group(fresh_name("conform"), ranks, chosen, f);
  };
  using conformance::memory_kind;
  for (const auto where : {memory_kind::ordinary, memory_kind::shared, memory_kind::mixed})
    conformance::check(launch, where);
}

TEST_CASE("Ranks may come in any order and late", "[named]") {
  // Milliseconds after which each comes; rank 0 among the first, in the middle, the last.
  const int arrivals[][3] = {{60, 0, 30}, {0, 30, 60}, {30, 60, 0}, {150, 0, 0}};
  for (const auto& after : arrivals) {
    const support::watchdog guard(support::patience);
    const std::string name = fresh_name("late");
    processes all(3);
    for (int r = 0; r < 3; ++r)
      all.start(r, [&, r] {
        ::usleep(static_cast<useconds_t>(after[r] * 1000));
        as_rank(name, r, 3, patient(), use_briefly);
      });
    demand_right(all.join());
  }
}

TEST_CASE("Programs that share nothing but a name form a group", "[named]") {
  // This test starts itself, as programs of their own.
  const char* const name_variable = "TOROID_TEST_NAMED_GROUP";
  const char* const rank_variable = "TOROID_TEST_NAMED_RANK";
  if (const char* const name = std::getenv(name_variable); name != nullptr) {
    as_rank(name, std::atoi(std::getenv(rank_variable)), 3, patient(), use_briefly);
    CHECK(sockets_named(name) >= 0);
    return;
  }
  const support::watchdog guard(support::patience);
  const std::string name = fresh_name("exec");
  pid_t children[3];
  for (int r = 0; r < 3; ++r) {
    children[r] = ::fork();
    if (children[r] != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDOUT_FILENO);
    ::setenv(name_variable, name.c_str(), 1);
    ::setenv(rank_variable, std::to_string(r).c_str(), 1);
    ::execl("/proc/self/exe", "test", "Programs that share nothing but a name form a group", nullptr);
    ::_exit(9);
  }
  for (const pid_t child : children) {
    int status = -1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
}

TEST_CASE("Wrong names, ranks and sizes are refused at once", "[named]") {
  const auto refused = [](const std::string& name, int rank, int ranks) {
    return text_of<toroid::usage_error>([&] { (void)toroid::shm::make_communicator(name, rank, ranks, patient()); });
  };
  for (const int rank : {-1, 2, 3, 1 << 30})
    demand_words(refused("x", rank, 2), "rank " + std::to_string(rank), "of 2");
  for (const int ranks : {0, -1}) demand_words(refused("x", 0, ranks), "at least one rank");
  demand_words(refused("x", 0, 5000), "5000 ranks");
  using namespace std::string_literals;
  for (const std::string& name : {""s, std::string(65, 'x'), "a\0b"s, "\0"s})
    demand_words(refused(name, 0, 2), "1 to 64 characters");
  // The longest, and characters of all kinds.
  for (const std::string& name : {std::string(64, 'x'), fresh_name("/ \n\xff\\")})
    run_group(name, 2, patient(), use_briefly);
}

TEST_CASE("Ranks with other options or numbers are turned away, and the others learn why they miss somebody",
          "[named]") {
  struct disagreement {
    void (*change)(toroid::options&, int& rank, int& ranks);
    const char* words;
  };
  const disagreement all_of_them[] = {
      {[](toroid::options& o, int&, int&) { o.region_bytes = 1 << 20; }, "region_bytes of 1048576 where rank 0 has"},
      {[](toroid::options& o, int&, int&) { o.shared_bytes = 1 << 20; }, "shared_bytes of 1048576 where rank 0 has"},
      {[](toroid::options& o, int&, int&) { o.checking = toroid::check::none; }, "checking"},
      {[](toroid::options& o, int&, int&) { o.directory = "/dev/shm"; }, "directory"},
      {[](toroid::options&, int&, int& ranks) { ranks = 4; }, "a rank 2 of 4 ranks, where there are 3"},
      {[](toroid::options&, int& rank, int&) { rank = 1; }, "a second rank 1"},
  };
  // All groups at the same time, since each waits until its time is over.
  const support::watchdog guard(support::patience);
  const toroid::options chosen = hasty(support::sanitized ? 1500 : 600);
  struct group {
    std::string name = fresh_name("disagree");
    support::shared_by_all<std::atomic<int>> come;
    processes all{3};
  };
  std::vector<std::unique_ptr<group>> groups;
  for (const disagreement& wrong : all_of_them) {
    groups.push_back(std::make_unique<group>());
    group& these = *groups.back();
    for (int r = 0; r < 2; ++r)
      these.all.start(r, [&, r] {
        ++*these.come;
        as_rank(these.name, r, 3, chosen, use_briefly);
      });
    these.all.start(2, [&] {
      // Rank 1 has been let in by then.
      const std::string door = address_of(these.name, "set-up");
      await([&] { return *these.come == 2 && sockets_named(door) >= 2; }, "rank 1 has come");
      ::usleep(20'000);
      toroid::options other = chosen;
      int rank = 2, ranks = 3;
      wrong.change(other, rank, ranks);
      as_rank(these.name, rank, ranks, other, use_briefly);
    });
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const char* const words = all_of_them[i].words;
    const std::vector<ending> ends = groups[i]->all.join();
    INFO(words);
    failed(ends[2], failure::usage, words, groups[i]->name);
    failed(ends[0], failure::timeout, "missing: 2", words);
    failed(ends[1], failure::timeout, "missing: 2", words);
    CHECK(sockets_named(groups[i]->name) == 0);
  }
}

TEST_CASE("A missing rank is named to all within the time", "[named]") {
  // All groups at the same time, since each waits until its time is over.
  const support::watchdog guard(support::patience);
  struct group {
    int missing, last;  // who never comes; who comes later than the others
    std::string name = fresh_name("missing");
    processes all{4};
    group(int never, int late) : missing(never), last(late) {}
  };
  std::vector<std::unique_ptr<group>> groups;
  for (const int missing : {0, 1, 3}) {
    for (const int last : {0, 2}) {
      groups.push_back(std::make_unique<group>(missing, last));
      group& these = *groups.back();
      for (int r = 0; r < 4; ++r) {
        if (r == missing) continue;
        these.all.start(r, [&, r] {
          if (r == last) ::usleep(100'000);
          // It has far more patience, but the others' time counts.
          const bool patiently = r == last && missing != 0;
          as_rank(these.name, r, 4, patiently ? patient() : hasty(support::sanitized ? 1000 : 400), use_briefly);
        });
      }
    }
  }
  for (const auto& these : groups) {
    const std::vector<ending> ends = these->all.join();
    for (int r = 0; r < 4; ++r) {
      if (r == these->missing) continue;
      INFO("rank " << r << " without rank " << these->missing << ", rank " << these->last << " late");
      const ending& how = ends[static_cast<std::size_t>(r)];
      if (these->missing == 0)
        failed(how, failure::timeout, "rank 0 did not come within", these->name);
      else
        failed(how, failure::timeout, "missing: " + std::to_string(these->missing), these->name);
      CHECK(how.seconds < 30);
    }
    CHECK(sockets_named(these->name) == 0);
  }
}

TEST_CASE("A rank that dies during set-up is lost to all", "[named]") {
  // How far rank 1 of 3 comes: messages that it has taken before it ends, and whether it says that it is ready.
  struct progress {
    int taken;
    bool ready;
  };
  for (const progress& how_far : {progress{0, false}, progress{1, false}, progress{3, false}, progress{3, true}}) {
    const support::watchdog guard(support::patience);
    const std::string name = fresh_name("dies");
    // Only who has been let go on has to wait: nobody knows yet which process the dead rank was.
    const toroid::options chosen = how_far.ready ? hasty(1000) : patient();
    const support::shared_by_all<std::atomic<int>> done;
    processes all(3);
    all.start(1, [&] {
      local_socket rank0 = call_rank0(name);
      rank0.send(hello(1, 3, chosen));
      set_up_message m;
      for (int i = 0; i < how_far.taken; ++i) demand(next(rank0, m) == local_socket::outcome::message, "no segment");
      if (how_far.taken != 0) ::usleep(30'000);  // until the other is ready
      if (how_far.ready) {
        m = hello(1, 3, chosen);
        m.what = kind::ready;
        rank0.send(m);
        demand(next(rank0, m) == local_socket::outcome::message && m.what == kind::go, "nobody goes on");
      }
      ::kill(::getpid(), SIGKILL);
    });
    all.start(0, [&] { as_rank(name, 0, 3, chosen, use_briefly); });
    all.start(2, [&] { as_rank(name, 2, 3, chosen, use_briefly); });
    const std::vector<ending> ends = all.join();
    INFO("after " << how_far.taken << " messages, ready: " << how_far.ready);
    CHECK(WIFSIGNALED(ends[1].status));
    for (const int r : {0, 2}) {
      const ending& how = ends[static_cast<std::size_t>(r)];
      INFO("rank " << r << ": " << how.words());
      CHECK_FALSE(how.right);
      if (how_far.ready)  // the group stood already
        CHECK((how.how == failure::timeout || how.how == failure::lost));
      else
        failed(how, failure::lost, "rank 1 went away during set-up");
    }
    CHECK(sockets_named(name) == 0);
  }
}

TEST_CASE("If rank 0 dies during set-up the others learn at once", "[named]") {
  const support::watchdog guard(support::patience);
  const std::string name = fresh_name("rank0");
  processes all(4);
  for (int r = 0; r < 3; ++r) all.start(r, [&, r] { as_rank(name, r, 4, patient(), use_briefly); });
  await([&] { return sockets_named(address_of(name, "set-up")) >= 3; }, "all have come");
  ::usleep(20'000);
  all.kill(0);
  const std::vector<ending> ends = all.join();
  for (const std::size_t r : {1u, 2u}) failed(ends[r], failure::lost, "rank 0 went away during set-up", name);
  CHECK(sockets_named(name) == 0);
}

TEST_CASE("A rank that cannot map the memory says so to all", "[named]") {
  for (const bool at_once : {false, true}) {
    const support::watchdog guard(support::patience);
    const std::string name = fresh_name("refuses");
    processes all(4);
    for (const int r : {0, 1, 3}) all.start(r, [&, r] { as_rank(name, r, 4, patient(), use_briefly); });
    all.start(2, [&] {
      local_socket rank0 = call_rank0(name);
      rank0.send(hello(2, 4, patient()));
      set_up_message m;
      for (int i = 0; i < (at_once ? 1 : 4); ++i) (void)next(rank0, m);
      if (!at_once) ::usleep(50'000);  // the others are ready, and have said so
      m.what = kind::refused;
      m.why = set_up_message::reason::system;
      m.say("rank 2 has no memory left");
      rank0.send(m);
    });
    const std::vector<ending> ends = all.join();
    for (const std::size_t r : {0u, 1u, 3u}) failed(ends[r], failure::system, "rank 2 has no memory left");
  }
}

TEST_CASE("A rank without address space gives its reason and the remedy to all", "[named]") {
  if (support::sanitized) {
    WARN("skipped: sanitizers need the address space themselves");
    return;
  }
  const support::watchdog guard(support::patience);
  const std::string name = fresh_name("space");
  toroid::options chosen = patient();
  chosen.shared_bytes = std::size_t{1} << 32;
  processes all(3);
  for (int r = 0; r < 3; ++r)
    all.start(r, [&, r] {
      if (r == 1) set_limit(RLIMIT_AS, rlim_t{6} << 30);
      as_rank(name, r, 3, chosen, use_briefly);
    });
  const std::vector<ending> ends = all.join();
  for (const ending& how : ends) failed(how, failure::system, "mmap", "ulimit -v", "shared_bytes");
  for (const std::size_t r : {0u, 2u}) failed(ends[r], failure::system, "rank 1 has failed");
}

TEST_CASE("Strangers that say nothing, rubbish, or hang up hold nobody up", "[named]") {
  const support::watchdog guard(support::patience);
  const std::string name = fresh_name("rubbish");
  const toroid::options chosen = patient();
  const support::shared_by_all<std::atomic<int>> done;
  processes all(4);
  all.start(0, [&] { as_rank(name, 0, 3, chosen, use); });
  all.start(3, [&] {
    const local_socket silent = call_rank0(name), another = call_rank0(name);
    { const local_socket hangs_up = call_rank0(name); }
    std::vector<local_socket> speakers;
    const auto say = [&](const void* data, std::size_t bytes) {
      speakers.push_back(call_rank0(name));
      demand(::send(speakers.back().get(), data, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes), "cannot send");
    };
    const auto turned_away = [&] {
      set_up_message m;
      return next(speakers.back(), m) != local_socket::outcome::message || m.what == kind::refused;
    };
    say("rubbish", 7);
    demand(turned_away(), "seven bytes are taken for a rank");
    const std::vector<char> long_rubbish(100'000, 'x');
    say(long_rubbish.data(), long_rubbish.size());
    demand(turned_away(), "a long message is taken for a rank");
    const auto say_wrong = [&](auto change) {
      set_up_message m = hello(1, 3, chosen);
      change(m);
      say(&m, sizeof m);
      demand(turned_away(), "a wrong hello is taken for a rank");
    };
    say_wrong([](auto& m) { m.magic = 1; });
    say_wrong([](auto& m) { ++m.version; });
    say_wrong([](auto& m) { m.what = kind::ready; });
    say_wrong([](auto& m) { m.what = static_cast<kind>(77); });
    for (const int rank : {0, -1, 3, 1 << 30}) say_wrong([&](auto& m) { m.rank = rank; });
    say_wrong([](auto& m) { m.ranks = -1; });
    const set_up_message right = hello(1, 3, chosen);
    say(&right, sizeof right - 1);
    demand(turned_away(), "a hello that is cut short is taken for a rank");
    // Descriptors that nobody asked for are closed, not kept.
    local_socket generous = call_rank0(name);
    set_up_message m = hello(7, 3, chosen);
    generous.send(m, STDERR_FILENO);
    ++*done;
    await([&] { return *done == 2; }, "the group is done");
  });
  await([&] { return *done == 1; }, "the strangers have spoken");
  for (const int r : {1, 2})
    all.start(r, [&, r] {
      as_rank(name, r, 3, chosen, [&](group_end& end) {
        use(end);
        if (r == 1) ++*done;
      });
    });
  demand_right(all.join());
}

TEST_CASE("Processes of another user are kept out", "[named]") {
  if (!may_become_others()) return;
  const support::watchdog guard(support::patience);
  const std::string name = fresh_name("stranger");
  // One that speaks the protocol without a flaw.
  {
    const support::shared_by_all<std::atomic<int>> done;
    processes all(4);
    for (const int r : {0, 2}) all.start(r, [&, r] { as_rank(name, r, 3, patient(), use_briefly); });
    all.start(3, [&] {
      become(somebody_else);
      local_socket rank0 = call_rank0(name, 0);
      rank0.send(hello(1, 3, patient()));
      set_up_message m;
      demand(next(rank0, m) == local_socket::outcome::message && m.what == kind::refused, "a stranger is let in");
      demand_words(m.text, "another user");
      ++*done;
    });
    await([&] { return *done == 1; }, "the stranger is refused");
    all.start(1, [&] { as_rank(name, 1, 3, patient(), use_briefly); });
    demand_right(all.join());
  }
  // One that holds the names.
  for (const bool both : {true, false}) {
    const support::shared_by_all<std::atomic<int>> done;
    processes all(3);
    all.start(2, [&] {
      become(somebody_else);
      local_socket live = local_socket::make(), door = local_socket::make();
      demand(live.listen_at(address_of(name, "live", 0)) == 0, "the name is taken");
      demand(!both || door.listen_at(address_of(name, "set-up", 0)) == 0, "the name is taken");
      ++*done;
      local_socket caller;
      while (*done < 3) {
        if (both && !caller) caller = door.accept();
        // Memory that must not be taken for rank 0's.
        set_up_message m = hello(0, 2, patient());
        m.what = kind::segment;
        if (caller) caller.send(m, STDERR_FILENO);
        ::usleep(1000);
      }
    });
    await([&] { return *done == 1; }, "the stranger holds the name");
    for (int r = 0; r < 2; ++r)
      all.start(r, [&, r] {
        try {
          as_rank(name, r, 2, patient(), use_briefly);
        } catch (...) {
          ++*done;
          throw;
        }
      });
    const pid_t stranger = all.id(2);
    const std::vector<ending> ends = all.join();
    failed(ends[0], failure::system, "process " + std::to_string(stranger) + " of another user", name);
    failed(ends[1], failure::system, "another user", name);
    CHECK(ends[2].right);
    CHECK(ends[1].seconds < 60);
  }
}

TEST_CASE("A second job of a live job's name is refused on all ranks, and the first goes on", "[named]") {
  const support::watchdog guard(support::patience);
  const std::string name = fresh_name("twice");
  const support::shared_by_all<std::atomic<int>> state;
  processes first(3);
  start_group(first, name, 3, patient(), [&](group_end& end) {
    std::vector<element> values(4000);
    for (int i = 0;; ++i) {
      std::fill(values.begin(), values.end(), static_cast<element>(i + end.rank()));
      values[0] = end.rank() == 0 && *state == 2 ? 1 : 0;
      end.all_reduce(values, values, {i % 2 == 0 ? choice::kind::automatic : choice::kind::ring, 0});
      for (std::size_t k = 1; k < values.size(); ++k)
        demand_same(values[k], static_cast<element>(3 * i + 3), end, "the first job's sum", k);
      if (i == 0 && end.rank() == 0) *state = 1;
      if (values[0] != 0) break;
      ::usleep(500);
    }
    use_briefly(end);
  });
  await([&] { return *state == 1; }, "the first job works");
  const std::string owner = "process " + std::to_string(first.id(0));
  const int before = sockets_named(name);
  // Of the same size, smaller, larger.
  for (const int ranks : {3, 1, 5}) {
    processes second(ranks);
    start_group(second, name, ranks, patient(), use_briefly);
    for (const ending& how : second.join()) {
      failed(how, failure::system, owner, "live job", name);
      CHECK(how.seconds < 60);
    }
  }
  // Whoever was refused has left at most the one connection that told it the owner.
  CHECK(sockets_named(name) <= before + 9);
  *state = 2;
  demand_right(first.join());
  CHECK(sockets_named(name) == 0);
  run_group(name, 2, patient(), use_briefly);
}

TEST_CASE("Two rank 0s of one name: one is refused", "[named]") {
  const support::watchdog guard(support::patience);
  const std::string name = fresh_name("zeros");
  processes all(3);
  all.start(0, [&] { as_rank(name, 0, 2, patient(), use_briefly); });
  await([&] { return sockets_named(address_of(name, "set-up")) >= 1; }, "rank 0 listens");
  all.start(1, [&] { as_rank(name, 0, 2, patient(), use_briefly); });
  const pid_t owner = all.id(0);
  all.start(2, [&] {
    ::usleep(50'000);
    as_rank(name, 1, 2, patient(), use_briefly);
  });
  const std::vector<ending> ends = all.join();
  CHECK(ends[0].right);
  CHECK(ends[2].right);
  failed(ends[1], failure::system, "live job", "process " + std::to_string(owner));
}

TEST_CASE("Surplus ranks that come while a group sets up are refused", "[named]") {
  const support::watchdog guard(support::patience);
  const std::string name = fresh_name("surplus");
  const support::shared_by_all<std::atomic<int>> done;
  processes all(4);
  const auto work = [&](group_end& end) {
    use_briefly(end);
    await([&] { return *done == 1; }, "the surplus ones are refused");
  };
  for (const int r : {0, 1}) all.start(r, [&, r] { as_rank(name, r, 3, patient(), work); });
  // Waits at the door without a word until rank 2 has made the group complete.
  all.start(3, [&] {
    local_socket surplus = call_rank0(name);
    set_up_message m;
    const local_socket::outcome got = next(surplus, m);
    ++*done;
    demand(got == local_socket::outcome::message && m.what == kind::refused, "not told why");
    demand_words(m.text, "live job", "process");
  });
  ::usleep(30'000);
  all.start(2, [&] { as_rank(name, 2, 3, patient(), work); });
  demand_right(all.join());
}

namespace {

/// What must not grow when jobs are killed.
struct machine_state {
  unsigned long long used_of_shm = 0;
  int entries_of_shm = 0, sockets = 0, descriptors = 0;
  static machine_state now(const std::string& name) {
    machine_state state;
    struct statvfs room {};
    if (::statvfs("/dev/shm", &room) == 0) state.used_of_shm = (room.f_blocks - room.f_bfree) * room.f_frsize;
    state.entries_of_shm = support::entries_of("/dev/shm");
    state.sockets = sockets_named(name);
    state.descriptors = support::entries_of("/proc/self/fd");
    return state;
  }
};

void kill_jobs(int times, toroid::options chosen) {
  const support::watchdog guard(support::patience);
  const std::string name = fresh_name("killed");
  chosen.shared_bytes = std::size_t{1} << 24;
  const machine_state before = machine_state::now(name);
  for (int i = 0; i < times; ++i) {
    const support::shared_by_all<std::atomic<int>> calls;
    processes all(4);
    start_group(all, name, 4, chosen, [&](group_end& end) {
      const std::span<std::byte> memory = end.allocate(1 << 20);
      const std::span<element> values(reinterpret_cast<element*>(memory.data()), 1000);
      while (true) {
        end.all_reduce(values, values, {});
        ++*calls;
      }
    });
    await([&] { return *calls > 40 + i; }, "the job works");
    all.kill_all();
    for (const ending& how : all.join()) CHECK((WIFSIGNALED(how.status) && WTERMSIG(how.status) == SIGKILL));
    CHECK(sockets_named(name) == 0);
  }
  run_group(name, 4, chosen, use_briefly);
  const machine_state after = machine_state::now(name);
  CHECK(after.used_of_shm <= before.used_of_shm + (1u << 20));
  CHECK(after.entries_of_shm == before.entries_of_shm);
  CHECK(after.sockets == 0);
  CHECK(after.descriptors == before.descriptors);
}

}  // namespace

TEST_CASE("Killing all ranks of a name leaves nothing in the way of the next start", "[named]") {
  kill_jobs(20, patient());
}

TEST_CASE("A name can be used again and again, and leaves no descriptor or mapping", "[named]") {
  const int times = support::sanitized ? 30 : 150;
  run_group(fresh_name("cycles"), 3, patient(), [&](group_end& outer) {
    // A group made by ranks of another, each time at once when the last one is over.
    std::string name = support::joined("again.", ::getppid());
    const auto cycle = [&] { as_rank(name, outer.rank(), 3, patient(), [&](group_end& end) { use_briefly(end); }); };
    cycle();
    const support::process_state before = support::process_state::now();
    for (int i = 0; i < times; ++i) cycle();
    const support::process_state after = support::process_state::now();
    demand(after.descriptors == before.descriptors, before.descriptors, " descriptors became ", after.descriptors);
    demand(after.threads == before.threads, before.threads, " threads became ", after.threads);
    demand(after.mappings <= before.mappings + (support::sanitized ? 4 * times : 16), before.mappings,
           " mappings became ", after.mappings);
    outer.barrier();
    demand(sockets_named(name) == 0, "sockets stay behind");
  });
}

TEST_CASE("A rank holds few descriptors", "[named]") {
  run_group(fresh_name("few"), 5, patient(), [](group_end&) {});
  const std::string name = fresh_name("few");
  const support::watchdog guard(support::patience);
  processes all(5);
  for (int r = 0; r < 5; ++r)
    all.start(r, [&, r] {
      const int before = support::entries_of("/proc/self/fd");
      as_rank(name, r, 5, patient(), [&](group_end& end) {
        const int held = support::entries_of("/proc/self/fd") - before;
        demand(held == (r == 0 ? 2 : 1), "rank ", r, " holds ", held, " descriptors");  // its memory; rank 0's name
        use_briefly(end);
      });
      demand(support::entries_of("/proc/self/fd") == before, "descriptors stay behind");
    });
  demand_right(all.join());
}

TEST_CASE("32 ranks work with 64 descriptors each, for root and for others", "[named]") {
  for (const bool as_root : {true, false}) {
    if (!as_root && !may_become_others()) continue;
    const support::watchdog guard(support::patience);
    const std::string name = fresh_name("many");
    processes all(32);
    for (int r = 0; r < 32; ++r)
      all.start(r, [&, r] {
        // Root may have any number of descriptors under way, others only as many as they may open. A user of that
        // number who runs nothing else.
        if (!as_root) become(somebody_else + 1);
        set_limit(RLIMIT_NOFILE, 64);
        as_rank(name, r, 32, patient(), support::sanitized ? use_briefly : use);
      });
    demand_right(all.join());
  }
}

TEST_CASE("Too few descriptors on a rank give an error with the remedy to all", "[named]") {
  if (support::address_sanitizer) {
    WARN("skipped: the undefined-behaviour sanitizer needs descriptors itself to look at an error's type");
    return;
  }
  for (const int short_of_them : {0, 3}) {
    const support::watchdog guard(support::patience);
    const std::string name = fresh_name("descriptors");
    const std::string door = address_of(name, "set-up");
    processes all(8);
    const auto start = [&](int r) {
      all.start(r, [&, r] {
        rlimit before{};
        ::getrlimit(RLIMIT_NOFILE, &before);
        if (r == short_of_them) {
          const int next_free = ::dup(0);
          ::close(next_free);
          // Rank 0 has room for some of the others; rank 3 for its socket, but not for all that is passed through it.
          set_limit(RLIMIT_NOFILE, static_cast<rlim_t>(next_free + (r == 0 ? 6 : 1)));
        }
        try {
          as_rank(name, r, 8, patient(), use_briefly);
        } catch (...) {
          set_limit(RLIMIT_NOFILE, before.rlim_cur);  // sanitizers need some to look at an error
          throw;
        }
      });
    };
    // All stand at rank 0's door before it runs out of them: who comes later than that cannot know.
    start(0);
    await([&] { return sockets_named(door) > 0; }, "rank 0 listens");
    ::kill(all.id(0), SIGSTOP);
    for (int r = 1; r < 8; ++r) start(r);
    await([&] { return sockets_named(door) >= 8; }, "all stand at the door");
    ::kill(all.id(0), SIGCONT);
    const std::vector<ending> ends = all.join();
    for (std::size_t r = 0; r < 8; ++r) {
      INFO("rank " << r << " where rank " << short_of_them << " is short of descriptors");
      failed(ends[r], failure::system, "ulimit -n");
      CHECK(ends[r].seconds < 60);
    }
    CHECK(sockets_named(name) == 0);
  }
}

TEST_CASE("Ranks killed at any moment, set-up included, leave nothing in the way of the next start", "[named][slow]") {
  const support::watchdog guard(support::patience);
  const std::string name = fresh_name("moments");
  const machine_state before = machine_state::now(name);
  support::random_numbers random(5);
  for (int i = 0; i < 300; ++i) {
    processes all(4);
    start_group(all, name, 4, patient(), [](group_end& end) {
      while (true) use_briefly(end);
    });
    ::usleep(static_cast<useconds_t>(random.below(20'000)));
    // One after the other, beginning anywhere.
    const int first = static_cast<int>(random.below(4));
    for (int k = 0; k < 4; ++k) {
      all.kill((first + k) % 4);
      ::usleep(static_cast<useconds_t>(random.below(500)));
    }
    (void)all.join();
    REQUIRE(sockets_named(name) == 0);
    if (i % 10 == 0) run_group(name, 4, patient(), use_briefly);
  }
  const machine_state after = machine_state::now(name);
  CHECK(after.used_of_shm <= before.used_of_shm + (1u << 20));
  CHECK(after.entries_of_shm == before.entries_of_shm);
  CHECK(after.descriptors == before.descriptors);
}
