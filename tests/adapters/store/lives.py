"""Whole lives of lanes as facts, one event to a step: what the store's tests and its benchmark write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.store.codec import Row, encode
from adapters.store.journal import Entry
from domain.envelope import Actor, stream_of
from domain.events import (
    BranchFreed,
    CreationPlanned,
    Fact,
    LaneCheckedOut,
    LaneCreated,
    LaneQuarantined,
    LaneReaped,
    LaneSnapshotted,
    ReapingPlanned,
    RemovalPlanned,
    SnapshotPlanned,
    TreeDestroyed,
    TreeExplained,
    TreeResisted,
    TreeRetried,
    WorktreeLocked,
    WorktreeMoved,
)
from domain.evidence import Identity, Place, Snapshot, Summary

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = "/srv/yard/.git"
BASE = "3" * 40
NOON = "2026-01-31T12:00:00.000000Z"
ACTOR = Actor(1000, 4711, "test")


def noon() -> str:
    return NOON


def planned(lane: str, slug: str | None = None) -> CreationPlanned:
    slug = slug or f"fix-{lane}"
    return CreationPlanned(
        journal_format=1,
        lane=lane,
        repository=REPOSITORY,
        name=slug,
        slug=slug,
        path=f"/srv/yard/.laneyard/worktrees/{slug}",
        branch=f"refs/heads/{slug}",
        base_ref="refs/heads/main",
        base_commit=BASE,
        parent=None,
        owner="manual",
    )


def place(lane: str) -> Place:
    slug = f"fix-{lane}"
    return Place(
        f"/srv/yard/.laneyard/worktrees/{slug}", f"{REPOSITORY}/worktrees/{slug}", Identity(40, 1234567)
    )


def resting(lane: str) -> str:
    return f"/srv/yard/.laneyard/quarantine/fix-{lane}-1"


def snapshot(lane: str) -> Snapshot:
    return Snapshot(
        id=f"snapshot-{lane}",
        ref=f"refs/laneyard/snapshots/{lane}",
        commit="5" * 40,
        tree="6" * 40,
        head=BASE,
        branch=f"refs/heads/fix-{lane}",
        fingerprint="7" * 64,
        content="8" * 64,
        manifest="9" * 64,
        entries=120,
        bytes=4096,
    )


def removal(lane: str) -> RemovalPlanned:
    kept = snapshot(lane)
    return RemovalPlanned(
        journal_format=4,
        edition=1,
        mode="safe",
        place=place(lane),
        resting=resting(lane),
        head=BASE,
        branch=kept.branch,
        snapshot_id=kept.id,
        snapshot_ref=kept.ref,
        snapshot_commit=kept.commit,
        snapshot_tree=kept.tree,
        provisioned_ignored=(),
        consent=None,
        evidence=Summary(at=NOON, changed=1, untracked=2, ignored=0),
        delete_branch=False,
    )


def life(lane: str) -> tuple[Fact, ...]:
    """Returns a lane's life from its plan until it is reaped, with a deletion that is tried twice."""
    where = place(lane)
    resisted = TreeResisted(
        path=resting(lane), step="destroy", attempt=1, reason="busy", left=("a",), final=True
    )
    return (
        planned(lane),
        LaneCheckedOut(place=where, head=BASE),
        LaneCreated(path=where.path, branch=f"refs/heads/fix-{lane}", head=BASE),
        SnapshotPlanned(snapshot=f"snapshot-{lane}", tolerant=False),
        LaneSnapshotted(snapshot=snapshot(lane)),
        removal(lane),
        WorktreeLocked(),
        WorktreeMoved(path=resting(lane)),
        BranchFreed(),
        LaneQuarantined(edition=1, path=resting(lane)),
        ReapingPlanned(journal_format=1, edition=1, snapshot_id=f"snapshot-{lane}", consent=None),
        TreeExplained(digest="a" * 64, entries=120, bytes=4096),
        resisted,
        TreeRetried(),
        TreeDestroyed(entries=120, bytes=4096),
        LaneReaped(edition=1, snapshot_id=f"snapshot-{lane}", entries=120, bytes=4096, digest="a" * 64),
    )


def entry(
    lane: str, *facts: Fact, command: str | None = None, digest: bytes = b"", claiming: bool = False
) -> Entry:
    """Returns a request to append exactly these facts."""
    return Entry(
        stream=stream_of(lane),
        decide=lambda _: facts,
        actor=ACTOR,
        cause=command or f"cause-{lane}",
        command_id=command,
        digest=digest,
        claiming=claiming,
    )


def entries(lane: str) -> Iterator[Entry]:
    """Yields a life as requests of one event each; what plans something is a command with an id."""
    for n, fact in enumerate(life(lane)):
        command = f"{lane}.{n}" if "planned" in fact.TAG else None
        yield entry(lane, fact, command=command, digest=b"d", claiming=command is not None)


def interleaved(lanes: int, width: int, prefix: str = "lane") -> Iterator[Entry]:
    """Yields the requests of many lives, `width` of them lived at the same time."""
    for start in range(0, lanes, width):
        names = [f"{prefix}-{n}" for n in range(start, min(start + width, lanes))]
        for step in zip(*(entries(name) for name in names), strict=True):
            yield from step


def rows(lanes: int) -> Iterator[Row]:
    """Yields the log of as many lives, one after the other, as rows without a store."""
    position = 0
    for n in range(lanes):
        for version, fact in enumerate(life(f"lane-{n}"), 1):
            position += 1
            state = encode(fact, NOON, ACTOR, f"cause-{n}")
            yield position, stream_of(f"lane-{n}"), version, fact.TAG, state
