"""One attempt at a snapshot: survey, write, look again, read back; the manifest last."""

from __future__ import annotations

import os
from array import array
from functools import partial
from sys import byteorder
from typing import TYPE_CHECKING, NamedTuple

import trio
from msgspec.structs import replace

from adapters.files.errors import words
from adapters.files.own_directory import in_own_directory
from adapters.git.door import Location
from adapters.snapshots import objects
from adapters.snapshots.capture import keeping_alive, lent, looks, steady
from adapters.snapshots.capture.beginning import begin
from adapters.snapshots.capture.planning import REFS, existing, make_plan, oids_at, write
from adapters.snapshots.capture.promised import is_partial, missing_below
from adapters.snapshots.capture.putting_apart import BIG, Apart
from adapters.snapshots.capture.survey import survey, unpacked
from adapters.snapshots.capture.trusting import converted
from adapters.snapshots.differences import differences, require_captured
from adapters.snapshots.files import Files, SnapshotDamaged
from adapters.snapshots.manifest import FORMAT, Expected, Manifest, save
from adapters.snapshots.objects import Moving
from adapters.snapshots.position import CannotCapture, position_of
from adapters.snapshots.registration import registration
from adapters.snapshots.restorable import require_same
from adapters.snapshots.together import together
from domain.evidence import Obstacle, Snapshot
from domain.paths import display, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapters.git.conversation import Conversation
    from adapters.git.door import Git
    from adapters.git.parse import TreeEntry
    from adapters.snapshots.capture.beginning import Begun
    from adapters.snapshots.capture.keeping_alive import Alive
    from adapters.snapshots.capture.survey import Survey
    from adapters.snapshots.objects import Plan, Written
    from domain.effects import Capture


class Proved(NamedTuple):
    """What a second look at the tree has shown: its digests, and the SHA-256 of its times of change."""

    fingerprint: str
    content: str
    times: str


