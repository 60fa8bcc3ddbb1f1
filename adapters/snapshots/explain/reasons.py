"""What explains an entry of a tree that is to be deleted, and what a whole walk of it amounts to."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from adapters.files.blob import blob_hash
from adapters.files.durable import read_file
from adapters.git.registration import pointers_agree
from adapters.snapshots.capture.looks import is_racy
from adapters.snapshots.manifest import Expected, algorithm_of
from domain.evidence import CONSENT_LIMIT
from domain.paths import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapters.files.scan import Entry
    from adapters.snapshots.files import Files
    from domain.evidence import Consent
    from domain.states import Basis

NAMED = CONSENT_LIMIT  # unexplained paths that are named, so that they can be agreed to; more are counted
PREFIX = b"laneyard-explanation-1\n"
NOTHING = hashlib.sha256(PREFIX).hexdigest()  # the digest where there was nothing to explain
REPRODUCIBLE = frozenset(("snapshot", "commit"))
INSIDE = b".git/"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the walk found; `digest` is of the explanation, entry by entry."""

    digest: str
    entries: int
    bytes: int
    unexplained: tuple[str, ...]
    count: int


class Agreed:
    """What of a tree a consent names: `exact` are entries of which nothing is agreed to but themselves."""

    def __init__(self, consent: Consent | None) -> None:
        paths, exact = (consent.paths, consent.exact) if consent is not None else ((), ())
        self._whole = frozenset(unpack(path).rstrip(b"/") for path in paths)
        self.exact = frozenset(map(unpack, exact))

    def covers(self, path: bytes) -> bool:
        """Tells whether the path, or one above it, is named with all that is below."""
        if not self._whole:
            return False
        if b"." in self._whole or b"" in self._whole:
            return True
        if path.startswith(INSIDE):  # by these names a consent means the registration
            return False
        while path:
            if path in self._whole:
                return True
            path = os.path.dirname(path)
        return False


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
        self.agreed = Agreed(basis.consent)
        self._worn = basis.worn
        self._pointers = {blob_hash(self.algorithm, len(text), text).hexdigest() for text in pointers}

    def reason(self, entry: Entry) -> str | None:
        """Returns what explains the entry, or None."""
        path = entry.path
        if path == b".git":
            if entry.kind == "file" and entry.oid in self._pointers:
                return "pointer"
            return "consent" if path in self.agreed.exact else None
        if self.expected.holds(entry):
            return "snapshot" if path in self.expected.held else "commit"
        if self._worn and self._is_opened(entry):
            return "opened"
        if (path, entry.oid or "") in self.beginnings:
            return "interrupted"
        return "consent" if path in self.agreed.exact or self.agreed.covers(path) else None

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

    def is_way(self, entry: Entry) -> bool:
        """Tells whether the directory belongs in the tree, whatever its permissions are by now."""
        held = self.expected.held.get(entry.path)
        known = entry.path in self.expected.directories or (held is not None and held.kind == "directory")
        return entry.kind == "directory" and known


def pointers_of(root: bytes, admin: bytes) -> tuple[bytes, ...]:
    """Returns what the tree's `.git` file may say: as git and we write it, and as others have by now."""
    ours = (b"gitdir: %s\n" % admin, b"gitdir: %s\n" % os.path.relpath(admin, root))
    path = os.path.join(root, b".git")
    if pointers_agree(admin, root) is not None:
        return ours
    return (*ours, read_file(path))


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
    explanation.looks = {entry.path: entry for entry in entries if not is_racy(entry.ctime_ns, began_ns)}
