"""Our side: the use cases as the command line calls them, on an engine that is already running."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.lookup import find_lane
from adapters.wiring import new_request
from adapters.yard import create, ending, putting_away
from domain.paths import unpack
from domain.states import Active, Quarantined, Reaped

if TYPE_CHECKING:
    from adapters.repositories import Repository
    from adapters.store.reader import Record
    from adapters.yard.yard import Done, Yard


class Lane:
    """One lane, by its name; every method is a whole request, from finding the lane to its last event."""

    def __init__(self, yard: Yard, root: Path, name: str) -> None:
        self._yard, self._root, self._name = yard, root, name

    @property
    def path(self) -> Path:
        row = find_lane(self._yard.reader.lanes(), None, self._name)
        return Path(os.fsdecode(unpack(str(row["path"]))))

    @property
    def state(self) -> str:
        return str(self._row()["state"])

    async def create(self) -> None:
        wish = create.Wish(name=self._name)
        repository = await self._repository()
        done = await create.create(self._yard, repository, wish, new_request(self._yard.settings))
        _expect(done, Active)

    async def look(self) -> None:
        lane, _ = self._yard.reader.lane(str(self._row()["id"]))
        await self._yard.inspector.look(putting_away.place_of(lane, "looked at"))

    async def remove(self) -> None:
        repository, row = await self._repository(), self._row()
        request = new_request(self._yard.settings)
        done = await putting_away.remove(
            self._yard, repository, row, request, mode="safe", delete_branch=False
        )
        _expect(done, Quarantined)

    async def snapshot(self) -> None:
        done = await putting_away.snapshot(self._yard, self._row(), new_request(self._yard.settings))
        _expect(done, Active)

    async def restore(self) -> None:
        repository, row = await self._repository(), self._row()
        done = await ending.restore(self._yard, repository, row, new_request(self._yard.settings))
        _expect(done, Active)

    async def reap(self) -> None:
        done = await ending.reap(self._yard, self._row(), new_request(self._yard.settings))
        _expect(done, Reaped)

    async def _repository(self) -> Repository:
        return await self._yard.repository(os.fsencode(self._root))

    def _row(self) -> Record:
        return find_lane(self._yard.reader.lanes(), None, self._name)


def _expect(done: Done, state: type) -> None:
    if not isinstance(done.lane, state) or done.problem is not None:
        raise RuntimeError(f"the lane is {type(done.lane).__name__}: {done.problem}")
