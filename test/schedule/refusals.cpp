// SPDX-License-Identifier: Apache-2.0
// The checker has to see what is wrong: schedules with one fault each, and the words that must come.
#include "models.hpp"
#include "support/catch.hpp"

#include <toroid/schedule/verify.hpp>

#include <string>

namespace {

using namespace toroid::schedule;

/// A schedule with its operations changed by Change::apply(problem, step, operation).
template <class S, class Change>
struct changed : S {
  static constexpr operation at(problem p, int step, int index) noexcept {
    operation op = S::at(p, step, index);
    Change::apply(p, step, op);
    return op;
  }
};

template <class S>
std::string refusal(S schedule, int ranks, collective_kind kind = collective_kind::all_reduce, verify_options o = {}) {
  return verify(schedule, ranks, kind, 0, o).to_string();
}

/// Expects `words` in what the checker says of schedule S with a change.
template <class S, class Change>
void refuses(const std::string& words, collective_kind kind = collective_kind::all_reduce, verify_options o = {}) {
  const std::string said = refusal(changed<S, Change>{}, 4, kind, o);
  CAPTURE(said);
  CHECK(said == words);
  CHECK(refusal(S{}, 4, kind, {.direct_in_place = false}) == "proved");
}

struct takes_another_block {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 2 && step == 1) op.blocks.first = 1;
  }
};
struct forgets_to_send {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 1 && step == 0) --op.to.count;
  }
};
struct forgets_to_receive {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 1 && step == 1) --op.from.count;
  }
};
struct sends_in_the_last_step {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 3 && step == 1) op.to = {3, 1, 2};
  }
};
struct looks_elsewhere {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 1 && step == 2) op.theirs = place::input;
  }
};
struct puts_elsewhere {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 1 && step == 1) op.at = place::input;
  }
};
struct keeps_an_announcement {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 3 && step == 0) op.to = everyone(p.ranks);
  }
};
struct delivers_a_partial_sum {
  static constexpr void apply(problem, int step, operation& op) {
    if (step == 1) op.at = place::delivered;
    if (step == 2) op.theirs = place::delivered;
  }
};
struct one_goes_backwards {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 1 && step == 1) op.from = {3, -1, 4};
  }
};
struct all_go_backwards {
  static constexpr void apply(problem, int step, operation& op) {
    if (step == 1) op.from = {3, -1, 4};
  }
};
struct one_begins_elsewhere {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 3 && step == 1) op.from.first = 1;
  }
};
struct names_a_rank_twice {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 0 && step == 1) op.from.step = 2;
  }
};
struct has_no_destination {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 0 && step == 1) op.to = nobody();
  }
};
struct leaves_the_buffer {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 0 && step == 0) op.blocks.first = 4;
  }
};
struct goes_round_more_than_once {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 0 && step == 0) op.blocks.count = 5;
  }
};
struct sends_one_block_more {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 0 && step == 0) op.blocks.count = 2;
  }
};
struct never_completes {
  static constexpr void apply(problem, int, operation& op) { op.completes = false; }
};
struct completes_early {
  static constexpr void apply(problem, int step, operation& op) { op.completes = op.completes || step == 1; }
};
struct completes_again {
  static constexpr void apply(problem, int step, operation& op) { op.completes = op.completes || step == 2; }
};
struct does_not_keep {
  static constexpr void apply(problem p, int step, operation& op) {
    if (step == 1) op.to = only(p.rank + 1);
  }
};
struct does_not_keep_its_own {
  static constexpr void apply(problem p, int step, operation& op) {
    if (step == 0) op.to = everyone_but(p.rank, p.ranks);
  }
};
struct takes_it_from_elsewhere {
  static constexpr void apply(problem p, int step, operation& op) {
    if (step == 0) op.blocks.first = (p.rank + 1) % p.ranks;
  }
};
struct delivers_to_all {
  static constexpr void apply(problem p, int step, operation& op) {
    if (step == 1) op.to = everyone(p.ranks);
  }
};
struct is_changed_by_nothing {
  static constexpr void apply(problem, int, operation&) {}
};

template <class S>
struct touching_less : S {
  static constexpr int touching_steps(problem p) noexcept { return S::touching_steps(p) - 1; }
};

}  // namespace

