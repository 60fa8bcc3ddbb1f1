"""What was seen of the world: three-valued, because what could not be seen is never "clean".

Evidence is material for decisions. It enters the log only inside the fact that rests on it.
"""

from typing import Literal

import msgspec

CONSENT_LIMIT = 10_000  # paths that a consent may name


class Unknown(msgspec.Struct, frozen=True, tag="unknown"):
    """Something that could not be observed, and why. Unknown holds."""

    why: str


class Identity(msgspec.Struct, frozen=True):
    """Which directory this is: inode numbers are reused, so the birth time is part of it if known."""

    device: int
    inode: int
    born_ns: int | None = None

    def same(self, other: object) -> bool:
        """Tells whether both are one directory.

        A device's number changes with a restart or a new mount, so where the birth time is known it decides.
        """
        if not isinstance(other, Identity):
            return False
        if self.born_ns is None or other.born_ns is None:
            return self == other
        return (self.inode, self.born_ns) == (other.inode, other.born_ns)


class Obstacle(msgspec.Struct, frozen=True):
    """Something that a snapshot cannot hold yet; `kind` is stable, `path` packed and relative to the lane."""

    kind: str
    path: str


class Ignored(msgspec.Struct, frozen=True):
    """An ignored path (packed) with all that is below it: its class, the evidence for that, how much it is.

    `rebuildable` can be made again and may be let go, `precious` cannot, of `unknown` nothing is known.
    `entries` counts the path itself. No ignored path lies below another.
    """

    path: str
    kind: Literal["rebuildable", "precious", "unknown"]
    why: str
    bytes: int
    entries: int


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What an inspector saw of a lane's tree and its registration at one moment.

    Paths are packed and relative to the lane. `head` is empty where HEAD is on a branch without a commit.
    `fingerprint` digests the metadata of every entry; it is made only where a snapshot has to be compared
    with the tree.
    """

    at: str
    identity: Identity | Unknown
    head: str | Unknown
    branch: str | Unknown | None
    locked: str | Unknown | None
    changed: tuple[str, ...] | Unknown
    untracked: tuple[str, ...] | Unknown
    ignored: tuple[Ignored, ...] | Unknown
    obstacles: tuple[Obstacle, ...] | Unknown
    fingerprint: str | Unknown | None = None

    def gaps(self) -> tuple[tuple[str, str], ...]:
        """Returns every observation that is missing, with why."""
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return tuple((name, value.why) for name, value in values if isinstance(value, Unknown))


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence that a removal rested on, short enough for the log."""

    at: str
    changed: int
    untracked: int
    ignored: int
    obstacles: tuple[Obstacle, ...] = ()


class Consent(msgspec.Struct, frozen=True, omit_defaults=True):
    """A recorded permission to lose named things: packed paths, each with all that is below it.

    Of an `exact` path only the entry itself may be lost, and nothing that is below it.
    """

    paths: tuple[str, ...]
    reason: str
    exact: tuple[str, ...] = ()

    @property
    def named(self) -> tuple[str, ...]:
        """Returns every path that it names, in either way."""
        return tuple(dict.fromkeys((*self.paths, *self.exact)))


class Place(msgspec.Struct, frozen=True):
    """Where a worktree is: its directory, its registration and which directory that is."""

    path: str
    admin: str
    identity: Identity


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A verified copy of what git alone could not give back.

    `ref` reaches `commit`, whose tree is the worktree as it was and whose first parent is `head`.
    `fingerprint` is that of the tree when it was captured, `content` the digest of every entry's path, kind,
    mode and bytes, `manifest` the SHA-256 of the manifest. `omitted` names what could not be held, `ignored`
    which ignored paths are held, each with all that is below it.
    """

    id: str
    ref: str
    commit: str
    tree: str
    head: str
    branch: str | None
    fingerprint: str
    content: str
    manifest: str
    entries: int
    bytes: int
    omitted: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
