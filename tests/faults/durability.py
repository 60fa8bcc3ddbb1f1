"""What each fact of the log relies on, and whether that was on the disk before the fact could be.

`docs/durability.md` says the same in words.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple, cast

from adapters.performer.proof import NAME as PROOF
from adapters.store.connection import connect, initialise
from adapters.store.log import events
from domain import events as e
from domain.envelope import lane_of
from domain.lane import INITIAL, evolve
from domain.paths import unpack
from domain.states import Nowhere, Returning
from tests.faults.disk import STARTS, concerns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from domain.envelope import Envelope
    from domain.evidence import Place
    from domain.states import Lane
    from tests.faults.disk import Disk, Node, Said
    from tests.faults.syscalls import Call
    from tests.sagas.worlds import World


class Step(NamedTuple):
    """A fact with the lane that it is of, before and after, and where the world is."""

    fact: e.Fact
    before: Lane
    after: Lane
    world: World

    @property
    def common(self) -> bytes:
        """Returns the repository's git directory."""
        return self.world.common

    @property
    def tree(self) -> bytes:
        """Returns where the lane's tree is, or was."""
        return unpack(self._place.path)

    @property
    def admin(self) -> bytes:
        """Returns the lane's registration."""
        return unpack(self._place.admin)

    @property
    def _place(self) -> Place:
        found = _place_in(self.after) or _place_in(self.before)
        assert found is not None, self.fact
        return found

    def ref(self, ref: str) -> list[bytes]:
        """Returns the files in which a ref is, or in which it no longer is."""
        return [os.path.join(self.common, name) for name in (ref.encode(), b"packed-refs")]

    def registered(self, *names: bytes) -> list[bytes]:
        """Returns files of the registration."""
        return [os.path.join(self.admin, name) for name in names]


def _place_in(lane: Lane) -> Place | None:
    for holder in (lane, *(getattr(lane, name, None) for name in ("demolition", "plan", "home", "of"))):
        if (place := getattr(holder, "place", None)) is not None:
            return cast("Place", place)
    return None


def _checked_out(step: Step) -> list[bytes]:
    return [step.tree, step.admin, *_branch(step), os.path.join(step.common, b"info/exclude")]


def _branch(step: Step) -> list[bytes]:
    branch = step.after.record.branch if not isinstance(step.after, Nowhere) else None
    return step.ref(branch) if branch else []


def _snapshot(step: Step) -> list[bytes]:
    assert isinstance(step.fact, e.LaneSnapshotted)
    taken = step.fact.snapshot
    kept = os.path.join(step.world.settings.state_dir, b"snapshots", taken.id.encode())
    files = [os.path.join(kept, name) for name in (b"manifest.json", b"files")]
    return [*files, os.path.join(step.common, b"objects"), *step.ref(taken.ref)]


def _moved(step: Step) -> list[bytes]:
    """The tree is where it is now, is not where it was, and its registration says so."""
    assert isinstance(step.before, Returning)
    was = _place_in(step.before.home)
    assert was is not None
    return [step.tree, unpack(was.path), *step.registered(b"gitdir")]


def _removed(step: Step) -> list[bytes]:
    assert isinstance(step.fact, e.WorktreeMoved | e.LaneQuarantined)
    origin = _place_in(step.before)
    assert origin is not None
    rests = unpack(step.fact.path)
    return [rests, unpack(origin.path), *step.registered(b"gitdir", b"locked", b"HEAD")]


def _restored(step: Step) -> list[bytes]:
    return [step.tree, step.admin, *_branch(step)]


def _gone(step: Step) -> list[bytes]:
    return [step.tree, step.admin]


def _given_up(step: Step) -> list[bytes]:
    """What the restore has made is gone."""
    assert isinstance(step.before, Returning)
    made = step.before.demolition
    return [unpack(made.place.path), unpack(made.place.admin)] if made else []


def _dropped(step: Step) -> list[bytes]:
    assert isinstance(step.fact, e.BranchDropped)
    return step.ref(step.fact.branch)


def _undone(step: Step) -> list[bytes]:
    """Nothing of it is left: neither the tree nor its registration nor, if it was made, the branch."""
    return [*([*_gone(step)] if _place_in(step.before) else []), *_branch(step)]


RULES: dict[type[e.Fact], Callable[[Step], list[bytes]]] = {
    e.LaneCheckedOut: _checked_out,
    e.LaneCreated: _checked_out,
    e.CreationUndone: _undone,
    e.LaneSnapshotted: _snapshot,
    e.WorktreeLocked: lambda step: step.registered(b"locked"),
    e.WorktreeMoved: _removed,
    e.BranchFreed: lambda step: step.registered(b"HEAD"),
    e.BranchDropped: _dropped,
    e.LaneQuarantined: _removed,
    e.RemovalAbandoned: lambda step: step.registered(b"locked"),
    e.WorktreeReturned: _moved,
    e.WorktreeRebuilt: lambda step: [step.tree, step.admin],
    e.SnapshotApplied: lambda step: [step.tree, step.admin],
    e.BranchRejoined: lambda step: [*step.registered(b"HEAD"), *_branch(step)],
    e.LaneRestored: _restored,
    e.RestoreAbandoned: _given_up,
    e.TreeDestroyed: lambda step: [step.tree],
    e.TreeDeregistered: _gone,
    e.LaneReaped: _gone,
}


