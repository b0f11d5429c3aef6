// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"
#include "support/process_state.hpp"

#include <toroid/toroid.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <numeric>
#include <thread>
#include <vector>

namespace {

struct result {
  int rank;
  double half;
  char letter;
};

}  // namespace

TEST_CASE("Processes bring back what each rank returns, in rank order", "[processes]") {
  const std::vector<int> squares = support::run_processes(5, [](auto& comm) { return comm.rank() * comm.rank(); });
  CHECK(squares == std::vector<int>{0, 1, 4, 9, 16});
  const std::vector<result> structs = support::run_processes(3, [](auto& comm) {
    return result{comm.rank(), comm.rank() / 2.0, static_cast<char>('a' + comm.rank())};
  });
  REQUIRE(structs.size() == 3);
  for (int r = 0; r < 3; ++r) {
    const result& mine = structs[static_cast<std::size_t>(r)];
    CHECK((mine.rank == r && mine.half == r / 2.0 && mine.letter == 'a' + r));
  }
}

TEST_CASE("Ranks are processes of their own with a copy of the caller's memory", "[processes]") {
  int written = 1;
  const pid_t caller = ::getpid();
  const std::vector<int> seen = support::run_processes(3, [&](auto& comm) {
    if (::getpid() == caller) return -1;
    if (::getppid() != caller) return -2;
    written += comm.rank();
    return written;
  });
  CHECK(seen == std::vector<int>{1, 2, 3});
  CHECK(written == 1);
}

TEST_CASE("A process that has threads is not forked", "[processes]") {
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  std::string text;
  try {
    text = support::text_of<toroid::usage_error>([] { support::run_processes(2, [](auto&) {}); });
  } catch (const support::check_failed& failed) {
    text = failed.what();
  }
  done = true;
  other.join();
  support::demand_words(text, "threads", "run_threads");
  support::run_processes(2, [](auto&) {});
}

TEST_CASE("Groups of threads and groups of processes can follow each other", "[processes]") {
  for (int i = 0; i < 5; ++i) {
    conformance::on_both(3, {}, [](conformance::group_end& end) {
      std::vector<conformance::element> values(100, 1);
      end.all_reduce(values, values, {});
      support::demand(values[99] == 3, "the sum is ", values[99]);
    });
  }
}

TEST_CASE("Other children of the program stay the program's own", "[processes]") {
  const pid_t early = ::fork();
  if (early == 0) ::_exit(7);
  const pid_t late = ::fork();
  if (late == 0) {
    ::usleep(300'000);
    ::_exit(8);
  }
  CHECK(support::run_processes(2, [](auto& comm) {
          ::usleep(50'000);
          toroid::barrier(comm);
          return 1;
        }) == std::vector<int>{1, 1});
  int status = 0;
  REQUIRE(::waitpid(early, &status, 0) == early);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
  REQUIRE(::waitpid(late, &status, 0) == late);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 8));
}

TEST_CASE("Text that waits in a stream is printed once", "[processes]") {
  const support::ending how = support::in_a_copy([]() -> std::string {
    int ends[2];
    if (::pipe(ends) != 0 || ::dup2(ends[1], STDOUT_FILENO) < 0) return "no pipe";
    std::printf("before ");  // stays in the buffer of stdout
    support::run_processes(3, [](auto& comm) { std::printf("%d", comm.rank() >= 0 ? 1 : 0); });
    std::printf(" after");
    std::fflush(stdout);
    ::close(ends[1]);
    ::close(STDOUT_FILENO);
    std::string text(200, '\0');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(ends[0], text.data(), text.size()))));
    return text;
  });
  CHECK(how.text == "before 111 after");
}

TEST_CASE("Ranks do not outlive the program that started them", "[processes]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t program = ::fork();
  if (program == 0) {
    ::close(ends[0]);
    try {
      toroid::run_processes(2, [&](auto& comm) {
        toroid::barrier(comm);
        if (comm.rank() == 0) ::kill(::getppid(), SIGKILL);
        ::sleep(60);
      });
    } catch (...) {
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  char byte = 0;
  const support::watchdog guard(30);
  CHECK(::read(ends[0], &byte, 1) == 0);  // end of file: the last holder of the other end is gone
  ::close(ends[0]);
  ::waitpid(program, nullptr, 0);
}
