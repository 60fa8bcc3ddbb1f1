"""What explains an entry of a tree that is to be deleted, and what a whole walk of it amounts to."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec
import trio
from msgspec.structs import replace

from adapters.files.blob import blob_hash
from adapters.files.descriptors import DIRECTORY, owned
from adapters.files.kernel import open_beneath
from adapters.snapshots import objects
from adapters.snapshots.capture.capture import tree_of
from adapters.snapshots.files import PIECE, Files
from adapters.snapshots.manifest import GITLINK, Expected, algorithm_of
from domain.paths import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapters.files.scan import Entry
    from adapters.git.door import Git
    from domain.states import Basis

NAMED = 1_000  # unexplained paths that are named; the rest is counted
PREFIX = b"laneyard-explanation-1\n"
NOTHING = hashlib.sha256(PREFIX).hexdigest()  # the digest where there was nothing to explain
REPRODUCIBLE = frozenset(("snapshot", "commit"))
RACY_NS = 20_000_000  # more than a tick of the clock: a write this close to a look may carry the same time


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the walk found; `digest` is of the explanation, entry by entry."""

    digest: str
    entries: int
    bytes: int
    unexplained: tuple[str, ...]
    count: int


class Explanation:
    """Answers for each entry of one tree what explains it.

    `looks` has the entries that were explained when they were read, at a time that no later write can carry;
    `registration` is the fingerprint of the registration before it was compared with the snapshot.
    """

    def __init__(
        self, expected: Expected, basis: Basis, pointers: tuple[bytes, ...], files: Files | None = None
    ) -> None:
        self.expected = expected
        self.files = files
        self.algorithm = algorithm_for(basis)
        self.beginnings: set[tuple[bytes, str]] = set()
        self.looks: dict[bytes, Entry] = {}
        self.registration: str | None = None
        self._consent = frozenset(
            unpack(path).rstrip(b"/") for path in (basis.consent.paths if basis.consent else ())
        )
        self._worn = basis.worn
        self._pointers = {blob_hash(self.algorithm, len(text), text).hexdigest() for text in pointers}

    def reason(self, entry: Entry) -> str | None:
        """Returns what explains the entry, or None."""
        path = entry.path
        if path == b".git":
            return "pointer" if entry.kind == "file" and entry.oid in self._pointers else None
        if self.expected.holds(entry):
            return "snapshot" if path in self.expected.held else "commit"
        if self._worn and self._is_opened(entry):
            return "opened"
        if (path, entry.oid or "") in self.beginnings:
            return "interrupted"
        return "consent" if self._consented(path) else None

    def explains(self, entry: Entry) -> bool:
        """Tells whether anything explains the entry."""
        return self.reason(entry) is not None

    def _is_opened(self, entry: Entry) -> bool:
        """Tells whether a directory is as it was but for what a deletion of ours permits itself."""
        if entry.kind != "directory" or entry.mode & stat.S_IRWXU != stat.S_IRWXU:
            return False
        closed = entry.mode & ~stat.S_IRWXU
        modes = (closed | bits << 6 for bits in range(7))
        return any(self.expected.holds(replace(entry, mode=mode)) for mode in modes)

    def _consented(self, path: bytes) -> bool:
        if b"." in self._consent or b"" in self._consent:
            return True
        while path:
            if path in self._consent:
                return True
            path = os.path.dirname(path)
        return False

    def is_way(self, entry: Entry) -> bool:
        """Tells whether the directory belongs in the tree, whatever its permissions are by now."""
        held = self.expected.held.get(entry.path)
        known = entry.path in self.expected.directories or (held is not None and held.kind == "directory")
        return entry.kind == "directory" and known


def algorithm_for(basis: Basis) -> str:
    """Returns the hash of the repository, also where HEAD was on a branch without a commit."""
    snapshot = basis.snapshot.commit if basis.snapshot is not None else ""
    return algorithm_of(basis.commit or snapshot)


