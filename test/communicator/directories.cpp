// SPDX-License-Identifier: Apache-2.0
#include "communicator/named_group.hpp"
#include "support/catch.hpp"
#include "support/process_state.hpp"
#include "support/random.hpp"
#include "support/sanitizers.hpp"

#include <toroid/toroid.hpp>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

// Segments in a named directory: what a full, small, missing or wrong one does, and that nothing stays in it. File
// systems are mounted where only a copy of this process sees them.

namespace {

using namespace named;
using conformance::element;
using support::demand;
using support::demand_words;

constexpr std::size_t mib = std::size_t{1} << 20;

toroid::options in_directory(const std::string& where, std::size_t region_bytes = 0) {
  toroid::options chosen = patient();
  chosen.region_bytes = region_bytes;
  chosen.directory = where;
  return chosen;
}

/// A folder that is there as long as this object.
class own_folder {
 public:
  own_folder() {
    char path[] = "/tmp/toroid-test-XXXXXX";
    demand(::mkdtemp(path) != nullptr, "mkdtemp: ", std::strerror(errno));
    m_path = path;
  }
  own_folder(const own_folder&) = delete;
  own_folder& operator=(const own_folder&) = delete;
  ~own_folder() { ::rmdir(m_path.c_str()); }
  const std::string& path() const noexcept { return m_path; }