TEST_CASE("A changed schedule that is not changed is proved", "[schedule]") {
  CHECK(refusal(changed<ring_all_reduce, is_changed_by_nothing>{}, 4) == "proved");
}

TEST_CASE("Messages without a partner are refused", "[schedule]") {
  refuses<ring_all_reduce, takes_another_block>(
      "rank 2, step 1, block 1: wrong block: receives block 1 from rank 1, which sent block 0");
  refuses<one_shot_all_reduce, forgets_to_send>(
      "rank 0, step 1, block 0: receives from rank 1 what was not sent in step 0");
  refuses<one_shot_all_reduce, forgets_to_receive>(
      "rank 3, step 0, block 0: sent to rank 1, which does not receive it in step 1");
  refuses<one_shot_all_reduce, sends_in_the_last_step>(
      "rank 3, step 1, block 0: sent to rank 0, which does not receive it in step 2");
}

TEST_CASE("Values in the wrong place are refused", "[schedule]") {
  refuses<ring_all_reduce, looks_elsewhere>(
      "rank 1, step 2, block 2: wrong place: expects the value of rank 0 at input, which put it at slot");
  refuses<ring_all_reduce, puts_elsewhere>(
      "rank 1, step 1, block 3: peers are told to read this rank's input, but the value is another");
  refuses<one_shot_all_reduce, keeps_an_announcement>(
      "rank 3, step 0, block 0: an announcement is for peers, and cannot be kept as the own result");
  refuses<ring_all_reduce, delivers_a_partial_sum>(
      "rank 0, step 2, block 1: a delivered value is final, and cannot be an operand");
  refuses<ring_all_gather, does_not_keep>(
      "rank 0, step 1, block 3: a value was delivered to this rank, which does not keep it",
      collective_kind::all_gather);
}

TEST_CASE("Operations that make no sense are refused", "[schedule]") {
  refuses<one_shot_all_reduce, names_a_rank_twice>("rank 0, step 1, block 0: a set of peers names a rank twice");
  refuses<one_shot_all_reduce, has_no_destination>("rank 0, step 1, block 0: an operation without destinations");
  refuses<ring_reduce_scatter, leaves_the_buffer>("rank 0, step 0, block 4: 1 blocks from 4 on, of 4",
                                                  collective_kind::reduce_scatter);
  refuses<ring_reduce_scatter, goes_round_more_than_once>("rank 0, step 0, block 3: 5 blocks from 3 on, of 4",
                                                          collective_kind::reduce_scatter);
  refuses<ring_reduce_scatter, sends_one_block_more>(
      "rank 1, step 1, block 3: wrong block: receives block 3 from rank 0, which sent block 0",
      collective_kind::reduce_scatter);
}

TEST_CASE("Results in another order are refused", "[schedule]") {
  refuses<one_shot_all_reduce, one_goes_backwards>(
      "rank 1, block 0: wrong order: combines 3 + 2 + 1 + 0, and rank 0 combines 0 + 1 + 2 + 3");
  refuses<one_shot_all_reduce, one_begins_elsewhere>(
      "rank 3, block 0: wrong order: combines 1 + 2 + 3 + 0, and rank 0 combines 0 + 1 + 2 + 3");
  refuses<direct_reduce_scatter, all_go_backwards>(
      "rank 0, block 0: wrong order: combines 3 + 2 + 1 + 0, not in rank order", collective_kind::reduce_scatter,
      {.in_rank_order = true});
  CHECK(refusal(changed<direct_reduce_scatter, all_go_backwards>{}, 4, collective_kind::reduce_scatter) == "proved");
}

TEST_CASE("completes in the wrong operation is refused", "[schedule]") {
  refuses<ring_all_reduce, never_completes>(
      "rank 0, step 3, block 0: completes is missing: the value holds all contributions");
  refuses<ring_all_reduce, completes_early>(
      "rank 0, step 1, block 2: completes is set, but the value does not hold every contribution once: 3 + 0");
  refuses<direct_all_reduce, completes_again>("rank 0, step 2, block 1: completes is set a second time");
  refuses<direct_all_gather, completes_early>("rank 0, step 1, block 1: completes is set, but nothing is combined",
                                              collective_kind::all_gather);
}

