"""What every use case needs: the engine, the reader, the inspector, and repositories under our care."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from adapters import repositories
from adapters.files.identity import identify
from adapters.git.heads import read_head
from adapters.repositories import Repository
from adapters.snapshots.position import CannotCapture, head_of
from adapters.store.journal import ClaimTaken
from adapters.yard.concluded import Concluded, Done, conclude, ended
from adapters.yard.describe import describe
from domain.commands import AdoptLane
from domain.envelope import lane_of, stream_of
from domain.errors import CommandReused, NotARepository, VersionMismatch
from domain.events import RepositoryRegistered
from domain.evidence import Place
from domain.lane import pending
from domain.paths import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from adapters.config import Settings
    from adapters.engine import Engine, Request
    from adapters.git.door import Git
    from adapters.inspector import Inspector
    from adapters.store.reader import Reader
    from domain.states import Lane

__all__ = ["Concluded", "Done", "Yard", "ended", "known_repository"]


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

    def concluded(self, request: Request, lane_id: str) -> Concluded:
        """Returns what a request has led to in one lane so far, with the lane as it was at its end."""
        return conclude(self.reader.events(stream=stream_of(lane_id)), lane_id, request.id)

    def answered(self, request: Request) -> Concluded | None:
        """Returns what a request has led to already, if it came before. Raises CommandReused for another."""
        stream = self.asked(request)
        if stream is None:
            return None
        lane_id = lane_of(stream)
        if lane_id is None:
            raise CommandReused(request.id)
        return self.concluded(request, lane_id)

    def asked(self, request: Request) -> str | None:
        """Returns the stream that a request was answered in before. Raises CommandReused for another."""
        found = self.reader.command(request.id) if request.digest is not None else None
        if found is None:
            return None
        digest, stream, _ = found
        if digest != request.digest:
            raise CommandReused(request.id)
        return stream

    async def once(self, request: Request, stream: str, work: Callable[[], Awaitable[None]]) -> None:
        """Does what is no lane's and can be done twice without harm, unless the request has come before.

        The request is remembered in a stream once it is done. Raises CommandReused.
        """
        if self.asked(request) is None:
            await work()
            await self.engine.note(stream, (), msgspec.structs.replace(request, expected=None))

    def resumed(self, request: Request, lane_id: str) -> Request:
        """Returns the request with what it expects moved on past what it has done to the lane itself.

        A request of several commands may have been interrupted between two of them.
        """
        expected = request.expected
        if expected is None:
            return request
        later = [each for each in self.reader.events(stream=stream_of(lane_id)) if each.version > expected]
        ours = all(each.cause == request.id for each in later)
        return request.at(later[-1].version) if later and ours else request

    async def drive_on(self, lane_id: str, request: Request) -> Lane:
        """Finishes what was interrupted in a lane, if anything was, under the cause it was begun with."""
        stream = stream_of(lane_id)
        async with self.engine.alone(stream):  # somebody may be at it: what he leaves is looked at then
            lane, _, cause = self.reader.story(lane_id)
            if pending(lane) is None:
                return lane
            return await self.engine.drive(stream, lane, request.because(cause))

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
            with suppress(VersionMismatch):  # another request was quicker
                first = msgspec.structs.replace(request.beside(), expected=0)
                await self.engine.note(repository.stream, (fact,), first)
        if repository.root != repository.common and not self._has_primary(repository):
            try:
                await self._adopt_primary(repository, request)
            except ClaimTaken:  # the same, unless it is another's
                if not self._has_primary(repository):
                    raise

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
        await self.engine.handle(lane_id, command, request.beside())

    async def _primary_head(self, repository: Repository) -> tuple[str | None, str | None]:
        """Returns the main checkout's commit and branch; without a commit only the branch."""
        text = read_head(repository.common)
        if text is None:  # gone since it was found: what is at the root now is not its main checkout
            raise NotARepository(os.fsdecode(repository.root))
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
