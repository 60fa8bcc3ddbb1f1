"""Looking at a lane: `git status`, once if it is clean, and its registration. What is not seen is unknown.

Git is asked with the lane's own registration, after both pointers were compared: a lane whose `.git` file is
missing would otherwise be answered for by the repository around it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

import msgspec
import trio

from adapters.files.census import count_leaves
from adapters.files.durable import read_file
from adapters.files.errors import FilesError, words
from adapters.files.identity import identify
from adapters.git.door import Location
from adapters.git.errors import GitError, RegistrationUnreadable
from adapters.git.index import IndexSurvey, survey_index
from adapters.git.parse import Status, parse_status
from adapters.git.registration import pointers_agree, read_registration
from adapters.snapshots import registration
from adapters.snapshots.survey import take_fingerprint
from domain.evidence import Obstacle, Place, Seen, Unknown
from domain.paths import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from adapters.git.door import Git

INDEX_LIMIT = 1 << 30
_QUESTION = (
    *(b"status", b"--porcelain=v2", b"-z", b"--branch"),
    *(b"--no-ahead-behind", b"--no-renames", b"--ignore-submodules=none"),
)
EVERYTHING = (*_QUESTION, b"--untracked-files=all", b"--ignored=matching")
TRACKED = (*_QUESTION, b"--untracked-files=no")  # 0.6 of the time: git reads no directory

SHA1 = "0" * 40

T = TypeVar("T")
Stamp = tuple[int, int, int, int]  # inode, size, times of change: git replaces an index and never rewrites it


class Inspector:
    """Builds evidence."""

    def __init__(self, git: Git, clock: Callable[[], str]) -> None:
        self._git = git
        self._clock = clock

    async def look(self, place: Place, *, omit: Sequence[str] | None = None) -> Seen:
        """Returns what can be seen of a lane now; with `omit`, the tree's fingerprint without those paths."""
        at = self._clock()
        root, admin = unpack(place.path), unpack(place.admin)
        identity = try_(lambda: identify(root))
        apart = try_(lambda: _require_agreement(admin, root))
        both = (apart, apart) if isinstance(apart, Unknown) else await self._status_and_index(admin, root)
        status, index = both
        head = _head(status)
        return Seen(
            at=at,
            identity=identity,
            head=head,
            branch=_branch(status),
            locked=try_(lambda: _lock_of(admin)),
            changed=status if isinstance(status, Unknown) else _packed(each.path for each in status.changes),
            untracked=status if isinstance(status, Unknown) else _packed(_plain(status.untracked)),
            ignored=status if isinstance(status, Unknown) else _packed(status.ignored),
            obstacles=_obstacles(status, index, root, admin),
            fingerprint=None if omit is None else await _fingerprint(root, omit),
        )

    async def _status_and_index(
        self, admin: bytes, root: bytes
    ) -> tuple[Status | Unknown, IndexSurvey | Unknown]:
        """Asks git of tracked files while we read the index and count; of all, if there is anything else.

        Where nothing tracked has changed and there are as many files as the index has, there is no other.
        """
        early: list[_Census] = []

        async def survey() -> None:
            early.append(await trio.to_thread.run_sync(_census, admin, root))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(survey)
            status = await self._status(TRACKED, admin, root)
        [census], head = early, _head(status)
        # A flag that somebody sets meanwhile hides an edit from git: the index must be the same at the end.
        same = _is_sha1(head) and census.stamp == try_(lambda: _stamp(admin))
        index = census.index if same else try_(lambda: _survey_index(admin, head))
        if isinstance(status, Status) and not status.changes and same and _accounts_for(census):
            return status, index
        return await self._status(EVERYTHING, admin, root), index

    async def _status(self, question: Sequence[bytes], admin: bytes, root: bytes) -> Status | Unknown:
        try:
            ran = await self._git.run(*question, repository=Location(admin, root))
            return parse_status(ran.out)
        except (GitError, OSError) as error:
            return Unknown(words(error))


class _Census(msgspec.Struct, frozen=True):
    """An index, when it was read, and how many files there are."""

    stamp: Stamp | Unknown
    index: IndexSurvey | Unknown
    files: int | Unknown


