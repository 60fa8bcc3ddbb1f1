"""Objects that only a lane's registration names: git deletes what no ref reaches, so a snapshot does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from adapters.git.door import Location
from adapters.git.errors import GitFailed, GitTalksTooMuch
from adapters.git.parse import HEX, ascii_lines
from adapters.snapshots import objects

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapters.git.door import Git

OID = re.compile(HEX)
TAGS = (
    b"refs/tags/",
    b"refs/heads/",
)  # refs whose annotated tags are their own, whatever a lane says of them


class Alive(msgspec.Struct, frozen=True):
    """What has to be kept alive: commits, and other objects with whether each is a tree.

    `tags` are annotated tags that no tag or branch is at: a commit cannot keep those.
    """

    commits: tuple[str, ...] = ()
    others: tuple[tuple[str, bool], ...] = ()
    tags: tuple[str, ...] = ()


def named_in_log(log: bytes, width: int) -> set[bytes]:
    """Returns the ids of that many digits that a reflog names, of the commits before and after each step."""
    words = {word for line in log.splitlines() for word in line.split(b" ", 2)[:2]}
    return {word for word in words if len(word) == width and OID.fullmatch(word)}


async def only_here(git: Git, common: bytes, names: Iterable[bytes], head: str) -> Alive:
    """Returns those of the named objects that `head` does not reach.

    No other ref counts: somebody prunes a remote's branch, and deletes a merged one, without asking here.
    A name is any word of hexadecimal digits, and need not be one of an object. Of commits only the last are
    returned: they reach the others. Blobs and trees are all returned. Raises GitError.
    """
    asked = sorted({name.decode("ascii") for name in names if name.strip(b"0")} - {head})
    # What is short may be ambiguous, and is meant as a commit where git wrote it.
    asked += [f"{name}^{{commit}}" for name in asked if len(name) < 40]
    found = {oid: kind for oid, kind, _ in await objects.check(git, common, asked)}
    found.pop(head, None)
    tags = [oid for oid, kind in found.items() if kind == "tag"]
    commits = {oid: None for oid, kind in found.items() if kind == "commit"}
    if tags:
        held = await _held_tags(git, common)
        commits |= dict.fromkeys(await _targets(git, common, tags))
        commits.pop(head, None)
        tags = [oid for oid in tags if oid not in held]
    others = tuple((oid, kind == "tree") for oid, kind in found.items() if kind in ("blob", "tree"))
    return Alive(await _last(git, common, tuple(commits), head), others, tuple(tags))


async def _last(git: Git, common: bytes, commits: tuple[str, ...], head: str) -> tuple[str, ...]:
    """Returns the last of these commits that `head` does not reach: all, where git cannot tell."""
    if not commits:
        return ()
    text = "".join(f"{oid}\n" for oid in [*commits, *([f"^{head}"] if head else [])])
    arguments = (b"rev-list", b"--topo-order", b"--parents", b"--stdin")
    try:
        ran = await git.run(*arguments, repository=Location(common), stdin=text.encode())
    except (GitFailed, GitTalksTooMuch):  # a log may name what has lost its history, or have a long one
        return commits
    lines = [line.split(" ") for line in ascii_lines("rev-list", ran.out)]
    earlier = {parent for line in lines for parent in line[1:]}
    return tuple(line[0] for line in lines if line[0] not in earlier)


async def _held_tags(git: Git, common: bytes) -> set[str]:
    """Returns the tag objects that tags and branches are at."""
    arguments = (b"for-each-ref", b"--format=%(objecttype) %(objectname)", *TAGS)
    ran = await git.run(*arguments, repository=Location(common))
    lines = (line.partition(" ") for line in ascii_lines("for-each-ref", ran.out))
    return {oid for kind, _, oid in lines if kind == "tag"}


async def _targets(git: Git, common: bytes, tags: list[str]) -> list[str]:
    """Returns the commits that tags are of."""
    found = await objects.check(git, common, [f"{oid}^{{}}" for oid in tags])
    return [oid for oid, kind, _ in found if kind == "commit"]
