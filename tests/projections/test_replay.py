"""The replay: what each event was, what it has made of the lane, and what was owed before and after."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from domain.effects import Checkout, FreeBranch, Lock, Move, Unlock
from domain.envelope import Actor, Envelope, stream_of
from domain.errors import Refusal
from domain.events import RemovalStepFailed
from domain.formats import Foreign
from domain.lane import decide, fold, pending
from domain.states import Active, Blocked, Leaving, name
from domain.transitions import COMMANDS, EXAMPLES
from projections.differences import Change, changes
from projections.replay import DECIDED, Step, replay
from tests.domain.facts import HOME, LANE, RESTING, locked, moved, removal_abandoned
from tests.domain.lives import CREATED, LEAVING, LIVES, REAPED, REMOVED, RETURNED
from tests.projections.folded import event

if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.events import Fact


def log(facts: Iterable[Fact]) -> list[Envelope]:
    return [event(at, stream_of(LANE), at, fact) for at, fact in enumerate(facts, 1)]


def told(facts: Iterable[Fact]) -> list[Step]:
    return list(replay(log(facts)))


@pytest.mark.parametrize("facts", LIVES.values(), ids=LIVES)
def test_a_life_is_told_event_by_event_without_a_gap(facts: tuple[Fact, ...]) -> None:
    steps = told(facts)
    assert [each.event.fact for each in steps] == list(facts)
    assert [each.after for each in steps] == [fold(facts[:at]) for at in range(1, len(facts) + 1)]
    assert all(one.after is other.before for one, other in pairwise(steps))
    assert [each.owes for each in steps] == [pending(each.after) for each in steps]
    assert [each.owed for each in steps] == [pending(each.before) for each in steps]


@pytest.mark.parametrize("facts", LIVES.values(), ids=LIVES)
def test_whatever_an_event_has_changed_is_named(facts: tuple[Fact, ...]) -> None:
    for each in told(facts):
        assert (each.before == each.after) <= (each.changes == ())
        if each.before != each.after:
            assert each.changes or name(each.before) != name(each.after), each.event.type


def test_a_fact_is_of_a_command_exactly_if_a_command_decides_it() -> None:
    decided = set()
    for lane in map(fold, EXAMPLES):
        for command in COMMANDS:
            try:
                decided |= {type(fact) for fact in decide(lane, command)}
            except Refusal:
                continue
    assert decided <= set(DECIDED)
    assert {each.__name__ for each in set(DECIDED) - decided} == {
        "IgnoredLetGo"
    }  # the examples ignore nothing


def test_commands_and_outcomes_are_told_apart() -> None:
    assert [each.by for each in told(REMOVED)][-5:] == ["command", *["outcome"] * 4]


def test_an_outcome_names_the_effect_that_ran() -> None:
    ran = [each.ran for each in told(REMOVED)]
    assert [type(each) for each in ran[:3]] == [type(None), Checkout, Unlock]
    assert [type(each) for each in ran[-5:]] == [type(None), Lock, Move, FreeBranch, FreeBranch]


def test_what_was_written_together_is_one_outcome() -> None:
    events = log(REMOVED)
    *before, freed, quarantined = replay([*events[:-1], replace(events[-1], time=events[-2].time)])
    assert (freed.joined, freed.joining, freed.owes) == (False, True, None)
    assert (quarantined.joined, quarantined.joining) == (True, False)
    assert quarantined.owed == quarantined.ran == freed.ran == before[-1].owes
    assert not any(each.joined or each.joining for each in before)


def test_whoever_goes_on_after_another_process_has_begun_is_told() -> None:
    events, other = log((*LEAVING, locked, moved)), Actor(uid=1000, pid=43, client="tests")
    steps = list(replay([*events[:-1], replace(events[-1], actor=other)]))
    assert [each.resumed for each in steps] == [*[False] * (len(steps) - 1), True]


def test_a_new_command_of_another_process_resumes_nothing() -> None:
    events, other = log(LEAVING), Actor(uid=1000, pid=43, client="tests")
    assert not list(replay([*events[:-1], replace(events[-1], actor=other)]))[-1].resumed


def test_attempts_are_counted() -> None:
    failed = [
        RemovalStepFailed(step="lock", attempt=at, code="locked", reason="held", final=False) for at in (1, 2)
    ]
    assert [each.attempt for each in told((*LEAVING, *failed, locked, moved))][-4:] == [1, 2, 3, 1]


def changed(facts: tuple[Fact, ...]) -> dict[str, Change]:
    return {each.field: each for each in told(facts)[-1].changes}


def test_a_removal_moves_the_path_when_the_tree_moves_and_only_then() -> None:
    assert changed((*LEAVING, locked)) == {"locked": Change(field="locked", before=False, after=True)}
    found = changed((*LEAVING, locked, moved))
    assert set(found) == {"path", "moved"}
    assert (found["path"].before, found["path"].after) == (HOME, RESTING)
    assert "path" not in changed(REMOVED)


def test_a_plan_is_told_field_by_field_and_is_over_with_its_journal() -> None:
    planned = changed(LEAVING)
    assert (planned["plan.resting"].before, planned["plan.resting"].after) == (None, RESTING)
    assert planned["plan.snapshot_id"].after == "s-1"
    assert "plan.delete_branch" not in planned  # what is not so is not told
    ended = changed((*LEAVING, locked, removal_abandoned))
    assert ended["plan.mode"] == Change(field="plan.mode", before="safe", gone=True)
    assert all(each.gone for each in ended.values())


def test_what_has_only_grown_is_told_by_what_has_come() -> None:
    (grown,) = [each for each in told(REMOVED)[-1].changes if each.field == "editions"]
    assert grown == Change(field="editions", added=("1 (snapshot s-1)",))
    assert changed(RETURNED[:-1])["rejoined"].after is True


def test_a_lane_whose_tree_is_gone_is_nowhere() -> None:
    assert (changed(REAPED)["path"].before, changed(REAPED)["path"].after) == (RESTING, None)


def test_another_directory_at_the_same_place_is_a_difference() -> None:
    lane = fold(CREATED)
    assert isinstance(lane, Active)
    place = replace(lane.place, identity=replace(lane.place.identity, inode=7))
    (found,) = changes(lane, replace(lane, place=place))
    assert (found.field, found.after) == ("directory", "inode 7 of device 64, born 5")


def test_what_only_a_newer_program_knows_is_told_as_such_and_nothing_is_owed_after_it() -> None:
    foreign = Foreign(tag="removal.moved@9", why="it is newer", told={"path": "/elsewhere"})
    step = told((*LEAVING, foreign))[-1]
    assert isinstance(step.before, Leaving)
    assert isinstance(step.after, Blocked)
    assert (step.by, step.ran, step.owes) == ("unknown", None, None)
    assert isinstance(step.owed, Lock)


def test_nothing_is_read_ahead_but_one_event() -> None:
    taken = 0

    def counted() -> Iterable[Envelope]:
        nonlocal taken
        for each in log(REMOVED):
            taken += 1
            yield each

    steps = replay(counted())
    for number in range(1, 4):
        next(steps)
        assert taken == number + 1


def test_no_event_is_no_step() -> None:
    assert told(()) == []