class Commit(NamedTuple):
    """Facts that are durable from a call on, and what was at risk when the first of their bytes could be."""

    steps: list[Step]
    risks: dict[bytes, str]

    def violations(self) -> Iterator[str]:
        """Yields what a fact relies on and a power cut could take back."""
        for step in self.steps:
            rule = RULES.get(type(step.fact))
            for path in rule(step) if rule else []:
                for where, why in self.risks.items():
                    if concerns(where, why, path):
                        yield f"{step.fact.TAG}: {os.fsdecode(where)}: {why}"


class Story:
    """Everything that one run after another asked of the system, told once more to a model of the disk."""

    def __init__(self, world: World, disk: Disk, runs: Iterable[Sequence[Call]]) -> None:
        self.world = world
        self.disk = disk
        self.events: list[Envelope] = []
        self.broken: list[str] = []  # promises that are no single fact's
        self._runs = runs
        self._store = world.settings.store
        self._lanes: defaultdict[str, Lane] = defaultdict(lambda: INITIAL)
        self._risks: dict[bytes, str] | None = None

    def __iter__(self) -> Iterator[Commit | None]:
        """Yields a commit when it is durable, and nothing before one is written or all files are synced."""
        self._committed()
        for call, synced in self._halves():
            about = self.disk.about(call)
            if synced is None:
                if about == self._store + b"-wal" and call.name == "pwrite64" and self._risks is None:
                    self._risks = dict(self.disk.risks())
                    self._look_for_log()
                    yield None
                elif call.name == "syncfs":
                    yield None
                continue
            if call.name == "unlinkat" and "AT_REMOVEDIR" in call.arguments[-1]:
                self._look_for_proof(self.disk.named(call, 1))
            self.disk.end(call, synced)
            if about.startswith(self._store) and call.name in ("fsync", "fdatasync"):
                steps = self._committed()
                if steps:
                    yield Commit(steps, self._risks or {})
                self._risks = None

    def _halves(self) -> Iterator[tuple[Call, dict[Node, Said] | None]]:
        """Yields each call twice, as it begins and, with what it has synced, as it ends."""
        for calls in self._runs:
            for call in calls:
                if call.name in STARTS:
                    self.disk.starts(call)
            halves = [(call.begun, 0, at) for at, call in enumerate(calls)]
            halves += [(call.ended, 1, at) for at, call in enumerate(calls)]
            synced: dict[int, dict[Node, Said]] = {}
            for _, ends, at in sorted(halves):
                if ends:
                    yield calls[at], synced.pop(at)
                else:
                    yield calls[at], None
                    synced[at] = self.disk.begin(calls[at])

    def _committed(self) -> list[Step]:
        """Returns what the log has now, were the power lost, that it had not before."""
        known = len(self.events)
        self.events = list(self._durable_events())
        steps = []
        for event in self.events[known:]:
            before = self._lanes[event.stream]
            after = self._lanes[event.stream] = (
                evolve(before, event.fact) if lane_of(event.stream) else before
            )
            steps.append(Step(event.fact, before, after, self.world))
        return steps

    def _durable_events(self) -> Iterator[Envelope]:
        with tempfile.TemporaryDirectory() as scratch:
            copy = os.path.join(os.fsencode(scratch), b"journal.db")
            for suffix in (b"", b"-wal", b"-journal"):
                node = self.disk.find(self._store + suffix, durable=True)
                if node is not None:
                    with open(copy + suffix, "wb") as file:
                        file.write(node.kept.data)
            if os.path.exists(copy) and os.path.getsize(copy):
                with closing(connect(copy)) as connection:  # to write: a start rolls back what was begun
                    initialise(connection)
                    yield from events(connection)

    def _look_for_log(self) -> None:
        """What was committed before is acknowledged by now: the log must be found under its name."""
        seen = self.disk.find(self._store)
        if seen is not None and seen is not self.disk.find(self._store, durable=True):
            self.broken.append("the name of the log, or of a directory above it, is not durable")

    def _look_for_proof(self, root: bytes) -> None:
        """A registered tree may only go when the proof that it was we who deleted it is on the disk."""
        for admin, node in self.disk.below(os.path.join(self.world.common, b"worktrees")):
            pointer = node.names.get(b"gitdir")
            if pointer is not None and os.path.dirname(pointer.data.strip()) == root:
                proof = os.path.join(admin, PROOF)
                if self.disk.find(proof) is None or self.disk.unsafe(proof):
                    self.broken.append(f"{os.fsdecode(root)} was deleted before that was proved")
