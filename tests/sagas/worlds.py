"""A scratch repository with a home of its own, a yard over it, and an independent look at all of it."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING

from adapters import reality
from adapters.config import Configuration, GitSettings, Quarantine, Settings
from adapters.lookup import find_lane
from adapters.store.connection import connect
from adapters.store.reader import Reader
from adapters.store.verify import verify
from adapters.wiring import new_request, open_yard
from adapters.yard import create, ending, putting_away
from adapters.yard.yard import known_repository
from domain.states import name
from tests.sagas.trees import DIRTY_INDEX, commit_files, disturb
from tests.sagas.trees import walk as walk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from adapters.repositories import Repository
    from adapters.store.reader import Record
    from adapters.yard.yard import Done, Yard
    from domain.envelope import Envelope
    from domain.events import Mode
    from domain.states import Lane


class World:
    """One repository, its lanes and one state directory, all below `home`."""

    def __init__(
        self,
        home: Path,
        *options: str,
        root: bytes = b"root",
        program: str = "git",
        retention: str = "7d",
    ) -> None:
        self.home = home
        self.program = program
        self.retention = retention
        self.root = os.path.join(os.fsencode(home), root)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home),
            "XDG_STATE_HOME": str(home),
            "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            **{f"GIT_{who}_{what}": told for who in ("AUTHOR", "COMMITTER") for what, told in WHO},
        }
        os.mkdir(self.root)
        self.git(self.root, "init", "-q", "-b", "main", *options)
        commit_files(self)

    @property
    def settings(self) -> Settings:
        """Returns what the wiring needs."""
        return Settings(
            state_dir=os.fsencode(self.home / "state"),
            environment=self.environment,
            client="test",
            configuration=Configuration(
                quarantine=Quarantine(retention=self.retention), git=GitSettings(program=self.program)
            ),
        )

    @property
    def common(self) -> bytes:
        """Returns the repository's git directory."""
        inner = os.path.join(self.root, b".git")
        return inner if os.path.isdir(inner) else self.root

    def git(self, place: bytes, *arguments: str | bytes, stdin: bytes = b"", check: bool = True) -> bytes:
        """Runs the plain git program, as a user would."""
        ran = subprocess.run(
            ["git", *arguments],
            cwd=place,
            env=self.environment,
            input=stdin,
            capture_output=True,
            check=False,
        )
        assert not check or ran.returncode == 0, (arguments, ran.stderr)
        return ran.stdout

    def fake(self, script: str) -> None:
        """Puts a program in git's place: `$WORLD` is where all of this is, `$MAIN` the main checkout."""
        program = self.home / "fake-git"
        places = f"WORLD='{self.home}'\nMAIN='{os.fsdecode(self.root)}'"
        program.write_text(f'#!/bin/sh\n{places}\n{script}\nexec git "$@"\n')
        program.chmod(0o755)
        self.program = str(program)

    @asynccontextmanager
    async def open(
        self, notice: Callable[[str, str], None] = lambda moment, step: None
    ) -> AsyncIterator[Open]:
        """Opens the yard, which drives on what was interrupted; nothing may be left that could not be."""
        async with open_yard(self.settings, notice=notice) as (yard, stopped):
            assert stopped == {}
            yield Open(self, yard)

    def dirty(self, place: bytes) -> None:
        """Makes every kind of change in a lane."""
        disturb(place)
        self.git(place, "add", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=DIRTY_INDEX)
        disturb(place, again=True)

    def events(self, after: int = 0) -> list[Envelope]:
        """Returns the log after a position."""
        if not os.path.exists(self.settings.store):
            return []
        with Reader(self.settings.store) as reader:
            return list(reader.events(after=after))

    def tags(self, after: int = 0) -> list[str]:
        """Returns what happened after a position."""
        return [event.type for event in self.events(after)]

    def state(self, slug: str = "work") -> str:
        """Returns what the log says of the last lane with this slug, also of one that was undone."""
        planned = [each for each in self.events() if each.type == "creation.planned@1"]
        made = [each.fact for each in planned if getattr(each.fact, "slug", None) == slug]
        with Reader(self.settings.store) as reader:
            return name(reader.lane(str(getattr(made[-1], "lane", "")))[0])

    async def complaints(self) -> list[str]:
        """Returns what is wrong with the log, with the disk against the log, and what was left about."""
        if not os.path.exists(self.settings.store):
            return self.litter()
        with closing(connect(self.settings.store, read_only=True)) as connection:
            found = [str(each) for each in verify(connection)]
        async with self.open() as opened:
            found += [
                each.what
                async for each in reality.differences(
                    opened.yard.git, opened.yard.reader, self.settings.state_dir
                )
            ]
        return [*found, *self.litter()]

    def litter(self) -> list[str]:
        """Returns the files that only something unfinished leaves."""
        places = (self.common, os.path.join(os.fsencode(self.home), b"state"))
        paths = (path for place in places for path in walk(place))
        found = [os.fsdecode(path) for path in paths if LITTER.search(path)]
        return [*found, *(os.fsdecode(path) for path in walk(self.root) if b"/.laneyard-" in path)]

    def look(self) -> dict[str, object]:
        """Returns everything that can be seen of the world, without our code, ids and paths made equal."""
        same = self._equaliser()
        listed = self.git(self.root, "worktree", "list", "--porcelain", "-z")
        places = [each[9:] for each in listed.split(b"\0") if each.startswith(b"worktree ")]
        seen: dict[str, object] = {
            "tree": {
                same(path): (*fact[:2], same(fact[2])) for path, fact in walk(self.root, (b".git",)).items()
            },
            "worktrees": same(listed),
            "refs": sorted(same(self.git(self.root, "for-each-ref")).splitlines()),
            "admin": sorted(same(path) for path in walk(os.path.join(self.common, b"worktrees"))),
            "ours": sorted(same(path) for path in walk(os.path.join(self.common, b"laneyard"))),
            "snapshots": sorted(
                same(path)
                for path in walk(os.path.join(self.settings.state_dir, b"snapshots"))
                if path.endswith(b"manifest.json")
            ),
        }
        for place in places:
            if os.path.isdir(place) and place != self.common:
                seen[f"of {os.fsdecode(same(place))}"] = self.index_of(place)
        return seen

    def index_of(self, place: bytes) -> tuple[bytes, bytes]:
        """Returns what git says of a worktree and of its index."""
        status = self.git(place, "status", "--porcelain=v2", "-z", "--branch", check=False)
        return status, self.git(place, "ls-files", "--stage", "-v", "-z", check=False)

    def _equaliser(self) -> Callable[[bytes], bytes]:
        names: dict[bytes, bytes] = {os.fsencode(self.home): b"HOME"}
        made = taken = 0
        for event in self.events():
            lane, snapshot = event.stream.partition("-")[2], getattr(event.fact, "snapshot", None)
            if event.type == "creation.planned@1":
                made += 1
                names |= {lane.encode(): b"LANE-%d" % made, lane[:8].encode(): b"LANE8-%d" % made}
            elif event.type == "snapshot.planned@2" and isinstance(snapshot, str):
                taken += 1
                names[snapshot.encode()] = b"SNAPSHOT-%d" % taken

        def same(text: bytes) -> bytes:
            for name_, instead in names.items():
                text = text.replace(name_, instead)
            return text

        return same