 private:
  std::string m_path;
};

const char* const may_not = "may not mount";

/// Makes this process see mounts of its own. Not for the test's process: it cannot be undone.
bool unshare_mounts() {
  return ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

void mount_tmpfs(const std::string& where, std::size_t bytes) {
  const std::string size = "size=" + std::to_string(bytes) + ",mode=0777";
  demand(::mount("tmpfs", where.c_str(), "tmpfs", 0, size.c_str()) == 0, "mount: ", std::strerror(errno));
}

/// Runs `f` in a copy of this process that may mount what it likes; prints why if that is not permitted.
void with_mounts(const std::function<void()>& f) {
  const support::ending how = support::in_a_copy([&]() -> std::string {
    if (!unshare_mounts()) return support::joined(may_not, ": ", std::strerror(errno));
    f();
    return "";
  });
  if (how.text.rfind(may_not, 0) == 0) {
    WARN("skipped: this process " << how.text);
    return;
  }
  INFO(how.text);
  CHECK(how.status == 0);
  CHECK(how.text.empty());
}

std::size_t used_of(const std::string& where) {
  struct statvfs room {};
  demand(::statvfs(where.c_str(), &room) == 0, "statvfs: ", std::strerror(errno));
  return (room.f_blocks - room.f_bfree) * room.f_frsize;
}

void demand_empty(const std::string& where) {
  demand(support::entries_of(where.c_str()) == 0, "files stay in ", where);
  demand(used_of(where) == 0, used_of(where), " bytes of ", where, " stay in use");
}

/// Takes all the room that a tmpfs has left; gives it back at the end.
class stuffing {
 public:
  explicit stuffing(const std::string& where) : m_path(where + "/stuffing") {
    const int file = ::open(m_path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    demand(file >= 0, "open: ", std::strerror(errno));
    const std::vector<char> some(4096, 'x');
    while (::write(file, some.data(), some.size()) > 0) {
    }
    ::close(file);
  }
  stuffing(const stuffing&) = delete;
  stuffing& operator=(const stuffing&) = delete;
  ~stuffing() { ::unlink(m_path.c_str()); }

 private:
  std::string m_path;
};

/// Both ways to start a group: each must behave alike. Gives every rank's end.
std::vector<ending> refused_group(int ranks, const toroid::options& chosen) {
  const support::watchdog guard(support::patience);
  processes all(ranks);
  const std::string name = fresh_name("refused");
  start_group(all, name, ranks, chosen, use_briefly);
  return all.join();
}

template <class... Words>
void demand_refused(const std::vector<ending>& ends, const Words&... words) {
  for (std::size_t r = 0; r < ends.size(); ++r) {
    demand(!ends[r].right && ends[r].how == failure::system, "rank ", r, " ends otherwise: ", ends[r].words(), " (",
           ends[r].status, ")");
    demand_words(ends[r].text, words...);
    demand(ends[r].seconds < 60, "rank ", r, " waits long");
  }
}

void run_and_empty(const std::string& where, int ranks, const toroid::options& chosen,
                   const std::function<void(group_end&)>& f) {
  run_group(fresh_name("directory"), ranks, chosen, f);
  demand_empty(where);
  support::run_processes(ranks, conformance::erased(f), chosen);
  demand_empty(where);
}

}  // namespace

TEST_CASE("Groups work in a named directory and leave it empty", "[directory]") {
  const own_folder folder;
  with_mounts([&] {
    mount_tmpfs(folder.path(), 64 * mib);
    for (const int ranks : {1, 2, 3, 5}) run_and_empty(folder.path(), ranks, in_directory(folder.path(), 4096), use);
    // While it works, nothing has a name there.
    run_and_empty(folder.path(), 3, in_directory(folder.path()), [&](group_end& end) {
      use_briefly(end);
      demand(support::entries_of(folder.path().c_str()) == 0, "a segment has a name");
      demand(used_of(folder.path()) >= 3 * end.footprint() / 2, "the segments are elsewhere");
      end.barrier();
    });
  });
}

TEST_CASE("A directory that is too small gives an error to all ranks before any touches it", "[directory]") {
  const own_folder folder;
  with_mounts([&] {
    for (const std::size_t room : {mib, 64 * mib}) {
      mount_tmpfs(folder.path(), room);
      // 16 MiB a rank.
      const toroid::options chosen = in_directory(folder.path(), 4 * mib);
      demand_refused(refused_group(8, chosen), folder.path(), "No space left", " bytes asked for", " bytes free",
                     "ask for less", "enlarge the tmpfs");
      demand_empty(folder.path());
      const std::string text = support::text_of<toroid::system_error>(
          [&] { support::run_processes(8, conformance::erased(use_briefly), chosen); });
      demand_words(text, folder.path(), " bytes asked for", " bytes free", "ask for less", "enlarge the tmpfs");
      // The numbers are those of the directory: more than is free there, and no more than it has.
      const auto number_before = [&](const char* words) {
        const std::size_t end = text.find(words), begin = text.find_last_of("(, ", end - 1) + 1;
        return std::stoull(text.substr(begin, end - begin));
      };
      demand(number_before(" bytes asked for") >= 16 * mib, "asked for: ", text);
      demand(number_before(" bytes free") <= room, "free: ", text);
      demand_empty(folder.path());
      // What fits still works.
      run_and_empty(folder.path(), 4, in_directory(folder.path(), 8192), use_briefly);
      ::umount(folder.path().c_str());
    }
  });
}

TEST_CASE("A running group goes on when its directory becomes full", "[directory]") {
  const own_folder folder;
  with_mounts([&] {
    mount_tmpfs(folder.path(), 24 * mib);
    const auto f = [&](group_end& end) {
      const std::span<std::byte> memory = end.allocate(mib);
      const std::span<element> shared(reinterpret_cast<element*>(memory.data()), mib / sizeof(element));
      std::vector<element> ordinary(shared.size());
      const auto sums = [&] {
        for (const std::span<element> values : {shared, std::span<element>(ordinary)})
          for (const auto how : {conformance::choice::kind::automatic, conformance::choice::kind::ring}) {
            std::fill(values.begin(), values.end(), static_cast<element>(end.rank() + 1));
            end.all_reduce(values, values, {how, 0});
            for (const element value : values) demand(value == 6, "the sum is ", value);
          }
      };
      end.barrier();
      std::optional<stuffing> full;
      if (end.rank() == 0) full.emplace(folder.path());
      end.barrier();
      for (int i = 0; i < 3; ++i) sums();
      // What is not there cannot be had, and nothing breaks.
      for (int i = 0; i < 3; ++i) {
        const std::string text = support::text_of<toroid::system_error>([&] { (void)end.allocate(2 * mib); });
        demand_words(text, folder.path(), std::to_string(2 * mib) + " bytes asked for", " bytes free", "enlarge");
        sums();
      }
      end.barrier();
      full.reset();
      end.barrier();
      // Once there is room again, what was refused is given.
      const std::span<std::byte> more = end.allocate(2 * mib);
      for (std::size_t i = 0; i < more.size(); i += 4096) demand(more[i] == std::byte{0}, "not zero");
      end.barrier();
      end.deallocate(more);
      sums();
    };
    run_and_empty(folder.path(), 3, in_directory(folder.path()), f);
  });
}

TEST_CASE("Memory given back leaves the directory", "[directory]") {
  const own_folder folder;
  with_mounts([&] {
    mount_tmpfs(folder.path(), 16 * mib);
    run_and_empty(folder.path(), 2, in_directory(folder.path()), [&](group_end& end) {
      end.barrier();
      const std::size_t before = used_of(folder.path());
      end.barrier();
      for (int i = 0; i < 20; ++i) end.deallocate(end.allocate(4 * mib));  // more in sum than there is
      end.barrier();
      demand(used_of(folder.path()) <= before + 16 * 1024, "used before ", before, ", after ", used_of(folder.path()));
      end.barrier();
    });
  });
}

TEST_CASE("A directory that is none, or may not be written to, gives an error to all ranks", "[directory]") {
  const own_folder folder;
  const auto refused = [](const std::string& where, const char* words) {
    demand_refused(refused_group(3, in_directory(where)), where, words, "bytes asked for",
                   "give a directory of a tmpfs");
    const auto launch = [&] { support::run_processes(2, conformance::erased(use_briefly), in_directory(where)); };
    demand_words(support::text_of<toroid::system_error>(launch), where, words, "give a directory of a tmpfs");
  };
  refused(folder.path() + "/missing", "No such file");
  refused("/proc/self/status", "Not a directory");
  refused("/proc", "failed");
  refused(std::string(300, 'x'), "File name too long");
  with_mounts([&] {
    mount_tmpfs(folder.path(), mib);
    demand(::mount(nullptr, folder.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0, "remount");
    refused(folder.path(), "Read-only");
  });
}

TEST_CASE("A directory on a disk is refused", "[directory]") {
  // Whatever holds the temporary folder; where that is a tmpfs itself, there is nothing to see.
  const own_folder folder;
  const int file = ::open(folder.path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  const bool is_memory = file >= 0 && ::fcntl(file, F_GET_SEALS) >= 0;
  if (file >= 0) ::close(file);
  if (is_memory) {
    WARN("skipped: " << folder.path() << " is on a tmpfs");
    return;
  }
  for (const ending& how : refused_group(3, in_directory(folder.path()))) {
    INFO(how.words());
    CHECK(static_cast<int>(how.how) == static_cast<int>(failure::system));
    CHECK(how.text.find("give a directory of a tmpfs") != std::string::npos);
    CHECK(how.text.find(folder.path()) != std::string::npos);
  }
}

TEST_CASE("A directory of another user gives an error to all ranks", "[directory]") {
  const own_folder folder;
  with_mounts([&] {
    mount_tmpfs(folder.path(), mib);
    demand(::chmod(folder.path().c_str(), 0700) == 0, "chmod");
    const support::ending how = support::in_a_copy([&]() -> std::string {
      demand(::setuid(54'323) == 0, "setuid");
      demand_refused(refused_group(2, in_directory(folder.path())), "Permission denied", "may write to");
      return "";
    });
    demand(how.status == 0 && how.text.empty(), how.text);
  });
}

TEST_CASE("Killing all ranks of a name leaves their directory empty", "[directory]") {
  const own_folder folder;
  with_mounts([&] {
    mount_tmpfs(folder.path(), 16 * mib);
    const std::string name = fresh_name("killed");
    const toroid::options chosen = in_directory(folder.path());
    const support::watchdog guard(support::patience);
    for (int i = 0; i < 20; ++i) {
      const support::shared_by_all<std::atomic<int>> calls;
      processes all(3);
      start_group(all, name, 3, chosen, [&](group_end& end) {
        const std::span<std::byte> memory = end.allocate(mib);
        const std::span<element> values(reinterpret_cast<element*>(memory.data()), 1000);
        while (true) {
          end.all_reduce(values, values, {});
          ++*calls;
        }
      });
      await([&] { return *calls > 30 + i; }, "the job works");
      all.kill_all();
      for (const ending& how : all.join()) demand(WIFSIGNALED(how.status), "a rank ended by itself: ", how.words());
      demand_empty(folder.path());
    }
    run_group(name, 3, chosen, use);
    demand_empty(folder.path());
  });
}

TEST_CASE("A group that is killed while it sets up leaves its directory empty", "[directory]") {
  const own_folder folder;
  with_mounts([&] {
    mount_tmpfs(folder.path(), 16 * mib);
    const std::string name = fresh_name("moments");
    support::random_numbers random(11);
    for (int i = 0; i < 30; ++i) {
      processes all(3);
      start_group(all, name, 3, in_directory(folder.path()), use_briefly);
      ::usleep(static_cast<useconds_t>(random.below(4000)));
      all.kill_all();
      (void)all.join();
      demand_empty(folder.path());
    }
    run_group(name, 3, in_directory(folder.path()), use_briefly);
  });
}

namespace {

/// That all ranks are in the same memory: a number that only one rank knows is found in place by the others.
void find_nonces(group_end& end) {
  support::random_numbers random(static_cast<std::uint64_t>(::getpid()) * 7919);
  const std::size_t p = static_cast<std::size_t>(end.size()), count = 2000 * p;
  const std::span<std::byte> memory = end.allocate(count * sizeof(element));
  const std::span<element> values(reinterpret_cast<element*>(memory.data()), count);
  const toroid::block own = toroid::block_of(count, end.size(), end.rank());
  std::vector<element> mine(own.count);
  for (element& nonce : mine) nonce = static_cast<element>(random.next());
  std::copy(mine.begin(), mine.end(), values.begin() + static_cast<std::ptrdiff_t>(own.begin));
  end.all_gather(values.subspan(own.begin, own.count), values, {});
  // Each sends what it has found; sums of all agree with p times the same.
  std::vector<element> found(values.begin(), values.end()), sums(count);
  end.all_reduce(found, sums, {conformance::choice::kind::ring, 0});
  for (std::size_t i = 0; i < count; ++i)
    demand(sums[i] == static_cast<element>(p) * values[i], "ranks have found different numbers at ", i);
  for (std::size_t i = 0; i < own.count; ++i) demand(values[own.begin + i] == mine[i], "the own numbers are gone");
}

}  // namespace

TEST_CASE("Ranks whose directories differ share memory all the same", "[directory]") {
  const own_folder one, other;
  with_mounts([&] {
    const support::watchdog guard(support::patience);
    mount_tmpfs(one.path(), 16 * mib);
    mount_tmpfs(other.path(), 16 * mib);
    const std::string name = fresh_name("differ");
    processes all(3);
    for (int r = 0; r < 3; ++r)
      all.start(r, [&, r] {
        as_rank(name, r, 3, in_directory(r == 1 ? other.path() : one.path()), [&](group_end& end) {
          find_nonces(end);
          use(end);
        });
      });
    demand_right(all.join());
    demand_empty(one.path());
    demand_empty(other.path());
  });
}

TEST_CASE("Ranks that see different file systems at one path share memory all the same", "[directory]") {
  const own_folder folder;
  with_mounts([&] {
    for (const bool named_directory : {true, false}) {
      const support::watchdog guard(support::patience);
      const std::string name = fresh_name("namespaces");
      processes all(3);
      for (int r = 0; r < 3; ++r)
        all.start(r, [&, r] {
          demand(unshare_mounts(), "unshare");
          mount_tmpfs(named_directory ? folder.path() : "/dev/shm", 16 * mib);
          if (r == 2) ::umount(folder.path().c_str());  // sees none at all
          as_rank(name, r, 3, named_directory ? in_directory(folder.path()) : patient(), [&](group_end& end) {
            find_nonces(end);
            use(end);
          });
        });
      demand_right(all.join());
    }
  });
}
