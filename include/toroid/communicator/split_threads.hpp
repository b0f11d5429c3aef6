// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <toroid/communicator/options.hpp>
#include <toroid/communicator/split.hpp>
#include <toroid/core/error.hpp>
#include <toroid/transport/threads.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace toroid::detail {

/// Ranks of one process: the founder makes the new group's memory and shows it to the others.
template <>
class splitter<transport::threads> {
 public:
  struct offer {};

  splitter(transport::threads& old, const new_group& group, const options& chosen, const split_call& call)
      : m_old(old), m_group(group), m_chosen(chosen), m_title(call.title) {}
  splitter(const splitter&) = delete;
  splitter& operator=(const splitter&) = delete;
  ~splitter() {
    if (m_offers) m_old.offer(nullptr);
  }

  offer begin() {
    m_old.offer(std::make_shared<memory>(m_group.size(), region_bytes_of(m_group.size(), m_chosen)));
    m_offers = true;
    return {};
  }
  std::optional<transport::threads> finish(offer) {
    if (m_group.is_none()) return std::nullopt;
    std::shared_ptr<memory> shared = m_old.offer_of(m_group.founder());
    if (shared == nullptr) throw peer_lost(m_title + ": rank " + std::to_string(m_group.founder()) + " has given up");
    return transport::threads(m_group.rank, std::move(shared), waiting_of_split(m_old.how(), m_chosen));
  }

 private:
  using memory = transport::threads::shared_memory;

  transport::threads& m_old;
  const new_group& m_group;
  const options& m_chosen;
  std::string m_title;
  bool m_offers = false;
};

}  // namespace toroid::detail