def judge(entries: Iterable[Entry], explanation: Explanation) -> tuple[Verdict, list[Entry]]:
    """Returns what the explanation says of a whole walk, and which entries the snapshot or commit has."""
    total, count, size = hashlib.sha256(PREFIX), 0, 0
    unexplained: list[str] = []
    reproducible: list[Entry] = []
    update, reason_of = total.update, explanation.reason
    for entry in entries:
        reason, path = reason_of(entry), entry.path
        count, size = count + 1, size + entry.size
        if reason is None:
            unexplained.append(pack(path))
        elif reason in REPRODUCIBLE:
            reproducible.append(entry)
        facts = f"{len(path)} {entry.kind} {entry.mode:o} {entry.size} {entry.oid} {reason}\n"
        update(facts.encode() + path)
        if entry.xattrs:
            update(repr(entry.xattrs).encode())
    verdict = Verdict(
        digest=total.hexdigest(),
        entries=count,
        bytes=size,
        unexplained=tuple(unexplained[:NAMED]),
        count=len(unexplained),
    )
    return verdict, reproducible


def remember(entries: Iterable[Entry], explanation: Explanation, began_ns: int) -> None:
    """Keeps the entries of a walk, all of them explained, for which a later write cannot have this time."""
    latest = began_ns - RACY_NS
    explanation.looks = {entry.path: entry for entry in entries if entry.ctime_ns < latest}


async def find_beginnings(
    git: Git, common: bytes, root: bytes, entries: Sequence[Entry], explanation: Explanation
) -> None:
    """Notes what an interrupted checkout of ours was making: beginnings of files, and its directories."""
    found = explanation.beginnings
    found.update((entry.path, "") for entry in entries if explanation.is_way(entry))
    begun = [each for each in entries if each.kind == "file" and explanation.reason(each) is None]
    wanted = await _wanted(git, common, begun, explanation)
    async with aclosing(objects.contents(git, common, sorted(wanted))) as contents:
        async for oid, data in contents:
            for entry in wanted[oid]:
                if await trio.to_thread.run_sync(_read, root, entry) == data[: entry.size]:
                    found.add((entry.path, entry.oid or ""))
    for entry in begun:
        if await trio.to_thread.run_sync(_is_of_files, root, entry, explanation):
            found.add((entry.path, entry.oid or ""))


async def _wanted(
    git: Git, common: bytes, begun: Sequence[Entry], explanation: Explanation
) -> dict[str, list[Entry]]:
    """Returns which blobs a checkout may have been writing, and where: the last content, or git's before."""
    wanted: dict[str, list[Entry]] = {}
    if not begun:
        return wanted
    expected = explanation.expected
    # Where the content is apart, the snapshot's commit has a line of text, and git fills from that.
    filled = await tree_of(git, common, expected.manifest.commit) if explanation.files else {}
    for entry in begun:
        held, first = expected.held.get(entry.path), filled.get(entry.path)
        oids = {first.oid} if first is not None and first.mode != GITLINK else set()
        last = expected.wanted_at(entry.path)
        if last is not None and (held is None or held.apart is None):
            oids.add(last)
        for oid in oids:
            wanted.setdefault(oid, []).append(entry)
    return wanted


def _is_of_files(root: bytes, entry: Entry, explanation: Explanation) -> bool:
    """Tells whether a file is the beginning of what the snapshot keeps beside git for its path."""
    held = explanation.expected.held.get(entry.path)
    if explanation.files is None or held is None or held.apart is None:
        return False
    with owned(_open(root, entry.path)) as found, owned(explanation.files.open(held.apart)) as kept:
        while piece := os.read(found, PIECE):
            if os.read(kept, len(piece)) != piece:
                return False
    return True


def _read(root: bytes, entry: Entry) -> bytes:
    with os.fdopen(_open(root, entry.path), "rb") as file:
        return file.read(entry.size + 1)


def _open(root: bytes, path: bytes) -> int:
    with owned(os.open(root, DIRECTORY)) as top:
        return open_beneath(top, path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
