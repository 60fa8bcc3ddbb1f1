"""What a replay and a dry drive say: words for everything, safely shown, and nothing done."""

from __future__ import annotations

import hashlib
import json
import re
import tracemalloc
from collections import deque
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
import trio
from msgspec.structs import replace

from adapters.api import effects, outcomes, replaying
from adapters.api.replaying import BeforeTheLane
from adapters.store.journal import Journal
from adapters.store.reader import Reader
from domain.effects import Effect
from domain.envelope import stream_of
from domain.errors import NoSuchLane, NoSuchPosition
from domain.events import CreationFailed, RemovalStepFailed, SnapshotFailed, SnapshotPlanned, TreeResisted
from domain.formats import Foreign
from domain.lane import fold, pending
from domain.retries import ATTEMPTS
from projections.replay import DECIDED, replay
from tests.adapters.store.lives import entry
from tests.domain.facts import EXAMPLES, LANE, creation_planned, locked
from tests.domain.lives import CREATED, IN_REVIEW, LEAVING, LIVES, REAPED, REMOVED
from tests.projections.folded import event
from tests.sagas.crashes import stop
from tests.sagas.scenarios import dirty
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from domain.events import Fact

OF_LANES = [each for each in EXAMPLES if not each.TAG.startswith(("sweep.", "repository."))]
HOSTILE = "/srv/\x1b[31mred\r\ngreen%FF\u202e"


class Clock:
    """A clock in which every reading is a later one."""

    def __init__(self) -> None:
        self._ticks = 0

    def __call__(self) -> str:
        self._ticks += 1
        return f"2026-01-31T12:{self._ticks // 60_000_000:02}:00.{self._ticks % 1_000_000:06}Z"


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    return bytes(tmp_path / "journal.db")


def written(path: bytes, facts: Iterable[Fact]) -> Reader:
    with closing(Journal(path, Clock())) as journal:
        journal.submit(entry("other", replace(creation_planned, lane="other", slug="other"))).result()
        for each in [journal.submit(entry(LANE, fact)) for fact in facts]:
            each.result()
    return Reader(path)


def texts(facts: Iterable[Fact]) -> list[str]:
    log = (event(at, stream_of(LANE), at, fact) for at, fact in enumerate(facts, 1))
    return [replaying.step_text(each) for each in replay(log)]


def owed() -> Iterator[Effect]:
    for facts in LIVES.values():
        for at in range(len(facts)):
            effect = pending(fold(facts[:at]))
            if effect is not None:
                yield effect


def test_every_effect_has_words_and_a_first_look() -> None:
    found = {type(each): each for each in owed()}
    assert set(found) == set(Effect.__subclasses__())
    assert len({effects.words(each) for each in found.values()}) == len(found)
    assert len({effects.first_look(each) for each in found.values()}) == len(found)


@pytest.mark.parametrize(
    "fact", [each for each in OF_LANES if not isinstance(each, DECIDED)], ids=lambda fact: fact.TAG
)
def test_every_outcome_says_what_was_seen(fact: Fact) -> None:
    assert outcomes.seen(fact)


@pytest.mark.parametrize("facts", LIVES.values(), ids=LIVES)
def test_what_is_printed_is_what_is_encoded(facts: tuple[Fact, ...]) -> None:
    log = [event(at, stream_of(LANE), at, fact) for at, fact in enumerate(facts, 1)]
    for step in replay(log):
        document, text = json.loads(replaying.step_json(step)), replaying.step_text(step)
        assert replaying.step_json(step).count(b"\n") == 1
        assert text.endswith("\n\n")
        assert "\n\n" not in text[:-2]
        assert document["told"] in text
        assert document["state"] in text
        assert document["saw"] is None or document["saw"] in text
        for effect in (document["pending_before"], document["pending_after"]):
            assert effect is None or f"{effect['step']}: {effect['words']}" in text
        for change in document["changes"]:
            assert change["field"].partition(".")[0] in text


