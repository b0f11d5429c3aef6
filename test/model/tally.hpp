// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/variables.hpp"

#include <cstddef>
#include <iostream>
#include <string>
#include <utility>

namespace model {

/// Adds up what is explored in a test and says so at its end.
class tally {
 public:
  explicit tally(std::string name) : m_name(std::move(name)) {}
  tally(const tally&) = delete;
  tally& operator=(const tally&) = delete;
  ~tally() {
    std::cout << "  " << m_name << ": " << m_states << " states, " << m_steps << " steps, " << m_machines
              << " machines\n";
  }

  report explore(machine& m) {
    report found = m.explore();
    m_states += found.states;
    m_steps += found.steps;
    ++m_machines;
    return found;
  }

 private:
  std::string m_name;
  std::size_t m_states = 0, m_steps = 0, m_machines = 0;
};

}  // namespace model