TEST_CASE("Wrong results are refused", "[schedule]") {
  refuses<direct_all_gather, does_not_keep_its_own>("rank 0, block 0: the result never gets this block",
                                                    collective_kind::all_gather);
  refuses<direct_all_gather, takes_it_from_elsewhere>(
      "rank 0, step 0, block 1: reads an input block that the call does not have", collective_kind::all_gather);
  refuses<direct_reduce_scatter, delivers_to_all>(
      "rank 0, step 1, block 0: writes a block that the result of rank 1 does not have",
      collective_kind::reduce_scatter);
  CHECK(refusal(one_shot_all_reduce{}, 4, collective_kind::reduce_scatter) == "has 1 blocks where each rank owns one");
  CHECK(refusal(ring_reduce_scatter{}, 4, collective_kind::all_reduce) ==
        "rank 1, block 0: the result never gets this block");
}

TEST_CASE("Too few slots are a deadlock", "[schedule]") {
  CHECK(refusal(ring_all_reduce{}, 3, collective_kind::all_reduce, {.least_depth = 1}) ==
        "rank 0: deadlock: at time 1 it waits for rank 1 to finish time 1, which waits for rank 2 to finish time 1, "
        "which "
        "waits for rank 0 to finish time 1 (staged, out of place, 1 slots, 2 pieces)");
  CHECK(refusal(direct_all_reduce{}, 2, collective_kind::all_reduce, {.least_depth = 1}) ==
        "rank 0: deadlock: at time 1 it waits for rank 1 to finish time 1, which waits for rank 0 to finish time 1 "
        "(staged, "
        "out of place, 1 slots, 3 pieces)");
  // A chain has no circle, so one slot is enough.
  CHECK(refusal(ring_broadcast{}, 4, collective_kind::broadcast, {.least_depth = 1}) == "proved");
}

TEST_CASE("Leaving buffers too early is refused", "[schedule]") {
  CHECK(refusal(touching_less<direct_broadcast>{}, 3, collective_kind::broadcast) ==
        "rank 1, step 1, block 0: touching_steps is too small: this step works in the input of rank 0");
  CHECK(refusal(touching_less<ring_all_reduce>{}, 3) ==
        "rank 2, step 3, block 1: touching_steps is too small: this step works in the result of rank 0");
  // Its last step touches no buffer, only a slot; but what it waits for has to be told.
  CHECK(refusal(touching_less<ring_reduce_scatter>{}, 5, collective_kind::reduce_scatter) ==
        "rank 0, step 4, block 0: touching_steps is too small: this step waits for step 3 of its peers, which do not "
        "tell of steps after touching_steps");
  models::for_each([](auto schedule, collective_kind kind) {
    const std::string said = refusal(touching_less<decltype(schedule)>{}, 2, kind, {.direct_in_place = false});
    CAPTURE(said);
    CHECK(said.find("touching_steps is too small") != std::string::npos);
  });
}

