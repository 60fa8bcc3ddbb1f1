"""Journals of every format that was ever written are read, and driven on from wherever they were left."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from adapters.store.codec import decode
from domain.effects import Effect, Move, NotDone, Outcome
from domain.errors import CannotHold, EvidenceUnavailable, IdentityChanged, NotSnapshotted, UnknownIgnored
from domain.events import (
    CreationFailed,
    CreationPlanned,
    Fact,
    ReapingPlanned,
    RemovalAbandoned,
    RemovalPlanned,
    RestorePlanned,
)
from domain.evidence import Identity, Obstacle, Seen, Unknown
from domain.formats import JOURNALS, Foreign, LaneBlocked
from domain.lane import INITIAL, decide, evolve, fold, learn, pending
from domain.states import Active, Blocked, Lane, Leaving, Quarantined, name
from domain.strictness import require_nothing_to_lose
from projections.claims import claims
from projections.lanes import where
from tests.domain.facts import (
    BASE,
    BRANCH,
    CLEAN,
    COMMON,
    LANE,
    MODULES,
    PLACE,
    RESTING,
    SECRET,
    removal_planned,
    restored,
)
from tests.domain.facts import HOME as TREE
from tests.domain.lives import CREATED, LIVES
from tests.domain.worlds import answers, requests

FOLDER = Path(__file__).parents[1] / "golden/streams"
HOME = "/srv/work"
# What a phase is, after each event of the journal: the state, and what is owed in it.
PHASES: dict[str, tuple[tuple[str, str | None], ...]] = {
    "creation-1": (("opening", "Checkout"), ("opening", "Unlock"), ("active", None)),
    "creation-1-undone": (
        ("opening", "Checkout"),
        ("opening", "Explain"),
        ("opening", "Destroy"),
        ("opening", "Deregister"),
        ("opening", "DropBranch"),
        ("failed", None),
    ),
    "removal-3": (
        ("leaving", "Lock"),
        ("leaving", "Move"),
        ("leaving", "FreeBranch"),
        ("leaving", "FreeBranch"),
        ("quarantined", None),
    ),
    "removal-4": (
        ("leaving", "Lock"),
        ("leaving", "Move"),
        ("leaving", "FreeBranch"),
        ("leaving", "DropBranch"),
        ("leaving", "FreeBranch"),
        ("quarantined", None),
    ),
    "restore-1-quarantine": (
        ("returning", "Move"),
        ("returning", "Rejoin"),
        ("returning", "Unlock"),
        ("active", None),
    ),
    "restore-1-snapshot": (
        ("returning", "Checkout"),
        ("returning", "Apply"),
        ("returning", "Rejoin"),
        ("returning", "Unlock"),
        ("active", None),
    ),
    "reaping-1": (
        ("reaping", "Explain"),
        ("reaping", "Destroy"),
        ("reaping", "Deregister"),
        ("reaped", None),
    ),
}
# What is written down by the last two events together was one transaction: no start ever finds it half done.
TOGETHER = ("removal.branch-freed@1", "removal.branch-dropped@1")
SUMS = {
    "creation-1": "204ff5948c41dcbcd69c1491a41c85d00d7cb5c703fa2c32da4bedfca7360d8d",
    "creation-1-undone": "adb439bf28cccbb4cd4023ac016e68b4738c1b45aa08b8ea127a815aec7bc917",
    "reaping-1": "616a91651ce2041e0fbf7d6fd27e4a4c39761dde7c21298afaeb2578d33c58c3",
    "removal-3": "15e63133bcbcd7c1f664d7f8ef94da8d2aaf0e52e011424126e2769f723bb7bf",
    "removal-4": "f82ec293d5271af12d3dfc1b73d44e60751fa00116e88e10fd14747b1b239905",
    "restore-1-quarantine": "68dc2c103b777fec5a42374afaea687ea14e60eb5b215e26069ed53c6aca64e0",
    "restore-1-snapshot": "cba1607d5e3b119f80f577b12ef77a9d2aedd6191096088f6a5ee8af80db3664",
}


def told(stream: str) -> tuple[tuple[str, Fact], ...]:
    """Returns the tags and the facts of a golden stream, as if it had been written below HOME."""
    text = (FOLDER / f"{stream}.jsonl").read_text(encoding="utf-8").replace("{home}", HOME)
    events = []
    for position, line in enumerate(text.splitlines(), 1):
        row = json.loads(line)
        state = json.dumps(row["state"]).encode()
        event = decode((position, row["stream"], row["version"], row["type"], state))
        assert event.version == position
        events.append((event.type, event.fact))
    return tuple(events)


def begins(facts: tuple[Fact, ...]) -> int:
    """Returns where the last journal begins."""
    plans = (CreationPlanned, RemovalPlanned, RestorePlanned, ReapingPlanned)
    return max(number for number, fact in enumerate(facts) if isinstance(fact, plans))


def phases() -> list[tuple[str, int]]:
    return [(stream, phase) for stream, known in PHASES.items() for phase in range(len(known))]


def left_at(stream: str, phase: int) -> tuple[Lane, tuple[Fact, ...]]:
    """Returns the lane as a start finds it after that many events of the journal, and what came then."""
    facts = tuple(fact for _, fact in told(stream))
    end = begins(facts) + phase + 1
    return fold(facts[:end]), facts[end:]


def driven(lane: Lane, *first: Outcome) -> tuple[Lane, tuple[Fact, ...], tuple[Effect, ...]]:
    """Drives a lane to its rest where all goes well, after the first outcomes, which are given."""
    facts, effects, given = list[Fact](), list[Effect](), iter(first)
    while (effect := pending(lane)) is not None:
        learnt = learn(lane, next(given, None) or answers(effect)[0])
        lane = fold(learnt, lane)
        facts += learnt
        effects.append(effect)
    return lane, tuple(facts), tuple(effects)


def _trouble(rest: tuple[Fact, ...]) -> Iterator[Outcome]:
    """Yields the failure that the journal tells of next, if it does."""
    if rest and isinstance(failed := rest[0], CreationFailed):
        yield NotDone(
            step=failed.step,
            code=failed.code,
            reason=failed.reason,
            left=failed.left,
            branch_made=failed.branch_made,
        )


def _owed(lane: Lane) -> Effect:
    effect = pending(lane)
    assert effect is not None
    return effect


def test_every_golden_stream_is_as_it_was_written() -> None:
    found = {each.stem: hashlib.sha256(each.read_bytes()).hexdigest() for each in FOLDER.iterdir()}
    assert found == SUMS


def test_every_golden_stream_is_stopped_at_every_phase() -> None:
    assert set(PHASES) == set(SUMS)
    for stream, known in PHASES.items():
        facts = tuple(fact for _, fact in told(stream))
        assert len(facts) - begins(facts) == len(known)


@pytest.mark.parametrize(("stream", "phase"), phases())
def test_a_journal_that_was_left_in_a_phase_owes_what_follows_and_ends_as_it_did(
    stream: str, phase: int
) -> None:
    lane, rest = left_at(stream, phase)
    effect = pending(lane)
    assert (name(lane), type(effect).__name__ if effect else None) == PHASES[stream][phase]
    end, facts, _ = driven(lane, *_trouble(rest))
    tag = told(stream)[-len(rest) - 1][0]
    again = 1 if tag in TOGETHER and len(rest) == 1 else 0  # the step before the milestone, once more
    assert [fact.TAG for fact in facts[again:]] == [fact.TAG for fact in rest]
    assert name(end) == name(left_at(stream, len(PHASES[stream]) - 1)[0])


@pytest.mark.parametrize("phase", range(5))
def test_a_removal_of_format_3_rests_on_nothing_that_it_has_not_recorded(phase: int) -> None:
    lane, _ = left_at("removal-3", phase)
    end, _, effects = driven(lane)
    assert isinstance(end, Quarantined)
    assert (end.consent, end.warnings) == (None, ())
    assert (end.record.editions[-1].snapshot_id, end.record.snapshots) == (None, ())
    assert "DropBranch" not in {type(each).__name__ for each in effects}
    assert [each.strict for each in effects if isinstance(each, Move)] == [True] * (phase < 2)


@pytest.mark.parametrize("phase", [0, 1])
def test_a_removal_of_format_3_leads_back_from_a_tree_that_holds_more_than_its_commit(phase: int) -> None:
    lane, _ = left_at("removal-3", phase)
    assert isinstance(lane, Leaving)
    home = lane.plan.place
    if phase == 0:
        lane = fold(learn(lane, answers(_owed(lane))[0]), lane)
    objection = NotDone(step="move", code="not_snapshotted", reason="there is work")
    end, facts, effects = driven(lane, objection)
    assert isinstance(end, Active)
    assert end.place == home
    assert [type(each).__name__ for each in effects] == ["Move", "Unlock"]
    assert facts[-1] == RemovalAbandoned(edition=1, code="not_snapshotted", reason="there is work")


def test_only_a_removal_of_format_3_looks_again_before_it_moves() -> None:
    _, _, effects = driven(left_at("removal-4", 0)[0])
    assert [each.strict for each in effects if isinstance(each, Move)] == [False]


@pytest.mark.parametrize(
    ("seen", "refusal"),
    [
        (replace(CLEAN, changed=("a",)), NotSnapshotted),
        (replace(CLEAN, untracked=("a",)), NotSnapshotted),
        (replace(CLEAN, ignored=(SECRET,)), UnknownIgnored),
        (replace(CLEAN, ignored=(MODULES,)), UnknownIgnored),
        (replace(CLEAN, obstacles=(Obstacle("socket", "s"),)), CannotHold),
        (replace(CLEAN, identity=Identity(1, 2)), IdentityChanged),
        (replace(CLEAN, ignored=Unknown("no such luck")), EvidenceUnavailable),
    ],
)
def test_a_strict_removal_is_refused_over_anything_in_the_tree_but_its_commit(
    seen: Seen, refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        require_nothing_to_lose(PLACE, seen)


def test_a_strict_removal_takes_a_tree_that_is_its_commit() -> None:
    require_nothing_to_lose(PLACE, CLEAN)


# What only a newer program knows ----------------------------------------------------------------------------

NEWER = Foreign(tag="removal.planned@5", why="the log holds what is new", told={"resting": "/new/rest"})
PREFIXES = [facts[:length] for facts in LIVES.values() for length in range(len(facts) + 1)]
LANES = {type(lane): lane for lane in map(fold, PREFIXES)}


@pytest.mark.parametrize("lane", LANES.values(), ids=lambda lane: type(lane).__name__)
def test_a_fact_that_is_not_known_blocks_a_lane_in_any_state(lane: Lane) -> None:
    blocked = evolve(lane, NEWER)
    assert isinstance(blocked, Blocked)
    assert name(blocked) == "blocked"
    assert pending(blocked) is None
    assert claims(blocked) >= claims(lane)
    for outcome in (NotDone(step="move", code="io_failed", reason=""), *answers(_owed(fold(CREATED[:1])))):
        assert learn(blocked, outcome) == ()
    for command in requests(lane):
        with pytest.raises(LaneBlocked) as caught:
            decide(blocked, command)
        assert caught.value.code == "lane_blocked"
        assert str(caught.value).endswith("Update Laneyard.")


@pytest.mark.parametrize("plan", JOURNALS, ids=lambda plan: plan.TAG)
@pytest.mark.parametrize("number", [0, 2, 99])
def test_a_journal_format_that_is_not_known_blocks_the_lane(plan: type[Fact], number: int) -> None:
    life = next(facts for facts in LIVES.values() if plan in map(type, facts[:-1]))
    at = [type(fact) for fact in life].index(plan)
    other = replace(life[at], journal_format=number)
    lane = fold((*life[:at], other, *life[at + 1 :]))
    assert isinstance(lane, Blocked)
    what, known = JOURNALS[plan]
    formats = " and ".join(map(str, known))
    assert lane.reason == (
        f"a {what} was planned in journal format {number}, and this program knows {formats}"
    )
    assert lane.of == fold(life[:at])


def test_a_blocked_lane_stays_so_and_holds_every_name_it_is_told_of() -> None:
    before = fold(CREATED)
    lane = fold((NEWER, replace(restored, path=f"{TREE}-2", branch="refs/heads/other")), before)
    assert isinstance(lane, Blocked)
    assert lane.of == before
    assert claims(lane) == claims(before) | {
        (COMMON, "path", "/new/rest"),
        (COMMON, "path", f"{TREE}-2"),
        (COMMON, "branch", "refs/heads/other"),
    }
    assert where(lane) == TREE


def test_a_lane_of_which_not_even_the_beginning_is_known_holds_the_names_that_it_tells() -> None:
    told = {"lane": LANE, "repository": COMMON, "name": "Fix", "slug": "fix", "branch": BRANCH}
    more = {
        "place": {"path": TREE, "admin": "/a"},
        "base_commit": BASE,
        "shape": [{"path": 2}],
        "owner": 7,
    }
    lane = evolve(INITIAL, Foreign(tag="creation.planned@2", why="newer", told=told | more))
    assert isinstance(lane, Blocked)
    assert (lane.record.lane, lane.record.slug, lane.record.owner) == (LANE, "fix", "manual")
    assert claims(lane) == {(COMMON, "slug", "fix"), (COMMON, "path", TREE), (COMMON, "branch", BRANCH)}
    assert where(lane) == TREE


def test_a_plan_that_says_nothing_new_beside_its_format_holds_both_places() -> None:
    lane = fold((*CREATED, replace(removal_planned, journal_format=5)))
    assert {value for _, kind, value in claims(lane) if kind == "path"} == {TREE, RESTING}
