"""How often a step is tried again, and after which pause."""

import pytest

from domain.events import Fact, RemovalStepFailed, RestoreStepFailed, TreeResisted
from domain.lane import fold, pending
from domain.retries import ATTEMPTS, is_final, pause
from domain.states import NAMES, Nowhere
from tests.domain.facts import (
    HOME,
    RESTING,
    creation_planned,
    explained,
    rebuild_planned,
    rebuilt,
    snapshot_planned,
    step_failed,
)
from tests.domain.lives import CREATED, LEAVING, LIVES, REAPED, REAPING, REBUILD_FAILED, UNDOING
from tests.given import given

PAUSES = (0.1, 0.4, 1.6)  # seconds


def removal(attempt: int, *, final: bool = False) -> Fact:
    return RemovalStepFailed(step="lock", attempt=attempt, code="locked", reason="held", final=final)


def restore(attempt: int) -> Fact:
    return RestoreStepFailed(step="apply", attempt=attempt, code="locked", reason="held", final=False)


def deletion(path: str, attempt: int, *, final: bool = False) -> Fact:
    return TreeResisted(path=path, step="destroy", attempt=attempt, reason="busy", left=(), final=final)


def test_what_may_pass_is_tried_a_few_times_and_what_will_not_once() -> None:
    assert [is_final(attempt, transient=True) for attempt in (1, 2, 3, 4)] == [False, False, False, True]
    assert is_final(1, transient=False)


@pytest.mark.parametrize(("attempt", "seconds"), [*enumerate(PAUSES, 1)])
def test_the_pauses_grow(attempt: int, seconds: float) -> None:
    assert pause(given(*LEAVING, removal(attempt)).lane) == pytest.approx(seconds)


def test_all_the_pauses_of_a_step_together_take_some_two_seconds() -> None:
    assert len(PAUSES) == ATTEMPTS - 1
    assert sum(PAUSES) == pytest.approx(2.1)


@pytest.mark.parametrize(
    "facts",
    [
        (creation_planned, step_failed),
        (*CREATED, snapshot_planned, step_failed),
        (*LEAVING, removal(1)),
        (*REAPED, rebuild_planned, rebuilt, restore(1)),
        (*REAPING, explained, deletion(RESTING, 1)),
        (*UNDOING, explained, deletion(HOME, 1)),
        (*REBUILD_FAILED, explained, deletion(HOME, 1)),
    ],
)
def test_every_chapter_pauses(facts: tuple[Fact, ...]) -> None:
    assert pending(fold(facts)) is not None
    assert pause(fold(facts)) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "facts",
    [(*LEAVING, removal(1, final=True)), (*REAPING, explained, deletion(RESTING, ATTEMPTS, final=True))],
)
def test_there_is_no_pause_before_another_step_nor_after_the_last(facts: tuple[Fact, ...]) -> None:
    assert pause(given(*facts).lane) == 0


def test_a_lane_in_which_nothing_has_failed_is_not_kept_waiting() -> None:
    lanes = {fold(facts) for facts in LIVES.values()} | {Nowhere()}
    assert {type(lane) for lane in lanes} <= set(NAMES)
    assert {pause(lane) for lane in lanes} == {0.0}
