"""The open journals: what a start has to drive on."""

import pytest

from domain.envelope import stream_of
from domain.events import Fact
from projections import journals
from tests.domain.facts import (
    LANE,
    creation_planned,
    locked,
    moved,
    rebuild_planned,
    rebuilt,
    registered,
    retried,
    snapshot_planned,
)
from tests.domain.lives import CREATED, LEAVING, LIVES, REAPED, REAPING, REMOVED, RESIDUAL, UNDOING
from tests.projections.folded import rows, told


@pytest.mark.parametrize(
    ("facts", "state", "step", "since"),
    [
        ((creation_planned,), "opening", "Checkout", 1),
        (UNDOING, "opening", "Explain", 1),
        ((*CREATED, snapshot_planned), "snapshotting", "Capture", 4),
        (LEAVING, "leaving", "Lock", 6),
        ((*LEAVING, locked, moved), "leaving", "FreeBranch", 6),
        (REAPING, "reaping", "Explain", 11),
        ((*RESIDUAL, retried), "reaping", "Destroy", 14),
        ((*REAPED, rebuild_planned, rebuilt), "returning", "Apply", 15),
    ],
)
def test_a_journal_is_open_while_something_is_owed(
    facts: tuple[Fact, ...], state: str, step: str, since: int
) -> None:
    assert rows(journals.TABLE, LANE, facts) == [(stream_of(LANE), state, step, since)]


@pytest.mark.parametrize("facts", [(), CREATED, REMOVED, REAPED, RESIDUAL])
def test_a_journal_is_closed_when_the_lane_rests(facts: tuple[Fact, ...]) -> None:
    assert rows(journals.TABLE, LANE, facts) == []


@pytest.mark.parametrize("facts", LIVES.values(), ids=LIVES)
def test_every_whole_life_ends_with_its_journal_closed(facts: tuple[Fact, ...]) -> None:
    assert rows(journals.TABLE, LANE, facts) == []


def test_each_lane_has_a_journal_of_its_own() -> None:
    log = told(("lane-b", LEAVING), ("lane-a", (creation_planned,)), ("lane-c", CREATED))
    assert log.table(journals.TABLE) == [
        ("lane-a", "opening", "Checkout", 7),
        ("lane-b", "leaving", "Lock", 6),
    ]


def test_a_repository_owes_nothing() -> None:
    assert told(("repository-/srv/shop/.git", (registered,))).table(journals.TABLE) == []