def test_a_step_is_told_in_this_order() -> None:
    text = texts((*LEAVING, locked))[-1]
    assert re.sub(r"(?m)^ +", "", text).splitlines() == [
        "7  2026-03-01 09:00:07Z UTC  removal.locked@1  outcome",
        "ran       Lock: lock the registration /srv/shop/.git/worktrees/fix-login with "
        f"'laneyard: edition 1 of {LANE}'",
        "saw       the registration has our lock",
        "learned   the registration is locked",
        "state     leaving",
        "changed   locked: no -> yes",
        "owes now  Move: move the tree from /srv/shop/.laneyard/worktrees/fix-login to "
        "/srv/shop/.laneyard/quarantine/fix-login-1",
        "who       uid 1000, pid 42, tests, for command command-1",
        "",
    ]


def test_a_failure_is_told_with_its_attempts_and_pauses() -> None:
    failed = [
        RemovalStepFailed(step="lock", attempt=at, code="locked", reason="it is held", final=False)
        for at in (1, 2)
    ]
    *_, first, second, then = texts((*LEAVING, *failed, locked))
    assert "saw       it did not take: it is held [locked]\n" in first
    assert f"(attempt 2 of {ATTEMPTS}, after 0.1 s)\n" in first
    assert f"(attempt 3 of {ATTEMPTS}, after 0.4 s)\n" in second
    assert f"(attempt 3 of {ATTEMPTS})\n" in then


def test_what_only_a_newer_program_knows_is_told_as_it_is_and_blocks_the_lane() -> None:
    foreign = Foreign(tag="removal.moved@9", why="this program knows no removal.moved@9", told={"to": "/q"})
    log = [event(at, stream_of(LANE), at, fact) for at, fact in enumerate((*LEAVING, foreign), 1)]
    step = deque(replay(log), maxlen=1).pop()
    document, text = json.loads(replaying.step_json(step)), replaying.step_text(step)
    assert (document["by"], document["state"], document["fact"]) == ("unknown", "blocked", {"to": "/q"})
    assert re.search(r"\n +told +this program knows no removal\.moved@9: update Laneyard\n", text)
    assert re.search(
        r"\n +owes now +nothing: the lane is blocked until Laneyard is updated \(this prog", text
    )


def test_hostile_names_neither_move_the_cursor_nor_break_a_line() -> None:
    plan = replace(creation_planned, name=HOSTILE, path=HOSTILE, branch=f"refs/heads/{HOSTILE}")
    failed = CreationFailed(step="checkout", code="x", reason=HOSTILE, left=None, branch_made=True)
    for text in texts((plan, failed)):
        assert all(line.isprintable() for line in text.splitlines())
        assert "\x1b" not in text
        assert "\u202e" not in text
    lines = [len(text.splitlines()) for text in texts((creation_planned, replace(failed, reason="plain")))]
    assert [len(text.splitlines()) for text in texts((plan, failed))] == lines


def test_it_ends_at_a_position_and_refuses_those_that_are_none(path: bytes) -> None:
    with written(path, REMOVED) as reader:
        assert replaying.last(reader, LANE, 4)[1].version == 3
        assert [each.event.position for each in replaying.steps(reader, LANE, 4)] == [2, 3, 4]
        with pytest.raises(BeforeTheLane, match="first event is at 2"):
            replaying.last(reader, LANE, 1)
        with pytest.raises(BeforeTheLane):
            replaying.last(reader, LANE, -5)
        with pytest.raises(NoSuchPosition):
            replaying.last(reader, LANE, len(REMOVED) + 2)
        with pytest.raises(NoSuchLane):
            replaying.last(reader, "nobody", None)


def test_a_position_of_another_lane_is_the_lane_as_it_was_then(path: bytes) -> None:
    with written(path, CREATED) as reader:
        answer = replaying.dry_drive(reader, "other", 3)
    assert (answer.document.position, answer.document.state) == (1, "opening")  # type: ignore[attr-defined]


def drive(path: bytes, facts: Iterable[Fact]) -> Any:  # noqa: ANN401 (an answer)
    with written(path, facts) as reader:
        return replaying.dry_drive(reader, LANE)


