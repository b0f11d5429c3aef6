// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/options.hpp>
#include <toroid/communicator/shm_set_up.hpp>
#include <toroid/communicator/split.hpp>
#include <toroid/transport/mailbox.hpp>
#include <toroid/transport/process_identity.hpp>
#include <toroid/transport/shm.hpp>

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>

namespace toroid::detail {

/// Processes of one host: the founder opens a local socket under a number drawn for this split, and the new group sets
/// itself up as one with a name does.
template <>
class splitter<transport::shm> {
 public:
  struct offer {
    char name[48] = {};
  };

  splitter(transport::shm& old, const new_group& group, const options& chosen, const split_call& call)
      : m_old(old),
        m_group(group),
        m_chosen(chosen),
        m_last(call.last),
        m_split{
            call.title,
            waiting_of_split(old.how(), chosen),
            call.nanoseconds,
            {[](const void* self, int rank) noexcept { return static_cast<const splitter*>(self)->has_given_up(rank); },
             this}} {}
  splitter(const splitter&) = delete;
  splitter& operator=(const splitter&) = delete;

  offer begin() {
    offer here;
    // The process number means nothing: it tells the reader of /proc/net/unix.
    std::snprintf(here.name, sizeof here.name, "split.%ld.%016llx", static_cast<long>(::getpid()),
                  static_cast<unsigned long long>(random_number("split")));
    make_set_up(here);
    m_set_up->open_door();
    return here;
  }
  std::optional<transport::shm> finish(const offer& there) {
    if (m_group.is_none()) return std::nullopt;
    if (m_set_up == nullptr) make_set_up(there);
    return m_set_up->set_up();
  }

 private:
  void make_set_up(const offer& where) {
    m_set_up = std::make_unique<shm_set_up>(m_split, where.name, m_group.rank, m_group.size(), m_chosen);
  }

  /// It has died, or could not begin, and tells all others so in the last call of the split.
  bool has_given_up(int rank) const noexcept {
    const transport::mailbox& box = m_old.box(m_group.members[static_cast<std::size_t>(rank)]);
    return m_old.broken() || box.left.load(std::memory_order_acquire) != 0 ||
           box.entries[m_last & 1].sequence.load(std::memory_order_acquire) >= m_last ||
           (box.owner_known.load(std::memory_order_acquire) != 0 && transport::has_ended(box.owner));
  }

  transport::shm& m_old;
  const new_group& m_group;
  const options& m_chosen;
  std::uint64_t m_last;
  set_up_of_split m_split;
  std::unique_ptr<shm_set_up> m_set_up;
};

}  // namespace toroid::detail