class Attempt:
    """Captures a tree as it is between two looks at it, or finds that it changed.

    With `remembers`, what earlier captures of the lane have read is not read again.
    """

    def __init__(self, git: Git, directory: bytes, effect: Capture, *, remembers: bool) -> None:
        self._git, self._directory, self._effect = git, directory, effect
        self._common, self._admin = unpack(effect.repository), unpack(effect.place.admin)
        self._root = unpack(effect.place.path)
        self._files = Files(directory)
        self._looks = looks.path_of(directory, effect.lane)
        self._remembers = remembers

    async def take(self) -> Snapshot:
        """Returns the snapshot, durable and read back.

        Raises Moving, Unstable or SnapshotDamaged where another attempt may do better, else CannotCapture,
        GitError, FilesError, OSError.
        """
        git, common, looked = self._git, self._common, self._looks if self._remembers else None
        async with git.converse(b"cat-file", b"--batch", repository=Location(common)) as asking:
            begun = await begin(git, asking, self._files, self._effect, looked)
            seen, alive, obstacles = await self._survey(begun)
            begun.trust.forget()
            plan = await make_plan(git, self._effect, begun, seen, alive)
            draft = self._draft(begun, seen, obstacles)
            (written, top), proved = await together(
                lambda: self._write(asking, begun, seen, plan),
                lambda: trio.to_thread.run_sync(self._prove, begun, seen, draft),
            )
        manifest = replace(
            draft,
            commit=written.commit,
            tree=top,
            keep=written.keep,
            content=proved.content,
            times=proved.times,
        )
        return await self._conclude(begun, seen, plan, manifest, proved)

    async def _write(
        self, asking: Conversation, begun: Begun, seen: Survey, plan: Plan
    ) -> tuple[Written, str]:
        """Returns the commits and the tree of the first, once all is read back as it was captured."""
        note = os.path.join(self._directory, b"writing")
        written = await write(self._git, self._common, self._root, plan, note)
        await lent.make_own(self._git, self._common, plan, written)
        return written, await self._read_back(asking, begun, seen, plan, written)

    def _prove(self, begun: Begun, seen: Survey, draft: Manifest) -> Proved:
        """Proves, while git works, that the tree is still as it was seen and that a restore would make it."""
        steady.require_still(self._root, seen, begun.algorithm)
        times = self._keep_times(seen)
        try:
            require_same(Expected(draft, begun.tree), seen.kept)
        except SnapshotDamaged as error:
            raise CannotCapture(str(error)) from error
        self._check_files(begun, seen)
        return Proved(seen.fingerprint, seen.content, times)

    async def _survey(self, begun: Begun) -> tuple[Survey, Alive, tuple[Obstacle, ...]]:
        """Looks at the tree, and returns what a snapshot cannot hold if that is tolerated."""
        names, head = begun.kept.names, begun.head.oid
        seen, alive = await together(
            lambda: self._look(begun, begun.tree),
            lambda: keeping_alive.only_here(self._git, self._common, names, head),
        )
        missing = await self._missing(begun, seen)
        registered, tagged = begun.kept.registered, alive.tags
        tags = await trio.to_thread.run_sync(registration.private_tags, self._files, registered, tagged)
        tolerable = (*seen.obstacles, *begun.kept.obstacles, *tags)
        obstacles = (*tolerable, *(Obstacle("missing-object", pack(path)) for path in sorted(missing)))
        if obstacles and not self._effect.tolerant:
            named = ", ".join(f"{each.kind} {display(each.path)!r}" for each in obstacles[:5])
            more = f" and {len(obstacles) - 5} more" if len(obstacles) > 5 else ""
            raise CannotCapture(f"a snapshot cannot hold {named}{more}")
        if missing:  # what git has not got is held as if it had never been committed
            seen = await self._look(begun, {path: e for path, e in begun.tree.items() if path not in missing})
        return seen, alive, tolerable

    async def _look(self, begun: Begun, tree: dict[bytes, TreeEntry]) -> Survey:
        """Raises Moving for an entry that is gone between its listing and its reading."""
        trust = begun.trust
        try:
            if begun.asked:
                return await self._walk(begun, tree)
            seen, told = await together(
                lambda: self._walk(begun, tree),
                lambda: converted(self._git, self._admin, self._root, trust.index),
            )
            return await self._walk(begun, tree) if trust.distrust(told) else seen
        except FileNotFoundError as error:
            if not os.path.isdir(self._root):
                raise
            raise Moving(words(error)) from error

    async def _walk(self, begun: Begun, tree: dict[bytes, TreeEntry]) -> Survey:
        known, asked = begun.trust.known(BIG), unpacked(self._effect.apart)
        apart = Apart(self._root, begun.algorithm, self._files, asked, begun.trust.apart)
        arguments = (self._root, tree, begun.algorithm, self._effect.omit)
        walk = partial(survey, *arguments, admin=self._admin, apart=apart, known=known)
        return await trio.to_thread.run_sync(in_own_directory, walk)

    async def _missing(self, begun: Begun, seen: Survey) -> frozenset[bytes]:
        """Returns the paths that are as committed, and of which a partial clone has not got the object."""
        if not (begun.head_tree and is_partial(self._common)):
            return frozenset()
        held = {each.path for each in seen.held}
        plain = {e.path: e.oid for e in seen.kept if e.oid is not None and pack(e.path) not in held}
        missing = await missing_below(self._git, self._common, begun.head_tree)
        return frozenset(path for path, oid in plain.items() if oid in missing)

    def _keep_times(self, seen: Survey) -> str:
        """Keeps the times of change of the root and all entries, and makes all that was kept durable."""
        times = array("q", [seen.root.st_mtime_ns, *(entry.mtime_ns for entry in seen.kept)])
        if byteorder == "big":
            times.byteswap()
        digest = self._files.keep(times.tobytes())
        self._files.sync()
        return digest

    async def _read_back(
        self, asking: Conversation, begun: Begun, seen: Survey, plan: Plan, written: Written
    ) -> str:
        """Returns the commit's tree, once all is read back as it was captured. Raises SnapshotDamaged."""
        top, parents = await objects.commit_at(asking, written.commit)
        expected = [oid for oid in (plan.head, written.index, written.keep) if oid]
        if list(parents) != expected:
            raise SnapshotDamaged(f"the commit {written.commit} has other parents than it was given")
        found = {}
        if top != begun.head_tree:
            found = await differences(self._git, self._common, plan.head, written.commit)
        require_captured(seen.held, found, begun.tree, begun.algorithm)
        earlier = plan.present & oids_at(seen, begun.trust.remembered)  # hashed when it was written
        own = {each.oid for each in seen.held if each.oid is not None and each.apart is None} - earlier
        await objects.require_whole(asking, sorted(own))
        await asking.finish()
        return top

    def _check_files(self, begun: Begun, seen: Survey) -> None:
        named = {each.apart for each in seen.held if each.apart is not None}
        named.update(each.sha256 for each in begun.kept.registered)
        for digest in sorted(named - {""}):
            self._files.check(digest)

    def _draft(self, begun: Begun, seen: Survey, obstacles: Iterable[Obstacle]) -> Manifest:
        """Returns the manifest as far as it is known before git has written anything."""
        there = (*self._effect.omit, *(each.path for each in obstacles))
        return Manifest(
            format=FORMAT,
            id=self._effect.snapshot,
            lane=self._effect.lane,
            repository=self._effect.repository,
            head=begun.head.oid,
            branch=begun.head.branch or self._effect.branch,
            commit="",
            tree="",
            file_mode=seen.file_mode,
            directory_mode=seen.directory_mode,
            entries=seen.held,
            registration=begun.kept.registered,
            omitted=tuple(dict.fromkeys(there)),
            content="",
            root_mode=seen.root.st_mode & 0o7777,
            stale=tuple(pack(path) for path in begun.trust.stale),
        )

    async def _conclude(
        self, begun: Begun, seen: Survey, plan: Plan, manifest: Manifest, proved: Proved
    ) -> Snapshot:
        """Writes the manifest if nothing has moved meanwhile; then there is a snapshot."""
        if await position_of(self._git, self._common, self._admin) != begun.head:
            raise Moving("HEAD moved while it was captured")
        digest = await trio.to_thread.run_sync(self._save, begun, seen, plan, manifest)
        return as_snapshot(manifest, digest, proved.fingerprint, self._effect.apart)

    def _save(self, begun: Begun, seen: Survey, plan: Plan, manifest: Manifest) -> str:
        if registration.fingerprint(self._admin) != begun.kept.fingerprint:
            raise Moving("the registration changed while it was captured")
        objects.sync_objects(self._common, existing(plan), plan.ref)
        digest = save(self._directory, manifest)
        apart = {unpack(each.path): each.apart for each in seen.held if each.apart is not None}
        worth = looks.worth(seen.kept, {*begun.trust.trusted}, apart, seen.began_ns)
        looks.save(self._looks, begun.algorithm, worth)
        return digest


def as_snapshot(manifest: Manifest, digest: str, fingerprint: str, ignored: tuple[str, ...]) -> Snapshot:
    """Returns what the log keeps of a snapshot."""
    return Snapshot(
        id=manifest.id,
        ref=REFS + manifest.id,
        commit=manifest.commit,
        tree=manifest.tree,
        head=manifest.head,
        branch=manifest.branch,
        fingerprint=fingerprint,
        content=manifest.content,
        manifest=digest,
        entries=len(manifest.entries),
        bytes=sum(each.size for each in manifest.entries),
        omitted=manifest.omitted,
        ignored=ignored,
    )
