"""Objects that only a lane's registration names: git deletes what no ref reaches, so a snapshot does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from adapters.git.door import Location
from adapters.git.parse import HEX
from adapters.snapshots import objects

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapters.git.door import Git

OID = re.compile(HEX)
# Refs that do not last: those of one worktree end with what git is busy with there, and a snapshot may be
# taken again, or dropped, while others are to be whole by themselves.
PASSING = ("refs/bisect/", "refs/rewritten/", "refs/worktree/", "refs/laneyard/snapshots/")
EXCLUDED = tuple(f"--exclude={name}*".encode() for name in PASSING)


class Alive(msgspec.Struct, frozen=True):
    """What has to be kept alive: commits, and other objects with whether each is a tree.

    `tags` are annotated tags that no lasting ref is at: a commit cannot keep those.
    """

    commits: tuple[str, ...] = ()
    others: tuple[tuple[str, bool], ...] = ()
    tags: tuple[str, ...] = ()


def named_in_log(log: bytes, width: int) -> set[bytes]:
    """Returns the ids of that many digits that a reflog names, of the commits before and after each step."""
    words = {word for line in log.splitlines() for word in line.split(b" ", 2)[:2]}
    return {word for word in words if len(word) == width and OID.fullmatch(word)}


async def only_here(git: Git, common: bytes, names: Iterable[bytes], head: str) -> Alive:
    """Returns those of the named objects that no lasting ref and not `head` reaches.

    A name is any word of hexadecimal digits, and need not be one of an object. Of commits only the last are
    returned: they reach the others. Blobs and trees are all returned. Raises GitError.
    """
    asked = sorted({name.decode("ascii") for name in names if name.strip(b"0")} - {head})
    # What is short may be ambiguous, and is meant as a commit where git wrote it.
    asked += [f"{name}^{{commit}}" for name in asked if len(name) < 40]
    found = {oid: kind for oid, kind, _ in await objects.check(git, common, asked)}
    found.pop(head, None)
    tags = [oid for oid, kind in found.items() if kind == "tag"]
    commits = [oid for oid, kind in found.items() if kind == "commit"]
    if tags:
        lasting = await _lasting(git, common)
        commits += await _targets(git, common, tags)
        tags = [oid for oid in tags if oid not in lasting]
    others = tuple((oid, kind == "tree") for oid, kind in found.items() if kind in ("blob", "tree"))
    return Alive(await _unreached(git, common, commits, head), others, tuple(tags))


async def _unreached(git: Git, common: bytes, commits: list[str], head: str) -> tuple[str, ...]:
    """Returns the last of these commits that no lasting ref and not `head` reaches."""
    if not commits:
        return ()
    text = "".join(f"{oid}\n" for oid in [*commits, *([f"^{head}"] if head else [])])
    # Not through stdin: git < 2.42 takes no options there. Not `--all`: the main checkout's HEAD moves on.
    arguments = (
        b"rev-list",
        b"--topo-order",
        b"--parents",
        b"--stdin",
        b"--not",
        *EXCLUDED,
        b"--glob=refs/*",
    )
    ran = await git.run(*arguments, repository=Location(common), stdin=text.encode())
    lines = [line.split(" ") for line in ran.out.decode("ascii").splitlines()]
    earlier = {parent for line in lines for parent in line[1:]}
    return tuple(line[0] for line in lines if line[0] not in earlier)


async def _lasting(git: Git, common: bytes) -> set[str]:
    """Returns the tag objects that lasting refs are at."""
    arguments = (b"for-each-ref", b"--format=%(objecttype) %(objectname) %(refname)")
    ran = await git.run(*arguments, repository=Location(common))
    lines = [line.split(" ", 2) for line in ran.out.decode("utf-8", "replace").splitlines()]
    return {oid for kind, oid, ref in lines if kind == "tag" and not ref.startswith(PASSING)}


async def _targets(git: Git, common: bytes, tags: list[str]) -> list[str]:
    """Returns the commits that tags are of."""
    found = await objects.check(git, common, [f"{oid}^{{}}" for oid in tags])
    return [oid for oid, kind, _ in found if kind == "commit"]
