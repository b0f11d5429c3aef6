// SPDX-License-Identifier: Apache-2.0
#include "collective/conformance.hpp"
#include "support/catch.hpp"
#include "support/demand.hpp"
#include "support/launch.hpp"

// Transports that are broken on purpose: the conformance suite has to notice each. They run as processes, where a race
// that was planted is no report of a thread sanitizer.

namespace {

using namespace conformance;

enum class fault {
  none,
  announces_too_early,   ///< a step is said to be done before its data is written
  waits_too_little,      ///< a reader goes on one step before the data is there
  loses_regions,         ///< what a rank hands over is lost
  loses_a_byte,          ///< of each region, one byte
  keeps_signals,         ///< now and then a flag is not stored
  misleads_about_memory  ///< buffers are said to lie one element further
};

class faulty : public toroid::transport::shm {
 public:
  faulty(toroid::transport::shm base, fault what)
      : toroid::transport::shm(std::move(base)), m_what(what), m_lost(region_bytes()) {}

  std::uint64_t signal(std::atomic<std::uint64_t>& flag, std::uint64_t value) noexcept {
    if (m_what == fault::keeps_signals && ++m_signals % 100 == 0) return 0;
    if (m_what != fault::announces_too_early || &flag != &box(rank()).progress) return shm::signal(flag, value);
    const std::uint64_t attention = shm::signal(flag, value + 1);
    ::usleep(200);
    return attention;
  }
  void wait(int peer, const std::atomic<std::uint64_t>& flag, std::uint64_t value,
            const toroid::transport::wait_context& context) {
    const bool hasty = m_what == fault::waits_too_little && &flag == &box(peer).progress;
    shm::wait(peer, flag, hasty ? value - 1 : value, context);
  }
  std::byte* region(int rank, int index) const noexcept {
    if (m_what == fault::loses_regions && rank == this->rank()) return m_lost.data();
    if (m_what == fault::loses_a_byte && rank != this->rank()) shm::region(rank, index)[1] = std::byte{0};
    return shm::region(rank, index);
  }
  std::uint64_t address_of(const void* pointer) const noexcept {
    return shm::address_of(pointer) + (m_what == fault::misleads_about_memory ? sizeof(element) : 0);
  }

 private:
  fault m_what;
  mutable std::vector<std::byte> m_lost;
  int m_signals = 0;
};

launcher on_faulty(fault what) {
  return [what](int ranks, const toroid::options& chosen, const std::function<void(group_end&)>& f) {
    toroid::options hasty = chosen;
    hasty.timeout = std::chrono::milliseconds(500);
    const auto break_it = [what](toroid::transport::shm base) { return faulty(std::move(base), what); };
    support::run_processes_over(ranks, hasty, toroid::detail::waiting_of(ranks, hasty), break_it, erased(f));
  };
}

/// What the suite says of a broken transport.
std::string complaint(fault what, memory_kind where) {
  return support::text_of<std::exception>([&] { check(on_faulty(what), where, extent::brief, 3); });
}

}  // namespace

TEST_CASE("The conformance suite accepts the transport that the broken ones are made of", "[conformance][planted]") {
  check(on_faulty(fault::none), memory_kind::ordinary, extent::brief, 3);
}

TEST_CASE("The conformance suite notices a transport that signals before the data is there", "[conformance][planted]") {
  support::demand_words(complaint(fault::announces_too_early, memory_kind::ordinary), "element", "of 3");
}

TEST_CASE("The conformance suite notices a transport that does not wait for the last step", "[conformance][planted]") {
  support::demand_words(complaint(fault::waits_too_little, memory_kind::ordinary), "element", "of 3");
}

TEST_CASE("The conformance suite notices a transport that loses what is handed over", "[conformance][planted]") {
  support::demand_words(complaint(fault::loses_regions, memory_kind::ordinary), "element", "of 3");
  support::demand_words(complaint(fault::loses_a_byte, memory_kind::ordinary), "element", "of 3");
}

TEST_CASE("The conformance suite notices a transport that forgets to signal", "[conformance][planted]") {
  support::demand_words(complaint(fault::keeps_signals, memory_kind::ordinary), "no answer within");
}

TEST_CASE("The conformance suite notices a transport that reads and writes beside the buffers",
          "[conformance][planted]") {
  const std::string text = complaint(fault::misleads_about_memory, memory_kind::shared);
  CAPTURE(text);
  CHECK((text.find("element") != std::string::npos || text.find("guard") != std::string::npos));
}