namespace {

/// What the schedules below have in common: one class a step, and a place in slots for everything.
template <int Steps>
struct in_steps {
  static constexpr bool pipelined = true;
  static constexpr int blocks(problem p) noexcept { return p.ranks; }
  static constexpr int steps(problem) noexcept { return Steps; }
  static constexpr int touching_steps(problem) noexcept { return Steps; }
  static constexpr int class_count(problem) noexcept { return Steps; }
  static constexpr step_class class_at(problem, int index) noexcept { return {index, 1}; }
  static constexpr int slot_places(problem p) noexcept { return Steps * p.ranks; }
  static constexpr int slot_place(problem p, int step, int block) noexcept { return step * p.ranks + block; }
};

/// Block j is combined by rank j for all but rank j + 1, which combines it for itself: in place, rank j delivers while
/// rank j + 1 still reads.
struct delivers_too_early : in_steps<3> {
  static constexpr int operations(problem p, int step) noexcept {
    return step == 0 ? p.ranks : step == 1 ? 2 : p.ranks - 2;
  }
  static constexpr operation at(problem p, int step, int index) noexcept {
    const int left = (p.rank + p.ranks - 1) % p.ranks;
    if (step == 0) {  // a block to those who combine it, the own rank left out
      const int block = (p.rank + index) % p.ranks;
      const peers to = block == p.rank ? only(block + 1) : block == left ? only(block) : peers{block, 1, 2};
      return {only(p.rank), place::input, {block, 1}, to, place::input};
    }
    if (step == 1 && index == 0)
      return {everyone(p.ranks), place::input, {p.rank, 1}, {p.rank + 2, 1, p.ranks - 1}, place::delivered, true};
    if (step == 1) return {everyone(p.ranks), place::input, {left, 1}, only(p.rank), place::delivered, true};
    const int owner = (p.rank + 1 + index) % p.ranks;  // neither this rank nor the one before it
    return {only(owner), place::delivered, {owner, 1}, only(p.rank), place::delivered};
  }
};

/// Rank j and rank j + 1 both combine block j, and both deliver it to all.
struct delivers_twice : in_steps<3> {
  static constexpr int operations(problem p, int step) noexcept {
    return step == 0 ? p.ranks : step == 1 ? 2 : 2 * p.ranks - 2;
  }
  static constexpr operation at(problem p, int step, int index) noexcept {
    const int left = (p.rank + p.ranks - 1) % p.ranks;
    if (step == 0) return delivers_too_early::at(p, step, index);
    if (step == 1) {
      const int block = index == 0 ? p.rank : left;
      return {everyone(p.ranks), place::input, {block, 1}, everyone(p.ranks), place::delivered, true};
    }
    const int sender = (p.rank + 1 + index / 2) % p.ranks;
    const int block = index % 2 == 0 ? sender : (sender + p.ranks - 1) % p.ranks;
    return {only(sender), place::delivered, {block, 1}, only(p.rank), place::delivered};
  }
};

/// Combines everything twice, the second time from inputs that in place are not there any more.
struct reads_again : in_steps<4> {
  static constexpr int blocks(problem) noexcept { return 1; }
  static constexpr int operations(problem, int) noexcept { return 1; }
  static constexpr operation at(problem p, int step, int) noexcept { return one_shot_all_reduce::at(p, step % 2, 0); }
};

/// Rank 0 does all the work.
struct star : in_steps<3> {
  static constexpr int blocks(problem) noexcept { return 1; }
  static constexpr int operations(problem p, int step) noexcept { return step == 1 ? p.rank == 0 : p.rank != 0; }
  static constexpr operation at(problem p, int step, int) noexcept {
    if (step == 0) return {only(p.rank), place::input, {}, only(0), place::input};
    if (step == 1) return {everyone(p.ranks), place::input, {}, everyone(p.ranks), place::delivered, true};
    return {only(0), place::delivered, {}, only(p.rank), place::delivered};
  }
};

template <class S, int First, int Count>
struct one_class : S {
  static constexpr int class_count(problem) noexcept { return 1; }
  static constexpr step_class class_at(problem, int) noexcept { return {First, Count}; }
};

template <int Blocks>
struct with_blocks : one_shot_all_reduce {
  static constexpr int blocks(problem p) noexcept { return p.rank == 2 ? Blocks : 1; }
};

}  // namespace

TEST_CASE("Accesses without an order are refused", "[schedule]") {
  CHECK(refusal(delivers_too_early{}, 4, collective_kind::all_reduce, {.direct_in_place = false}) == "proved");
  CHECK(refusal(delivers_too_early{}, 4) ==
        "rank 1, step 1, block 0: reads the input of rank 0 while step 1 of rank 0 may write it (direct path, in "
        "place, 2 "
        "slots, 4 pieces)");
  CHECK(refusal(delivers_twice{}, 4) ==
        "rank 2, step 2, block 3: writes the result of rank 2 while step 2 of rank 2 may write it (staged, out of "
        "place, 2 "
        "slots, 4 pieces)");
}

TEST_CASE("Operands that are gone before they are read are refused", "[schedule]") {
  CHECK(
      refusal(reads_again{}, 4) ==
      "rank 2, step 2, block 0: reads the input of rank 2 after it has been overwritten (staged, in place, 2 slots, 4 "
      "pieces)");
}

