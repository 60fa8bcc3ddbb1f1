"""What holds for every lane, whatever the world answers and in whatever order it is asked."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain import commands
from domain.errors import Refusal
from domain.events import BY_TAG, Fact
from domain.lane import INITIAL, decide, evolve, fold, learn, pending
from domain.states import NAMES, Lane, Nowhere, Reaping, Returning, Undoing, name
from tests.domain.facts import EXAMPLES, registered, sweep_finished, sweep_planned
from tests.domain.lives import LIVES
from tests.domain.worlds import answers, requests

STEPS = 24  # the longest saga: a creation whose steps and whose undoing each take all of their attempts
OTHERS = (registered, sweep_planned, sweep_finished)
PREFIXES = {
    fold(facts[:length]): facts[:length] for facts in LIVES.values() for length in range(len(facts) + 1)
}
RESTING = [lane for lane in PREFIXES if pending(lane) is None]
MILESTONES = {tag for tag in BY_TAG if tag.startswith("lane.")}  # what `log --type 'lane.*'` shows


def changed(lane: Lane, facts: Iterable[Fact]) -> Lane:
    """Folds the facts; each must change the lane."""
    for fact in facts:
        after = evolve(lane, fact)
        assert after != lane, f"{fact.TAG} changes nothing in {lane}"
        lane = after
    return lane


def asked(lane: Lane, command: commands.AnyCommand) -> Lane | None:
    """Returns the lane after the command, or None if it was refused."""
    try:
        facts = decide(lane, command)
    except Refusal:
        return None
    assert facts
    return changed(lane, facts)


def longest(lane: Lane, known: dict[Lane, int], above: tuple[Lane, ...] = ()) -> int:
    """Returns the most effects that may be performed before the lane is at rest, over all answers."""
    effect = pending(lane)
    if effect is None:
        return 0
    assert lane not in above, f"a saga that loops: {lane}"
    if lane not in known:
        learnt = [(outcome, learn(lane, outcome)) for outcome in answers(effect)]
        assert all(facts for _, facts in learnt), f"an answer that means nothing: {learnt}"
        nexts = {changed(lane, facts) for _, facts in learnt}
        known[lane] = 1 + max(longest(after, known, (*above, lane)) for after in nexts)
    return known[lane]


def test_every_saga_ends_whatever_the_world_answers() -> None:
    known: dict[Lane, int] = {}
    lengths = [
        longest(after, known)
        for lane in RESTING
        for command in requests(lane)
        if (after := asked(lane, command)) is not None
    ]
    assert max(lengths) == STEPS


@settings(deadline=None)
@given(st.lists(st.integers(0, 999), max_size=150))
def test_a_long_life_keeps_the_laws(tape: list[int]) -> None:
    """The tape chooses commands and answers; where it ends, the world is kind."""
    lane: Lane = INITIAL
    numbers = iter(tape)
    for number in numbers:
        before, choices = lane, requests(lane)
        after = asked(lane, choices[number % len(choices)])
        if after is not None:
            lane = driven(after, numbers)
            keeps_what_it_had(before, lane)


def driven(lane: Lane, numbers: Iterable[int]) -> Lane:
    choose, steps = iter(numbers), 0
    while (effect := pending(lane)) is not None:
        choices, number = answers(effect), next(choose, 0)
        outcome = choices[number % len(choices)] if number % 3 == 0 else choices[0]
        lane = changed(lane, learn(lane, outcome))
        steps += 1
        assert steps <= STEPS
    return lane


def keeps_what_it_had(before: Lane, after: Lane) -> None:
    assert not isinstance(after, Nowhere)
    if isinstance(before, Nowhere):
        return
    was, now = before.record, after.record
    assert (now.lane, now.repository, now.name, now.kind) == (was.lane, was.repository, was.name, was.kind)
    assert now.snapshots[: len(was.snapshots)] == was.snapshots
    assert [each.number for each in now.editions] == list(range(1, len(now.editions) + 1))
    assert len(now.editions) in (len(was.editions), len(was.editions) + 1)
    assert [each.head for each in now.editions[: len(was.editions)]] == [each.head for each in was.editions]


@pytest.mark.parametrize("fact", EXAMPLES, ids=lambda fact: fact.TAG)
def test_evolve_takes_every_fact_in_every_state(fact: Fact) -> None:
    for lane in PREFIXES:
        assert type(evolve(lane, fact)) in NAMES


@pytest.mark.parametrize("fact", OTHERS, ids=lambda fact: fact.TAG)
def test_a_lane_is_not_concerned_with_what_other_streams_tell(fact: Fact) -> None:
    assert all(evolve(lane, fact) == lane for lane in PREFIXES)


@pytest.mark.parametrize("facts", LIVES.values(), ids=LIVES)
def test_each_fact_of_a_life_changes_it(facts: tuple[Fact, ...]) -> None:
    changed(INITIAL, facts)


@pytest.mark.parametrize("facts", LIVES.values(), ids=LIVES)
def test_after_a_milestone_the_lane_is_at_rest(facts: tuple[Fact, ...]) -> None:
    for length, fact in enumerate(facts, 1):
        if fact.TAG in MILESTONES:
            assert pending(fold(facts[:length])) is None


def test_a_lane_at_rest_learns_nothing() -> None:
    effects = [effect for lane in PREFIXES if (effect := pending(lane)) is not None]
    outcomes = {outcome for effect in effects for outcome in answers(effect)}
    stuck = (Undoing, Returning, Reaping)  # a residual: what it owes waits for somebody to ask
    for lane in RESTING:
        if not isinstance(lane, stuck):
            assert all(learn(lane, outcome) == () for outcome in outcomes)


def test_every_fact_has_an_example_and_every_state_a_life() -> None:
    assert {fact.TAG for fact in EXAMPLES} == set(BY_TAG)
    assert {type(lane) for lane in PREFIXES} == set(NAMES)
    assert {name(lane) for lane in PREFIXES} == set(NAMES.values())


def test_every_fact_that_a_lane_tells_is_told_in_some_life() -> None:
    told = {fact.TAG for facts in LIVES.values() for fact in facts}
    assert told == set(BY_TAG) - {fact.TAG for fact in OTHERS}


def test_the_milestones_are_the_six_words_of_an_auditor() -> None:
    assert sorted(MILESTONES) == [
        "lane.adopted@1",
        "lane.created@1",
        "lane.quarantined@1",
        "lane.reaped@1",
        "lane.restored@1",
        "lane.snapshotted@2",
    ]
