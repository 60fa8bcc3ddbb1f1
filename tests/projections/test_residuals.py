"""The residuals: directories of ours that a deletion could not finish, until it does."""

import pytest
from msgspec.structs import replace

from domain.envelope import stream_of
from domain.events import Fact
from projections import residuals
from tests.domain.facts import (
    LANE,
    RESTING,
    creation_undone,
    deregistered,
    destroyed,
    explained,
    reaped,
    resisted,
    restore_abandoned,
    restore_planned,
    retried,
    returned,
    unexplained,
)
from tests.domain.lives import LIVES, REAPING, REBUILD_FAILED, RESIDUAL, UNDOING
from tests.projections.folded import rows


def test_what_resists_is_a_residual_since_it_first_did() -> None:
    facts = (*REAPING, explained, resisted, replace(resisted, attempt=2, reason="still busy"))
    assert rows(residuals.TABLE, LANE, facts) == [
        (stream_of(LANE), RESTING, "destroy", "still busy", 2, "2026-03-01T09:00:13Z")
    ]


def test_a_retry_does_not_make_it_go_away() -> None:
    assert len(rows(residuals.TABLE, LANE, (*RESIDUAL, retried))) == 1


STUCK = (explained, resisted)


@pytest.mark.parametrize(
    "facts",
    [
        (*REAPING, *STUCK, destroyed),
        (*REAPING, explained, destroyed, replace(resisted, step="deregister"), reaped),
        (*UNDOING, explained, destroyed, replace(resisted, step="deregister"), deregistered, creation_undone),
        (*REBUILD_FAILED, explained, destroyed, replace(resisted, step="deregister"), restore_abandoned),
    ],
)
def test_a_residual_is_gone_when_the_deletion_has_ended(facts: tuple[Fact, ...]) -> None:
    assert rows(residuals.TABLE, LANE, facts) == []


def test_what_goes_to_review_is_a_persons_and_no_residual() -> None:
    assert rows(residuals.TABLE, LANE, (*REAPING, *STUCK, unexplained)) == []
    assert rows(residuals.TABLE, LANE, (*REAPING, *STUCK, unexplained, restore_planned, returned)) == []


@pytest.mark.parametrize("facts", LIVES.values(), ids=LIVES)
def test_only_the_life_that_ends_with_one_has_a_residual(facts: tuple[Fact, ...]) -> None:
    assert len(rows(residuals.TABLE, LANE, facts)) == (facts is LIVES["residual"])