TEST_CASE("Step classes that are none are refused", "[schedule]") {
  CHECK(refusal(star{}, 4, collective_kind::all_reduce, {.direct_in_place = false}) ==
        "rank 1, step 0: differs from rank 0 by more than rank arithmetic");
  CHECK(refusal(one_class<direct_all_reduce, 0, 2>{}, 4) == "rank 0, step 1: is unlike step 0 of the same class");
  CHECK(refusal(one_class<direct_broadcast, 0, 1>{}, 4, collective_kind::broadcast) == "step 1: belongs to no class");
  CHECK(refusal(one_class<direct_broadcast, 0, 3>{}, 4, collective_kind::broadcast) ==
        "step 0: class goes beyond the last step");
  CHECK(refusal(one_class<direct_broadcast, 1, 1>{}, 4, collective_kind::broadcast) ==
        "step 0: class begins at step 1 with 1 steps; the classes before it end here");
}

TEST_CASE("Ranks that disagree are refused", "[schedule]") {
  CHECK(refusal(with_blocks<2>{}, 4) == "rank 2: disagrees with rank 0 about steps, touching_steps, blocks or classes");
  CHECK(refusal(with_blocks<1>{}, 4, collective_kind::all_reduce, {.direct_in_place = false}) == "proved");
}

namespace {

struct forgets_its_own_slot {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 2 && step == 1 && op.to.contains(2, p.ranks)) op.at = place::delivered;
  }
};
struct looks_into_its_own_slot {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 1 && step == 1) op.own = place::slot;
  }
};
struct looks_into_its_result {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 1 && step == 1) op.own = place::delivered;
  }
};
struct announces_what_it_computed {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 0 && step == 2 && op.to.first != 0) op.at = place::input;
  }
};
struct names_a_stranger {
  static constexpr void apply(problem p, int, operation& op) {
    if (p.rank == 3 && op.from.extra >= 0) op.from.extra = p.ranks;
  }
};
struct names_a_child_twice {
  static constexpr void apply(problem p, int, operation& op) {
    if (p.rank == 3 && op.from.extra >= 0) op.from.extra = 3;
  }
};
struct swaps_subtrees {
  static constexpr void apply(problem p, int, operation& op) {
    if (p.rank == 3 && op.from.extra >= 0) op.from = both(op.from.extra, 3).with(op.from.at(0, p.ranks));
  }
};
/// The sum of a row is put where the column does not look for it.
struct forgets_the_row {
  static constexpr void apply(problem p, int step, operation& op) {
    if (p.rank == 4 && step == 3 && op.own == place::delivered) op.own = place::input;
  }
};

/// What goes up and what comes down share a place in slots.
template <class S>
struct in_one_place : S {
  static constexpr int slot_place(problem p, int step, int block) noexcept {
    return S::slot_place(p, step, block) % S::blocks(p);
  }
};

template <class S>
struct claims_to_be_alike : S {
  static constexpr bool ranks_differ = false;
};

/// Rank 0 writes its result, which in place is the input that rank 1 reads. Rank 1 adds up.
struct keeps_too_early : in_steps<3> {
  static constexpr bool ranks_differ = true;
  static constexpr int blocks(problem) noexcept { return 1; }
  static constexpr int operations(problem p, int step) noexcept { return step > 0 || p.rank == 0; }
  static constexpr operation at(problem p, int step, int) noexcept {
    if (step == 0) return {only(0), place::input, {}, only(1), place::input};
    if (step == 1 && p.rank == 0) return {only(0), place::input, {}, only(0), place::delivered};
    if (step == 1) return {everyone(2), place::input, {}, everyone(2), place::slot, true};
    return {only(1), place::slot, {}, only(p.rank), place::delivered, false, place::slot};
  }
};

/// Reads its result in the step in which another operation writes it.
struct reads_too_early : in_steps<2> {
  static constexpr int blocks(problem) noexcept { return 1; }
  static constexpr int operations(problem, int) noexcept { return 2; }
  static constexpr operation at(problem p, int step, int index) noexcept {
    if (step == 0 && index == 0) return {only(p.rank), place::input, {}, only(1 - p.rank), place::input};
    if (step == 0) return {only(p.rank), place::input, {}, only(p.rank), place::delivered};
    if (index == 0) return {everyone(2), place::input, {}, only(p.rank), place::delivered, true, place::delivered};
    return {only(p.rank), place::input, {}, only(p.rank), place::delivered, false, place::delivered};
  }
};

}  // namespace

