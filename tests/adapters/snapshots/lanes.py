"""A lane made by plain git, and the effects of its life: no service and no log around it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio
from msgspec.structs import replace

from adapters.files.durable import make_directories
from adapters.files.identity import identify
from adapters.performer.performer import GitPerformer
from adapters.performer.world import World as Means
from adapters.snapshots.capture.capture import capture
from adapters.snapshots.capture.survey import survey
from adapters.snapshots.explain.explain import explain, prepare
from adapters.snapshots.manifest import load
from adapters.snapshots.position import tree_of
from adapters.wiring import git_door
from domain.effects import Capture as CaptureEffect
from domain.effects import Captured, Checkout, Effect, Outcome
from domain.evidence import Consent, Place, Snapshot
from domain.paths import pack
from domain.states import Basis
from tests.sagas.trees import write

if TYPE_CHECKING:
    from adapters.git.door import Git
    from adapters.snapshots.capture.survey import Survey
    from adapters.snapshots.explain.explain import Explanation, Verdict
    from adapters.snapshots.manifest import Manifest
    from tests.sagas.worlds import World

REASON = "laneyard: a test"


class Lane:
    """A worktree `work` on a branch of its own, where the managed root has its lanes."""

    def __init__(self, world: World, name: str = "work") -> None:
        self.world = world
        self.path = os.path.join(world.root, b".laneyard/worktrees", name.encode())
        self.admin = os.path.join(world.common, b"worktrees", name.encode())
        make_directories(world.settings.state_dir)
        world.git(world.root, "worktree", "add", "-q", "-b", name, self.path)

    @property
    def door(self) -> Git:
        """Returns the door to the git program that is the world's by now."""
        return git_door(self.world.settings)

    @property
    def means(self) -> Means:
        """Returns the means of acting."""
        return Means(self.door, self.world.settings.state_dir)

    @property
    def repository(self) -> str:
        """Returns the repository's key."""
        return pack(self.world.common)

    @property
    def place(self) -> Place:
        """Returns the lane as it is now."""
        return Place(pack(self.path), pack(self.admin), identify(self.path))

    def at(self, path: bytes) -> bytes:
        """Returns the absolute path of an entry."""
        return os.path.join(self.path, path)

    def write(self, path: bytes, data: bytes, mode: int = 0o644) -> None:
        """Writes a file."""
        write(self.at(path), data, mode)

    def git(self, *arguments: str | bytes) -> bytes:
        """Runs git in the lane."""
        return self.world.git(self.path, *arguments)

    def head(self) -> str:
        """Returns the commit that HEAD is at."""
        return self.git("rev-parse", "HEAD").decode().strip()

    async def perform(self, effect: Effect) -> Outcome:
        """Does to the world what the service would."""
        return await GitPerformer(self.means).perform(effect)

    def directory(self, snapshot: str = "one") -> bytes:
        """Returns where a snapshot's manifest is."""
        return self.means.snapshot_dir(snapshot)

    def capturing(self, *, omit: tuple[bytes, ...] = (), tolerant: bool = False) -> CaptureEffect:
        """Returns the effect of capturing it."""
        return CaptureEffect(
            repository=self.repository,
            lane="lane",
            snapshot="one",
            place=self.place,
            head=None,
            branch=None,
            tolerant=tolerant,
            omit=tuple(pack(path) for path in omit),
        )

    async def capture(self, *, omit: tuple[bytes, ...] = (), tolerant: bool = False) -> Snapshot:
        """Takes the snapshot `one`."""
        effect = self.capturing(omit=omit, tolerant=tolerant)
        return await capture(self.door, self.directory(), effect)

    async def captured(self) -> Snapshot:
        """Takes the snapshot `one` as the service does."""
        outcome = await self.perform(self.capturing())
        assert isinstance(outcome, Captured), outcome
        return outcome.snapshot

    def manifest(self) -> Manifest:
        """Returns the manifest of the snapshot `one`."""
        return load(self.directory(), None)

    async def survey(self, omit: tuple[bytes, ...] = ()) -> Survey:
        """Sorts its entries."""
        tree = await tree_of(self.door, self.world.common, self.head())
        packed = tuple(pack(path) for path in omit)
        return await trio.to_thread.run_sync(survey, self.path, tree, "sha1", packed)

    def basis(
        self, snapshot: Snapshot | None, *consent: bytes, commit: str | None = None, partial: bool = False
    ) -> Basis:
        """Returns what may explain its entries."""
        agreed = Consent(tuple(pack(path) for path in consent), "a test") if consent else None
        commit = commit or (snapshot.head if snapshot else self.head())
        return Basis(commit=commit, snapshot=snapshot, consent=agreed, partial=partial)

    async def explanation(self, basis: Basis) -> Explanation:
        """Returns what explains each entry."""
        place = (self.path, self.admin)
        return await prepare(self.door, self.directory(), self.world.common, place, basis)

    async def explain(self, basis: Basis) -> Verdict:
        """Walks the tree and explains it."""
        explanation = await self.explanation(basis)
        common = self.world.common
        place = self.path, self.admin
        return await explain(self.door, common, place, explanation, partial=basis.partial)

    def away(self) -> None:
        """Takes the lane out of the world, as a reaping does, by other means."""
        self.world.git(self.world.root, "worktree", "remove", "--force", self.path)

    def checking_out(self, commit: str, branch: str | None = None) -> Checkout:
        """Returns the effect of making a worktree in its place."""
        return Checkout(
            repository=self.repository, path=pack(self.path), branch=branch, commit=commit, reason=REASON
        )


def elsewhere(place: Place, path: bytes) -> Place:
    """Returns the same directory and registration at another path."""
    return replace(place, path=pack(path))