def _accounts_for(census: _Census) -> bool:
    """Tells whether the index accounts for every file, given that each file of the index is there."""
    index = census.index
    if isinstance(index, Unknown) or isinstance(census.stamp, Unknown) or not index.checksum_ok:
        return False
    odd = index.hidden or index.conflicted or index.submodules or index.intent_to_add
    return not (odd or index.split or index.sparse) and census.files == index.count + 1  # and `.git`


async def _fingerprint(root: bytes, omit: Sequence[str]) -> str | Unknown:
    return await trio.to_thread.run_sync(lambda: try_(lambda: take_fingerprint(root, omit)))


def _plain(paths: Iterable[bytes]) -> Iterable[bytes]:
    return (path for path in paths if path[-1:] != b"/")


def _head(status: Status | Unknown) -> str | Unknown:
    if isinstance(status, Unknown):
        return status
    return status.head if status.head is not None else Unknown("HEAD is on a branch without a commit")


def _branch(status: Status | Unknown) -> str | Unknown | None:
    if isinstance(status, Unknown) or status.branch is None:
        return status if isinstance(status, Unknown) else None
    try:
        return "refs/heads/" + status.branch.decode("utf-8")
    except UnicodeDecodeError:
        return Unknown("the branch's name is not UTF-8")


def _obstacles(
    status: Status | Unknown, index: IndexSurvey | Unknown, root: bytes, admin: bytes
) -> tuple[Obstacle, ...] | Unknown:
    """Returns what a snapshot cannot hold, as far as it shows without a walk of the tree."""
    if isinstance(status, Unknown):
        return status
    if isinstance(index, Unknown):
        return index
    if not index.checksum_ok:
        return Unknown("the index is damaged: its checksum does not match")
    submodules = (path for path in index.submodules if os.path.lexists(os.path.join(root, path, b".git")))
    shown = [
        *_named("nested-repository", (path for path in status.untracked if path[-1:] == b"/")),
        *_named("submodule", submodules),
        *_named("hidden-flag", index.hidden),
        *_named("conflict", index.conflicted),
        *([Obstacle("split-index", registration.inside("index"))] if index.split else []),
        *([Obstacle("sparse-index", registration.inside("index"))] if index.sparse else []),
    ]
    busy = try_(lambda: registration.obstacles(admin))
    return busy if isinstance(busy, Unknown) else (*shown, *busy)


def _named(kind: str, paths: Iterable[bytes]) -> list[Obstacle]:
    return [Obstacle(kind, pack(path.rstrip(b"/"))) for path in paths]


def _packed(paths: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(pack(path.rstrip(b"/")) for path in paths)


def _survey_index(admin: bytes, head: str | Unknown) -> IndexSurvey:
    oid_bytes = len(head) // 2 if isinstance(head, str) else 20
    return survey_index(read_file(os.path.join(admin, b"index"), INDEX_LIMIT), oid_bytes)


def _census(admin: bytes, root: bytes) -> _Census:
    """Reads an index of SHA-1, which most are, and counts the files unless there are many more than that."""
    stamp = try_(lambda: _stamp(admin))
    index = try_(lambda: _survey_index(admin, SHA1))
    most = 0 if isinstance(index, Unknown) else index.count + 1
    return _Census(stamp, index, try_(lambda: count_leaves(root, most)))


def _stamp(admin: bytes) -> Stamp:
    status = os.lstat(os.path.join(admin, b"index"))
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_sha1(head: str | Unknown) -> bool:
    return isinstance(head, Unknown) or len(head) == len(SHA1)


def _lock_of(admin: bytes) -> str | None:
    locked = read_registration(admin).locked
    return None if locked is None else locked.decode("utf-8", "replace")


def _require_agreement(admin: bytes, root: bytes) -> None:
    why = pointers_agree(admin, root)
    if why is not None:
        raise RegistrationUnreadable(root, why)


def try_(observe: Callable[[], T]) -> T | Unknown:
    """Returns what was observed, or why it could not be."""
    try:
        return observe()
    except (GitError, FilesError, OSError) as error:
        return Unknown(words(error))
