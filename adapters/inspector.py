"""Looking at a lane: one `git status`, and files of its registration. What cannot be seen is unknown.

Git is asked with the lane's own registration, after both pointers were compared: a lane whose `.git` file is
missing would otherwise be answered for by the repository around it.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import trio
from msgspec.structs import replace

from adapters.files.durable import read_file
from adapters.files.errors import FilesError, words
from adapters.files.identity import identify
from adapters.git.door import Location
from adapters.git.errors import GitError, GitFailed, RegistrationUnreadable, readable
from adapters.git.index import SUBMODULE, IndexSurvey, checksum_matches, header, survey_index
from adapters.git.parse import Status, parse_status
from adapters.git.registration import pointers_agree, read_registration
from adapters.ignored.classes import Rules
from adapters.ignored.evidence import classify
from adapters.snapshots.capture.survey import take_fingerprint
from adapters.snapshots.registration import registration
from adapters.snapshots.registration.neighbours import neighbour
from domain.errors import Refusal
from domain.evidence import Ignored, Obstacle, Place, Seen, Unknown
from domain.paths import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from adapters.git.door import Git

INDEX_LIMIT = 1 << 30
UNSEEN = b"could not open directory"  # of which git says no more, and lists nothing
TOO_DEEP = b"File name too long"  # for git; a capture goes there, and a reap never goes without one
STATUS = (
    b"status",
    b"--porcelain=v2",
    b"-z",
    b"--branch",
    b"--no-ahead-behind",
    b"--untracked-files=all",
    b"--ignored=matching",
    b"--no-renames",
    # What is changed in a submodule is its own filters to say; a snapshot holds all of it anyway.
    b"--ignore-submodules=dirty",
)

WITHOUT_SUBMODULES = b"--ignore-submodules=all"
SHA1 = "0" * 40
NO_INDEX = IndexSurvey(
    version=2,
    count=0,
    hidden=(),
    conflicted=(),
    submodules=(),
    intent_to_add=(),
    split=False,
    sparse=False,
    checksum_ok=True,
)
DAMAGED = replace(NO_INDEX, checksum_ok=False)
SUBMODULE_MODE = SUBMODULE.to_bytes(4, "big")

T = TypeVar("T")
Stamp = tuple[int, int, int, int]  # inode, size, times of change: git replaces an index and never rewrites it


class Inspector:
    """Builds evidence."""

    def __init__(self, git: Git, clock: Callable[[], str]) -> None:
        self._git = git
        self._clock = clock

    async def look(
        self, place: Place, *, omit: Sequence[str] | None = None, rules: Callable[[], Rules] = Rules
    ) -> Seen:
        """Returns what can be seen of a lane now; with `omit`, the tree's fingerprint without those paths.

        What is ignored is classed by `rules`, which are asked for only where something is.
        """
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
            untracked=status if isinstance(status, Unknown) else _packed(status.untracked),
            ignored=status if isinstance(status, Unknown) else await _ignored(root, status, rules),
            obstacles=_obstacles(status, index, root, admin),
            fingerprint=None if omit is None else await _fingerprint(root, omit),
        )

    async def _status_and_index(
        self, admin: bytes, root: bytes
    ) -> tuple[Status | Unknown, IndexSurvey | Unknown]:
        """Reads the index while git reads the tree; again where it is not the one that git has read."""
        early: list[tuple[Stamp | Unknown, IndexSurvey | Unknown]] = []

        async def survey() -> None:
            early.append(await trio.to_thread.run_sync(_stamped_survey, admin))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(survey)
            status = await self._status(admin, root)
        [(stamp, index)], head = early, _head(status)
        # A flag that somebody sets meanwhile hides an edit from git: the index must be the same at the end.
        if _is_sha1(head) and not isinstance(stamp, Unknown) and stamp == try_(lambda: _stamp(admin)):
            return status, index
        return status, try_(lambda: _survey_index(admin, head))

    async def _status(self, admin: bytes, root: bytes) -> Status | Unknown:
        try:
            try:
                ran = await self._git.run(*STATUS, repository=Location(admin, root))
            except GitFailed:
                # While a lane rests, its submodules' own settings name a place where nothing is.
                ran = await self._git.run(*STATUS, WITHOUT_SUBMODULES, repository=Location(admin, root))
            unseen = [line for line in ran.err.splitlines() if UNSEEN in line and not _is_too_deep(line)]
            return Unknown(readable(b"; ".join(unseen))) if unseen else parse_status(ran.out)
        except (GitError, OSError) as error:
            return Unknown(words(error))


def _is_too_deep(warning: bytes) -> bool:
    """Tells whether git could not go on because of the length of a path; its own line ends at 4,096 bytes."""
    return warning.endswith(TOO_DEEP) or len(warning) > 4000


async def _fingerprint(root: bytes, omit: Sequence[str]) -> str | Unknown:
    return await trio.to_thread.run_sync(lambda: try_(lambda: take_fingerprint(root, omit)))


async def _ignored(root: bytes, status: Status, rules: Callable[[], Rules]) -> tuple[Ignored, ...] | Unknown:
    paths = status.ignored
    if not paths:
        return ()
    changed = [each.path for each in status.changes]
    committed = [each.path for each in status.changes if each.xy[0] == "D"]
    look = partial(classify, root, paths, changed=changed, committed=committed)
    return await trio.to_thread.run_sync(lambda: try_(lambda: look(rules())))


def _head(status: Status | Unknown) -> str | Unknown:
    if isinstance(status, Unknown):
        return status
    return status.head or ""  # on a branch without a commit


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
    nested = (path.rstrip(b"/") for path in status.untracked if path[-1:] == b"/")
    repositories = dict.fromkeys((*nested, *index.submodules))
    shown = try_(lambda: _neighbours(repositories, root, admin))
    within = try_(lambda: registration.obstacles(admin))
    if isinstance(shown, Unknown) or isinstance(within, Unknown):
        return shown if isinstance(shown, Unknown) else within
    return (*shown, *within)


def _neighbours(paths: Iterable[bytes], root: bytes, admin: bytes) -> tuple[Obstacle, ...]:
    found = ((neighbour(os.path.join(root, path), admin), path) for path in paths)
    return tuple(Obstacle(kind, pack(path)) for kind, path in found if kind is not None)


def _packed(paths: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(pack(path.rstrip(b"/")) for path in paths)


def _survey_index(admin: bytes, head: str | Unknown) -> IndexSurvey:
    if head == "":
        return _survey_unborn(admin)
    oid_bytes = len(head) // 2 if isinstance(head, str) else 20
    return _survey(read_file(os.path.join(admin, b"index"), INDEX_LIMIT), oid_bytes)


def _survey(data: bytes, oid_bytes: int) -> IndexSurvey:
    """Surveys an index as far as an obstacle may be in it: without a submodule's mode there is none."""
    if SUBMODULE_MODE in data:
        return survey_index(data, oid_bytes)
    header(data, oid_bytes)
    return NO_INDEX if checksum_matches(data, oid_bytes) else DAMAGED


def _survey_unborn(admin: bytes) -> IndexSurvey:
    """Surveys the index where no commit says how long ids are here; there may be none yet."""
    path = os.path.join(admin, b"index")
    if not os.path.lexists(path):
        return NO_INDEX
    data = read_file(path, INDEX_LIMIT)
    surveyed = try_(lambda: survey_index(data, len(SHA1) // 2))
    if not isinstance(surveyed, Unknown) and surveyed.checksum_ok:
        return surveyed
    return survey_index(data, 32)  # by the wrong length there is no sense in it


def _stamped_survey(admin: bytes) -> tuple[Stamp | Unknown, IndexSurvey | Unknown]:
    """Returns the survey of an index of SHA-1, which most are, and what the file was before it was read."""
    return try_(lambda: _stamp(admin)), try_(lambda: _survey_index(admin, SHA1))


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
    except (GitError, FilesError, OSError, Refusal) as error:
        return Unknown(words(error))