TEST_CASE("Own operands that are not where they should be are refused", "[schedule]") {
  refuses<halving_doubling_all_reduce, forgets_its_own_slot>(
      "rank 2, step 2, block 2: receives from rank 2 what was not sent in step 1");
  refuses<ring_all_reduce, looks_into_its_own_slot>(
      "rank 1, step 1, block 3: receives from rank 1 what was not sent in step 0");
  refuses<ring_all_reduce, looks_into_its_result>("rank 1, step 1, block 3: reads an own result that is not there yet");
  CHECK(refusal(changed<halving_doubling_all_reduce, announces_what_it_computed>{}, 8) ==
        "rank 0, step 2, block 1: peers are told to read this rank's input, but the value is another");
  CHECK(refusal(keeps_too_early{}, 2, collective_kind::all_reduce, {.direct_in_place = false}) == "proved");
  CHECK(
      refusal(keeps_too_early{}, 2) ==
      "rank 1, step 1, block 0: reads the input of rank 0 while step 1 of rank 0 may write it (direct path, in place, "
      "2 slots, 4 pieces)");
  CHECK(
      refusal(reads_too_early{}, 2) ==
      "rank 1, step 1, block 0: reads the result of rank 1 while step 1 of rank 1 may write it (staged, out of place, "
      "2 slots, 4 pieces)");
}

TEST_CASE("Wrong ranks at the end of a set are refused", "[schedule]") {
  const auto refusal_of_7 = [](auto schedule) {
    return refusal(schedule, 7, collective_kind::all_reduce, {.in_rank_order = true});
  };
  CHECK(refusal_of_7(in_order_tree_all_reduce{}) == "proved");
  CHECK(refusal_of_7(changed<in_order_tree_all_reduce, names_a_stranger>{}) ==
        "rank 3, step 2, block 0: a set of peers names a rank that there is not");
  CHECK(refusal_of_7(changed<in_order_tree_all_reduce, names_a_child_twice>{}) ==
        "rank 3, step 2, block 0: a set of peers names a rank twice");
  CHECK(refusal_of_7(changed<in_order_tree_all_reduce, swaps_subtrees>{}) ==
        "rank 0, block 0: wrong order: combines 4 + 5 + 6 + 3 + (0 + 1 + 2), not in rank order");
}

TEST_CASE("Two values in one place of a slot are refused", "[schedule]") {
  CHECK(refusal(in_one_place<tree_all_reduce>{}, 4) ==
        "rank 1, step 3, block 0: puts a value into place 0 of its slot, where step 1 puts another at the same time "
        "(staged, out of place, 2 slots, 4 pieces)");
  CHECK(refusal(in_one_place<torus_2d_all_reduce>{}, 4, collective_kind::all_reduce, {.rows = 2}) ==
        "rank 3, step 0, block 14: puts a value into place 0 of its slot, where step 0 puts another at the same time "
        "(staged, out of place, 2 slots, 4 pieces)");
}

TEST_CASE("Faults on a grid are refused", "[schedule]") {
  CHECK(refusal(torus_2d_all_reduce{}, 6, collective_kind::all_reduce, {.rows = 4}) == "6 ranks do not form 4 rows");
  CHECK(refusal(changed<torus_2d_all_reduce, forgets_the_row>{}, 6, collective_kind::all_reduce, {.rows = 2}) ==
        "rank 4, step 3, block 3: completes is set, but the value does not hold every contribution once: 2 + 0 + 1 + "
        "4");
  CHECK(refusal(claims_to_be_alike<in_order_tree_all_reduce>{}, 4) ==
        "rank 1, step 0: differs from rank 0 by more than rank arithmetic");
  // A ring of all ranks does not look the same from everywhere if it is seen as a grid.
  CHECK(refusal(ring_all_reduce{}, 6, collective_kind::all_reduce, {.rows = 2}) ==
        "rank 1, step 1: differs from rank 0 by more than rank arithmetic");
}

