"""Readers of git's machine formats: pure functions from bytes to values; nonsense is named and raised."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from adapters.git.errors import GitOutputUnreadable

if TYPE_CHECKING:
    from collections.abc import Iterator


class Change(msgspec.Struct, frozen=True):
    """A tracked path that differs between HEAD, index and worktree, as `status` tells it."""

    xy: str
    submodule: str
    path: bytes
    original: bytes | None = None
    unmerged: bool = False


class Status(msgspec.Struct, frozen=True):
    """What `status` saw; `head` is None before the first commit, `branch` is None when HEAD is detached."""

    head: str | None
    branch: bytes | None
    changes: tuple[Change, ...]
    untracked: tuple[bytes, ...]
    ignored: tuple[bytes, ...]


class TreeEntry(msgspec.Struct, frozen=True, gc=False):
    """A file, symbolic link or submodule in a tree."""

    mode: int
    oid: str


def parse_status(data: bytes, /) -> Status:
    """Reads `status --porcelain=v2 -z --branch`; output without its two headers is unreadable, not clean."""
    headers: dict[bytes, bytes] = {}
    changes: list[Change] = []
    paths: dict[bytes, list[bytes]] = {b"?": [], b"!": []}
    records = terminated("status", data, b"\0")
    for record in records:
        kind = record[:1]
        if kind in paths and record[1:2] == b" " and len(record) > 2:
            paths[kind].append(record[2:])
        elif kind == b"#":
            name, _, value = record[2:].partition(b" ")
            headers[name] = value
        else:
            changes.append(change(record, records))
    head, branch = headers.get(b"branch.oid", b""), headers.get(b"branch.head", b"")
    if not branch or not (head == b"(initial)" or OID.fullmatch(head)):
        raise GitOutputUnreadable("status: branch headers", data)
    return Status(
        head=None if head == b"(initial)" else head.decode(),
        branch=None if branch == b"(detached)" else branch,
        changes=tuple(changes),
        untracked=tuple(paths[b"?"]),
        ignored=tuple(paths[b"!"]),
    )


def change(record: bytes, following: Iterator[bytes]) -> Change:
    """Reads one changed path; a renamed or copied one is followed by its original path."""
    found = CHANGE.fullmatch(record)
    if found is None:
        raise GitOutputUnreadable("status", record)
    original = next(following, b"") if found["score"] else None
    if original == b"":
        raise GitOutputUnreadable("status: original path of", record)
    return Change(
        xy=found["xy"].decode(),
        submodule=found["sub"].decode(),
        path=found["path"],
        original=original,
        unmerged=record.startswith(b"u"),
    )


def parse_ls_tree(data: bytes, /) -> dict[bytes, TreeEntry]:
    """Reads `ls-tree -r -z --full-tree`; submodules are kept, with mode 0o160000."""
    entries: dict[bytes, TreeEntry] = {}
    for record in terminated("ls-tree", data, b"\0"):
        header, _, path = record.partition(b"\t")
        found = TREE_ENTRY.fullmatch(header)
        if found is None or not path or path in entries:
            raise GitOutputUnreadable("ls-tree", record)
        entries[path] = TreeEntry(int(found[1], 8), found[2].decode())
    return entries


def parse_batch_check(data: bytes, asked: int, /) -> list[tuple[str, str, int] | None]:
    """Reads `cat-file --batch-check`, in order: id, type and size, or None where there is no such object.

    An answer to fewer or more names than were asked for is unreadable: nobody knows what is not there then.
    """
    found: list[tuple[str, str, int] | None] = []
    for record in terminated("cat-file", data, b"\n"):
        if known := OBJECT.fullmatch(record):
            found.append((known[1].decode(), known[2].decode(), int(known[3])))
        elif record.endswith(ABSENT):
            found.append(None)
        else:
            raise GitOutputUnreadable("cat-file", record)
    if len(found) != asked:
        raise GitOutputUnreadable(f"cat-file: {len(found)} answers to {asked} names", data)
    return found


def ascii_lines(what: str, data: bytes) -> list[str]:
    """Returns lines of words that have no other characters than printable ones of ASCII."""
    lines = list(terminated(what, data, b"\n"))
    for line in lines:
        if not WORDS.fullmatch(line):
            raise GitOutputUnreadable(what, line)
    return [line.decode("ascii") for line in lines]


def terminated(what: str, data: bytes, end: bytes) -> Iterator[bytes]:
    """Returns the records, each closed by its end mark; output that breaks off inside one is unreadable."""
    records = data.split(end)
    last = records.pop()
    if last:
        raise GitOutputUnreadable(f"{what}: unfinished record", last)
    return iter(records)


HEX = rb"(?:[0-9a-f]{64}|[0-9a-f]{40})"
OID = re.compile(HEX)
WORDS = re.compile(rb"[!-~]+(?: [!-~]+)*")
OBJECT = re.compile(rb"(" + HEX + rb") (blob|tree|commit|tag) ([0-9]{1,19})")
# "submodule" and "excluded" are how later versions call what they do not look for.
ABSENT = (b" missing", b" ambiguous", b" submodule", b" excluded")
TREE_ENTRY = re.compile(rb"([0-7]{6}) (?:blob|commit) (" + HEX + rb")")
CHANGE = re.compile(
    rb"(?:1|(?P<renamed>2)|(?P<unmerged>u)) (?P<xy>[.MTADRCUX]{2}) (?P<sub>N\.\.\.|S[C.][M.][U.])"
    rb"(?: [0-7]{6}){3}(?(unmerged) [0-7]{6})(?: " + HEX + rb"){2}(?(unmerged) " + HEX + rb")"
    rb"(?(renamed) (?P<score>[RC][0-9]{1,3})) (?P<path>.+)",
    re.DOTALL,
)
