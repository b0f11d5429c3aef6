// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace toroid::transport {

/// What a thread has begun elsewhere, and can go on with while it waits for something else.
class background_task {
 public:
  enum class outcome {
    over,   ///< nothing is left to do: the list drops it
    idle,   ///< somebody is at it already
    stuck,  ///< it has to wait for a peer
    moved   ///< it has got on
  };

  /// Goes on as far as that needs no waiting. From the listing thread.
  virtual outcome advance_in_background() noexcept = 0;
  /// A list takes it, or drops it. The task lives at least as long as it is in one.
  virtual void listed(const void* list) noexcept = 0;
  virtual void dropped(const void* list) noexcept = 0;

 protected:
  ~background_task() = default;
};

/// The tasks of one thread. Tasks that are over stay until the thread next waits for long.
///
/// The one thing that outlives a call without being an object of the caller's. Whoever waits for one group has to go on
/// with what the same thread has begun on others, or two threads that wait in opposite orders would wait for ever; and
/// nothing leads from one communicator to another but the thread that uses both.
class background {
 public:
  constexpr background() noexcept = default;
  background(const background&) = delete;
  background& operator=(const background&) = delete;
  ~background() {
    while (m_first != nullptr) drop(&m_first);
    m_ended = true;
  }

  /// The list of the calling thread.
  static background& of_this_thread() noexcept {
    thread_local background list;
    return list;
  }

  bool empty() const noexcept { return m_first == nullptr; }

  void add(background_task& task) {
    if (m_ended) return;  // the thread is about to end: it waits for nothing else any more
    for (const entry* e = m_first; e != nullptr; e = e->next)
      if (e->task == &task) return;
    m_first = new entry{&task, m_first};
    task.listed(this);
  }

  /// Goes on with each of them.
  /// @return moved if one has, else stuck if one could, else something less
  background_task::outcome advance() noexcept {
    using outcome = background_task::outcome;
    outcome all = outcome::over;
    for (entry** e = &m_first; *e != nullptr;) {
      const outcome one = (*e)->task->advance_in_background();
      if (one > all) all = one;
      if (one == outcome::over)
        drop(e);
      else
        e = &(*e)->next;
    }
    return all;
  }

 private:
  struct entry {
    background_task* task;
    entry* next;
  };
  void drop(entry** where) noexcept {
    entry* const e = *where;
    *where = e->next;
    e->task->dropped(this);
    delete e;
  }

  entry* m_first = nullptr;
  bool m_ended = false;
};

}  // namespace toroid::transport
