"""What every use case needs: the engine, the reader, the inspector, and repositories under our care."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from adapters import repositories
from adapters.files.identity import identify
from adapters.git.heads import read_head
from adapters.repositories import Repository
from adapters.snapshots.capture import CannotCapture, head_of
from adapters.store.journal import Committed
from adapters.yard.describe import describe
from domain.commands import AdoptLane
from domain.envelope import lane_of
from domain.errors import CommandReused
from domain.events import RepositoryRegistered
from domain.evidence import Place
from domain.paths import pack, unpack
from domain.states import Lane

if TYPE_CHECKING:
    from adapters.config import Settings
    from adapters.engine import Engine, Request
    from adapters.git.door import Git
    from adapters.inspector import Inspector
    from adapters.store.reader import Reader


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

    def answered(self, request: Request) -> Committed | None:
        """Returns what a request has led to already, if it came before. Raises CommandReused for another.

        The lane is given as it is now, which may be later than the answer.
        """
        if request.digest is None:
            return None
        found = self.reader.command(request.id)
        if found is None:
            return None
        digest, stream, position = found
        if digest != request.digest:
            raise CommandReused(request.id)
        lane, version = self.reader.lane(lane_of(stream) or "")
        events = [each for each in self.reader.events(stream=stream) if each.cause == request.id]
        return Committed(
            stream=stream,
            lane=lane,
            version=version,
            first=events[0].position,
            last=max(position, events[-1].position),
            facts=tuple(each.fact for each in events),
            replayed=True,
        )

    async def repository(self, path: bytes) -> Repository:
        """Returns the repository around a path. Raises NotARepository."""
        found = repositories.find(path)
        known = known_repository(self.reader, found.common_dir)
        return known or await describe(self.git, found)

    async def register(self, repository: Repository, request: Request) -> None:
        """Takes a repository and its main checkout under our care: each of the two unless it is already."""
        if known_repository(self.reader, repository.common) is None:
            fact = RepositoryRegistered(
                common=repository.key, root=pack(repository.root), object_format=repository.object_format
            )
            await self.engine.note(repository.stream, (fact,), request)
        if repository.root != repository.common and not self._has_primary(repository):
            await self._adopt_primary(repository, request)

    def _has_primary(self, repository: Repository) -> bool:
        rows = self.reader.lanes()
        return any(row["repository"] == repository.key and row["kind"] == "primary" for row in rows)

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
        await self.engine.handle(lane_id, command, request.aside())

    async def _primary_head(self, repository: Repository) -> tuple[str | None, str | None]:
        """Returns the main checkout's commit and branch; without a commit only the branch."""
        text = read_head(repository.common) or b""
        branch = text.removeprefix(b"ref:").strip().decode("utf-8", "replace")
        try:
            head = await head_of(self.git, repository.common, repository.common)
        except CannotCapture:
            return None, branch
        return head.oid, head.branch


def known_repository(reader: Reader, common: bytes) -> Repository | None:
    """Returns a repository that is under our care already."""
    for row in reader.repositories():
        if row["common"] == pack(common):
            sha256 = row["object_format"] == "sha256"
            return Repository(common, unpack(str(row["root"])), "sha256" if sha256 else "sha1")
    return None


def ended(committed: Committed, problem: tuple[str, str] | None = None, *warnings: str) -> Done:
    """Returns what a command has led to."""
    lane = committed.lane
    assert isinstance(lane, msgspec.Struct)
    lane_id = committed.stream.partition("-")[2]
    return Done(
        lane_id=lane_id, lane=lane, position=committed.last, problem=problem, warnings=tuple(warnings)
    )
