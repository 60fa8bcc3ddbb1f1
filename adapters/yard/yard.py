"""What every use case needs, and how a lane is found by what people call it."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from adapters import repositories
from adapters.files.identity import identify
from adapters.git.heads import read_head
from adapters.repositories import Repository
from adapters.snapshots.capture import head_of
from domain.commands import AdoptLane
from domain.errors import AmbiguousLane, NoSuchLane
from domain.events import RepositoryRegistered
from domain.evidence import Place
from domain.paths import display, pack, unpack
from domain.states import Lane

if TYPE_CHECKING:
    from adapters.config import Settings
    from adapters.engine import Engine, Request
    from adapters.git.door import Git
    from adapters.inspector import Inspector
    from adapters.store.journal import Committed
    from adapters.store.reader import Reader, Record

PREFIX = 4  # characters of an id that are enough to name a lane
GONE = ("reaped",)


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What a request has led to. `problem` is a stable code and words where it ended before its goal."""

    lane_id: str
    lane: Lane
    position: int
    problem: tuple[str, str] | None = None
    warnings: tuple[str, ...] = ()


class Yard:
    """The means of every use case."""

    def __init__(
        self, settings: Settings, engine: Engine, reader: Reader, inspector: Inspector, git: Git
    ) -> None:
        self.settings = settings
        self.engine = engine
        self.reader = reader
        self.inspector = inspector
        self.git = git

    async def repository(self, path: bytes) -> Repository:
        """Returns the repository around a path. Raises NotARepository."""
        found = repositories.find(path)
        known = known_repository(self.reader, found.common_dir)
        return known or await repositories.describe(self.git, found)

    async def register(self, repository: Repository, request: Request) -> None:
        """Takes a repository and its main checkout under our care, unless they are already."""
        if known_repository(self.reader, repository.common) is not None:
            return
        fact = RepositoryRegistered(
            common=repository.key, root=pack(repository.root), object_format=repository.object_format
        )
        await self.engine.note(repository.stream, (fact,), request)
        if repository.root != repository.common:
            await self._adopt_primary(repository, request)

    async def _adopt_primary(self, repository: Repository, request: Request) -> None:
        lane_id, root = str(uuid4()), repository.root
        head, branch = await self._primary_head(repository)
        name = os.path.basename(root).decode("utf-8", "replace") or "primary"
        place = Place(pack(root), pack(repository.common), identify(root))
        command = AdoptLane(
            lane=lane_id,
            repository=repository.key,
            name=name,
            slug="primary",
            kind="primary",
            place=place,
            branch=branch,
            head=head,
        )
        await self.engine.handle(lane_id, command, request)

    async def _primary_head(self, repository: Repository) -> tuple[str | None, str | None]:
        """Returns the main checkout's commit and branch; without a commit only the branch."""
        text = read_head(repository.common) or b""
        branch = text.removeprefix(b"ref:").strip().decode("utf-8", "replace")
        try:
            head = await head_of(self.git, repository.common, repository.common)
        except Exception as error:
            if type(error).__name__ != "CannotCapture":
                raise
            return None, branch
        return head.oid, head.branch


def known_repository(reader: Reader, common: bytes) -> Repository | None:
    """Returns a repository that is under our care already."""
    for row in reader.repositories():
        if row["common"] == pack(common):
            sha256 = row["object_format"] == "sha256"
            return Repository(common, unpack(str(row["root"])), "sha256" if sha256 else "sha1")
    return None


def find_lane(rows: list[Record], repository: str | None, wanted: str) -> Record:
    """Returns the lane that people call so: a slug, an id or its beginning, or a path inside the lane.

    Lanes that still have a tree go before those that are gone, and of those the last one counts.
    Raises NoSuchLane, AmbiguousLane.
    """
    here = [row for row in rows if repository is None or row["repository"] == repository]
    exact = [row for row in rows if row["id"] == wanted]
    named = exact or [row for row in here if row["slug"] == wanted]
    if not named and len(wanted) >= PREFIX:
        named = [row for row in here if str(row["id"]).startswith(wanted)]
    if not named:
        named = _around(here, wanted)
    living = [row for row in named if row["state"] not in GONE]
    if len(living) == 1:
        return living[0]
    if living:
        raise AmbiguousLane(wanted, tuple(f"{row['slug']} ({str(row['id'])[:8]})" for row in living))
    if not named:
        raise NoSuchLane(wanted)
    return max(named, key=lambda row: (row["state"] == "reaped", row["position"]))


def _around(rows: list[Record], wanted: str) -> list[Record]:
    """Returns the lanes whose tree is, or holds, the path; the innermost only."""
    if "/" not in wanted and not os.path.isdir(wanted):
        return []
    place = os.path.realpath(os.fsencode(wanted))
    around = []
    for row in rows:
        path = unpack(str(row["path"])) if row["path"] else None
        if path and row["state"] not in GONE and (place == path or place.startswith(path + b"/")):
            around.append((len(path), row))
    longest = max((length for length, _ in around), default=0)
    return [row for length, row in around if length == longest]


def ended(committed: Committed, problem: tuple[str, str] | None = None, *warnings: str) -> Done:
    """Returns what a command has led to."""
    lane = committed.lane
    assert isinstance(lane, msgspec.Struct)
    lane_id = committed.stream.partition("-")[2]
    return Done(
        lane_id=lane_id, lane=lane, position=committed.last, problem=problem, warnings=tuple(warnings)
    )


def now() -> str:
    """Returns the time as the log keeps it: UTC, ISO 8601, microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def shown(path: str | None) -> str | None:
    """Returns a packed path as people read it."""
    return None if path is None else display(path)
