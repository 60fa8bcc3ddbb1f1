"""The history: one sentence per event, for people."""

import pytest
from msgspec.structs import replace

from domain.events import BranchDropped, BranchFreed, BranchRejoined, Fact, SweepFinished, SweptLane
from projections import history
from projections.history import sentence
from tests.domain.facts import (
    BRANCH,
    EXAMPLES,
    HEAD,
    LANE,
    adopted,
    creation_planned,
    forced_planned,
    quarantined,
    reaped,
    registered,
    removal_planned,
    restored,
    snapshotted,
    sweep_finished,
    sweep_planned,
    unexplained,
)
from tests.domain.lives import CREATED, LIVES
from tests.projections.folded import rows, told


@pytest.mark.parametrize("fact", EXAMPLES, ids=lambda fact: fact.TAG)
def test_every_fact_has_a_sentence_of_its_own(fact: Fact) -> None:
    assert sentence(fact) != fact.TAG
    assert sentence(fact) == sentence(fact).strip()


def test_no_two_facts_share_a_sentence() -> None:
    sentences = [sentence(fact) for fact in EXAMPLES]
    assert len(set(sentences)) == len(sentences)


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (registered, "the repository /srv/shop/.git came under our care"),
        (creation_planned, "planned on branch fix-login from refs/heads/main (aaaaaaaaaaaa)"),
        (adopted, "adopted /srv/shop/.laneyard/worktrees/fix-login as it is"),
        (snapshotted, "snapshot s-1 verified: 3 entries, 120 bytes, at refs/laneyard/snapshots/s-1"),
        (removal_planned, "removal 1 planned (safe): work kept in snapshot s-1"),
        (
            forced_planned,
            "removal 1 planned (force): work kept in snapshot s-1, 2 paths consented to",
        ),
        (
            replace(removal_planned, snapshot_id=None),
            "removal 1 planned (safe): nothing to keep",
        ),
        (BranchFreed(held="HEAD has moved"), "the branch is still held: HEAD has moved"),
        (BranchDropped(branch=BRANCH, at=HEAD, kept="it has moved"), "branch fix-login kept: it has moved"),
        (BranchDropped(branch=BRANCH, at=HEAD), "branch fix-login deleted"),
        (quarantined, "in quarantine as edition 1"),
        (BranchRejoined(branch=None), "detached: as it was"),
        (BranchRejoined(branch=None, why="it has moved on"), "detached: it has moved on"),
        (restored, "edition 1 restored from the quarantine"),
        (replace(restored, differences=("a", "b")), "edition 1 restored from the quarantine; a; b"),
        (unexplained, "nothing more is deleted, a person has to look: 1 entry is nowhere else"),
        (reaped, "edition 1 reaped: 3 entries, 120 bytes"),
        (sweep_planned, "a sweep of /srv/shop/.git found 1 lane due"),
        (replace(sweep_planned, repository=None, lanes=()), "a sweep found 0 lanes due"),
        (sweep_finished, "the sweep has seen to 1 lane"),
        (
            SweepFinished(results=(SweptLane(lane=LANE, state="reaping", code="residual", reason="busy"),)),
            "the sweep has seen to 1 lane, 1 of them not to the end",
        ),
    ],
)
def test_a_sentence_says_what_happened(fact: Fact, words: str) -> None:
    assert sentence(fact) == words


def test_bytes_that_are_not_text_are_shown_as_such() -> None:
    assert sentence(replace(registered, common="/srv/caf%E9/.git")) == (
        "the repository /srv/caf\ufffd/.git came under our care"
    )


def test_every_event_has_its_row_and_a_repositorys_has_no_lane() -> None:
    log = told(("repository-/srv/shop/.git", (registered,)), (f"lane-{LANE}", CREATED))
    assert [row[:3] for row in log.table(history.TABLE)] == [
        (1, None, "2026-03-01T09:00:01Z"),
        (2, LANE, "2026-03-01T09:00:02Z"),
        (3, LANE, "2026-03-01T09:00:03Z"),
        (4, LANE, "2026-03-01T09:00:04Z"),
    ]


@pytest.mark.parametrize("facts", LIVES.values(), ids=LIVES)
def test_a_life_is_told_in_order(facts: tuple[Fact, ...]) -> None:
    assert [row[-1] for row in rows(history.TABLE, LANE, facts)] == [sentence(fact) for fact in facts]