class Open:
    """What people ask of a yard that is open: every command finds the lane `work` unless told otherwise."""

    def __init__(self, world: World, yard: Yard) -> None:
        self.world = world
        self.yard = yard

    def row(self, lane: str = "work") -> Record:
        """Returns the lane's row."""
        return find_lane(self.yard.reader.lanes(), None, lane)

    def lane(self, lane: str = "work") -> Lane:
        """Returns the lane as its stream tells it."""
        return self.yard.reader.lane(str(self.row(lane)["id"]))[0]

    def state(self, lane: str = "work") -> str:
        """Returns the name of the lane's state."""
        return self.world.state(lane)

    async def repository(self) -> Repository:
        """Returns the world's repository."""
        known = known_repository(self.yard.reader, self.world.common)
        return known or await self.yard.repository(self.world.root)

    async def create(self, name: str = "work", **wish: str) -> Done:
        """Makes a lane."""
        request = new_request(self.world.settings)
        wished = create.Wish(name=name, **wish)
        return await create.create(self.yard, await self.repository(), wished, request)

    async def snapshot(self, lane: str = "work") -> Done:
        """Captures it."""
        return await putting_away.snapshot(self.yard, self.row(lane), new_request(self.world.settings))

    async def remove(self, lane: str = "work", *, mode: Mode = "safe", delete_branch: bool = False) -> Done:
        """Puts it away."""
        return await putting_away.remove(
            self.yard,
            await self.repository(),
            self.row(lane),
            new_request(self.world.settings),
            mode=mode,
            delete_branch=delete_branch,
        )

    async def restore(
        self, lane: str = "work", *, edition: int | None = None, snapshot: str | None = None
    ) -> Done:
        """Brings it back."""
        return await ending.restore(
            self.yard,
            await self.repository(),
            self.row(lane),
            new_request(self.world.settings),
            edition=edition,
            snapshot=snapshot,
        )

    async def reap(self, lane: str = "work") -> Done:
        """Deletes its tree."""
        return await ending.reap(self.yard, self.row(lane), new_request(self.world.settings))

    async def resnapshot(self, lane: str = "work") -> Done:
        """Captures what a review has looked at, and deletes it."""
        return await ending.resnapshot(self.yard, self.row(lane), new_request(self.world.settings))

    async def discard(self, lane: str = "work") -> Done:
        """Deletes what a review has looked at."""
        return await ending.discard(self.yard, self.row(lane), new_request(self.world.settings))

    async def sweep(self, command: str | None = None) -> list[ending.Swept]:
        """Deletes what has rested long enough; with an id the same sweep may be asked for again."""
        request = new_request(self.world.settings, command, b"sweep" if command else None)
        return await ending.sweep(self.yard, None, request)


LITTER = re.compile(rb"(?<!laneyard)\.lock$|(^|/)retired-|(^|/)\.laneyard-")
WHO = (("NAME", "Ada"), ("EMAIL", "ada@example.org"), ("DATE", "2024-05-06T07:08:09+0000"))