def test_a_dry_drive_says_what_is_owed_and_what_would_be_looked_at(path: bytes) -> None:
    answer = drive(path, (*LEAVING, locked))
    assert answer.text.splitlines()[1:] == [
        "  owes       Move: move the tree from /srv/shop/.laneyard/worktrees/fix-login to "
        "/srv/shop/.laneyard/quarantine/fix-login-1",
        "  looks      first whether the directory with inode 1001 is at "
        "/srv/shop/.laneyard/quarantine/fix-login-1 already, or where it was",
        f"  tries      attempt 1 of {ATTEMPTS}: what fails and may pass by itself is tried again, "
        "anything else is not",
        "  when       at once, when a command that drives on, or a service, starts",
        "nothing was done: this was a dry drive",
    ]
    assert (answer.document.pending.step, answer.document.why) == ("Move", None)


def test_a_dry_drive_counts_what_has_failed(path: bytes) -> None:
    failed = RemovalStepFailed(step="lock", attempt=ATTEMPTS - 1, code="locked", reason="held", final=False)
    answer = drive(path, (*LEAVING, failed))
    assert (answer.document.attempt, answer.document.pause) == (ATTEMPTS, 1.6)
    assert f"attempt {ATTEMPTS} of {ATTEMPTS}: if it fails, it is not tried again" in answer.text


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (REMOVED, "it is at rest"),
        (REAPED, "it is at rest"),
        (IN_REVIEW, "it waits for a person (1 entry is nowhere else)"),
        (
            (
                *REAPED[:-2],
                TreeResisted(path="/q", step="destroy", attempt=4, reason="busy", left=(), final=True),
            ),
            "the deletion was given up after 4 attempts; 'laneyard sweep --apply' tries it again",
        ),
    ],
)
def test_a_lane_that_owes_nothing_says_why(path: bytes, facts: tuple[Fact, ...], why: str) -> None:
    answer = drive(path, facts)
    assert (answer.document.pending, answer.document.looks_first, answer.document.why) == (None, None, why)
    assert answer.text.endswith(f"\nowes nothing: {why}")


@pytest.mark.slow
def test_after_a_crash_it_says_what_recovery_then_does_and_changes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def prepare() -> None:
        async with world.open() as opened:
            await dirty(opened)

    trio.run(prepare)
    stop(world, lambda opened: opened.remove(), 12, dies=True)
    store, before = tmp_path / "state" / "journal.db", len(world.tags())
    digest = hashlib.sha256(store.read_bytes()).digest()
    with Reader(world.settings.store) as reader:
        (row,) = [each for each in reader.lanes() if each["slug"] == "work"]
        said: Any = replaying.dry_drive(reader, str(row["id"])).document
    assert hashlib.sha256(store.read_bytes()).digest() == digest
    assert said.pending.step == row["owed"]

    assert trio.run(world.complaints) == []  # which opens the yard, and so drives on
    with Reader(world.settings.store) as reader:
        end = replaying.last(reader, str(row["id"]), None)[1].position
        driven = list(replaying.steps(reader, str(row["id"]), end))[before - len(world.tags()) :]
    assert type(driven[0].ran).__name__ == said.pending.step
    assert [each.resumed for each in driven] == [True, *[False] * (len(driven) - 1)]


@pytest.mark.slow
def test_a_long_life_takes_no_more_memory_than_a_short_one(path: bytes) -> None:
    def peak(reader: Reader, to: int) -> int:
        tracemalloc.start()
        try:
            deque(map(replaying.step_json, replaying.steps(reader, LANE, to)), maxlen=0)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    pair = (
        SnapshotPlanned(snapshot="s", tolerant=False),
        SnapshotFailed(snapshot="s", code="locked", reason="held"),
    )
    with written(path, (*CREATED, *pair * 3_000)) as reader:
        short = peak(reader, 2_000)
        assert peak(reader, 6_000) < 1.5 * short