namespace {

/// One field of one operation changed at run time.
struct single_change {
  int rank = 0;
  int step = 0;
  int index = 0;
  int kind = 0;
};
constexpr int kinds_of_change = 16;

/// False if the change would mean nothing.
bool apply(int kind, operation& op, int rank, int ranks, int blocks) {
  const auto next = [](place p, int by) { return static_cast<place>((static_cast<int>(p) + by) % 3); };
  const bool reads_own = op.from.contains(rank, ranks);
  const bool receives = op.from.count > (reads_own ? 1 : 0);
  const bool sends = op.to.count > (op.to.contains(rank, ranks) ? 1 : 0);
  switch (kind) {
    case 0:
      return op.blocks.first = (op.blocks.first + 1) % blocks, blocks > 1;
    case 1:
      return --op.to.count, true;
    case 2:
      return --op.from.count, true;
    case 3:
      return ++op.to.count, true;
    case 4:
      return ++op.from.count, true;
    case 5:
      return ++op.to.first, op.to.count < ranks && op.to.count > (op.to.extra < 0 ? 0 : 1);
    case 6:
      return ++op.from.first, op.from.count > (op.from.extra < 0 ? 0 : 1);
    case 7:
      return op.theirs = next(op.theirs, 1), receives;
    case 8:
      return op.theirs = next(op.theirs, 2), receives;
    case 9:
      return op.at = next(op.at, 1), sends;
    case 10:
      return op.at = next(op.at, 2), sends;
    case 11:
      return op.own = next(op.own, 1), reads_own;
    case 12:
      return op.own = next(op.own, 2), reads_own;
    case 13:
      return op.from.extra = (op.from.extra + 1) % ranks, op.from.extra > 0;
    case 14:
      return ++op.blocks.count, true;
    default:
      return op.completes = !op.completes, true;
  }
}

template <class S>
struct with_single_change : S {
  static inline single_change change;
  static operation at(problem p, int step, int index) noexcept {
    operation op = S::at(p, step, index);
    if (p.rank == change.rank && step == change.step && index == change.index)
      apply(change.kind, op, p.rank, p.ranks, S::blocks(p));
    return op;
  }
};

}  // namespace

namespace {

/// Expects that nothing proves a schedule with one field changed, or that its operands meet in another order.
template <class S>
void refuses_single_changes(S schedule, int ranks, collective_kind kind, int root, int rows) {
  using mutant = with_single_change<S>;
  const verify_options options{.direct_in_place = false, .rows = rows};
  const verification proof = verify(schedule, ranks, kind, root, options);
  REQUIRE(proof.to_string() == "proved");
  for (int rank = 0; rank < ranks; ++rank) {
    const problem p{rank, ranks, root, rows};
    for (int step = 0; step < S::steps(p); ++step) {
      for (int index = 0; index < S::operations(p, step); ++index) {
        for (int change = 0; change < kinds_of_change; ++change) {
          operation op = S::at(p, step, index);
          if (!apply(change, op, rank, ranks, S::blocks(p))) continue;
          mutant::change = {rank, step, index, change};
          CAPTURE(static_cast<int>(kind), ranks, root, rows, rank, step, index, change);
          const verification found = verify(mutant{}, ranks, kind, root, options);
          // Operands of a block in another order make a right sum, but not the same one.
          REQUIRE((!found.proved() || found.expressions != proof.expressions));
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("No single field of any operation can be changed without being seen", "[schedule]") {
  models::for_each([](auto schedule, collective_kind kind) {
    for (const int ranks : {3, 4}) refuses_single_changes(schedule, ranks, kind, 0, 1);
  });
  refuses_single_changes(halving_reduce_scatter{}, 6, collective_kind::reduce_scatter, 0, 1);
  refuses_single_changes(tree_reduce{}, 6, collective_kind::reduce, 4, 1);
  refuses_single_changes(in_order_tree_reduce{}, 6, collective_kind::reduce, 4, 1);
  refuses_single_changes(tree_broadcast{}, 6, collective_kind::broadcast, 4, 1);
  refuses_single_changes(torus_2d_all_reduce{}, 4, collective_kind::all_reduce, 0, 2);
  refuses_single_changes(torus_2d_all_reduce{}, 6, collective_kind::all_reduce, 0, 2);
}
