"""What the fold takes for granted so that it can be fast, held against the slow way."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from domain import adoption, creation, formats, reaping, removal, restore, snapshots
from domain.lane import INITIAL, evolve
from domain.states import Nowhere
from projections.claims import claims
from tests.domain.facts import EXAMPLES
from tests.domain.lives import LIVES

if TYPE_CHECKING:
    from domain.events import Fact
    from domain.states import Lane

CHAPTERS = (adoption, creation, snapshots, removal, restore, reaping, formats)


def states(facts: tuple[Fact, ...]) -> list[Lane]:
    found = [INITIAL]
    for fact in facts:
        found.append(evolve(found[-1], fact))
    return found


@pytest.mark.parametrize("life", LIVES)
def test_only_the_chapters_of_a_state_change_it(life: str) -> None:
    for lane in states(LIVES[life]):
        for fact in EXAMPLES:
            tried = (chapter.evolve(lane, fact) for chapter in CHAPTERS)
            changed = next((after for after in tried if after is not lane), lane)
            assert evolve(lane, fact) == changed


@pytest.mark.parametrize("life", LIVES)
def test_within_a_state_claims_change_only_with_the_record(life: str) -> None:
    for lane in states(LIVES[life]):
        for before, after in ((lane, evolve(lane, fact)) for fact in EXAMPLES):
            if (
                type(before) is type(after)
                and not isinstance(before, Nowhere)
                and not isinstance(after, Nowhere)
            ):
                assert before.record is not after.record or claims(before) == claims(after)


def test_the_lives_hold_and_let_go_of_claims() -> None:
    changes = [
        (claims(before), claims(after)) for life in LIVES.values() for before, after in pairwise(states(life))
    ]
    assert any(before < after for before, after in changes)
    assert any(before > after for before, after in changes)
