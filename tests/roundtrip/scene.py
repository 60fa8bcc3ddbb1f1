"""A lane that is being made for a round trip, and the moves that make it: small, independent and by name.

A move is a function of a `Spot`, its own corner of the lane. As a generator it prepares what is to be
committed, yields, and acts once all that was prepared has been committed. Its docstring is its row in
docs/fidelity.md.
"""

from __future__ import annotations

import inspect
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sagas.worlds import World

Act = Callable[["Spot"], Iterator[None] | None]
Build = Callable[["Path"], "World"]

CLASSES = {
    1: "Changed and untracked files",
    2: "The index",
    3: "HEAD, its log and the refs of the worktree",
    4: "Operations in progress",
    5: "Ignored files",
    6: "Nested repositories and submodules",
    7: "Shapes of entries",
    8: "Kinds of repositories",
}
MOVES: dict[str, Move] = {}
FIRST, HEADS, OPERATIONS, SPARSE, USUAL, LAST = range(0, 60, 10)


class Declined(Exception):
    """Git would not do this to the lane as it is by now."""


class NotHere(Exception):
    """This machine, or this user, cannot make such a lane."""


@dataclass(frozen=True)
class Move:
    """One thing that is done to a lane; of one group a case has at most one move.

    `holds` are the codes of the refusals that it is meant to lead to.
    """

    name: str
    number: int
    act: Act
    order: int
    groups: frozenset[str]
    holds: tuple[str, ...]
    world: Build | None

    @property
    def title(self) -> str:
        """Returns what it does, in a sentence."""
        return " ".join(str(inspect.getdoc(self.act)).split()).rstrip(".")


def move(
    number: int, *, order: int = USUAL, group: str = "", holds: str = "", world: Build | None = None
) -> Callable[[Act], Act]:
    """Registers a move under its function's name."""

    def register(act: Act) -> Act:
        name = act.__name__.strip("_").replace("_", "-")
        assert name not in MOVES, name
        MOVES[name] = Move(name, number, act, order, frozenset(group.split()), tuple(holds.split()), world)
        return act

    return register


@dataclass
class Scene:
    """The lane, the world around it, and what the case has to know of what was done.

    `lost` are paths that may be let go; `untimed` those whose times git changes from outside of the lane.
    """

    world: World
    place: bytes
    includes: bool = False
    lost: set[bytes] = field(default_factory=set)
    untimed: set[bytes] = field(default_factory=set)
    goes_on: str = ""
    declined: list[str] = field(default_factory=list)

    @property
    def mark(self) -> Path:
        """Returns the file that every program of ours leaves, if anybody runs it."""
        return self.world.home / "somebody-ran"

    def run(
        self, place: bytes, *arguments: str | bytes, stdin: bytes = b"", **environment: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Runs plain git, as a user would."""
        return subprocess.run(
            ["git", *arguments],
            cwd=place,
            env={**self.world.environment, "GIT_EDITOR": "true", **environment},
            input=stdin,
            capture_output=True,
            check=False,
        )


class Spot:
    """A move's own directory in the lane, with its own chance: the same whatever other moves there are."""

    def __init__(self, scene: Scene, name: str, seed: int) -> None:
        self.scene = scene
        self.rng = random.Random(f"{seed}:{name}")
        self.own = name.encode()

    @property
    def world(self) -> World:
        """Returns the world around the lane."""
        return self.scene.world

    def rel(self, name: bytes = b"") -> bytes:
        """Returns a path of the corner, from the lane's root."""
        return os.path.join(self.own, name) if name else self.own

    def at(self, name: bytes = b"") -> bytes:
        """Returns a path of the corner, absolute."""
        return os.path.join(self.scene.place, self.rel(name))

    def write(self, name: bytes, data: bytes = b"", mode: int = 0o644) -> bytes:
        """Writes a file, and returns its path from the lane's root."""
        path = self.at(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data or b"%s %d\n" % (name, self.rng.getrandbits(40)))
        os.chmod(path, mode)
        return self.rel(name)

    def at_new(self, name: bytes) -> bytes:
        """Returns the absolute path of something that is about to be made."""
        os.makedirs(os.path.dirname(self.at(name)), exist_ok=True)
        return self.at(name)

    def link(self, name: bytes, target: bytes) -> bytes:
        """Makes a symbolic link, and returns its path from the lane's root."""
        os.makedirs(os.path.dirname(self.at(name)), exist_ok=True)
        os.symlink(target, self.at(name))
        return self.rel(name)

    def directory(self, name: bytes) -> bytes:
        """Makes a directory, and returns it absolute."""
        os.makedirs(self.at(name), exist_ok=True)
        return self.at(name)

    def git(self, *arguments: str | bytes, stdin: bytes = b"", fails: bool = False, **env: str) -> bytes:
        """Runs git in the lane. Raises Declined unless it ends as is meant here."""
        return self.git_in(self.scene.place, *arguments, stdin=stdin, fails=fails, **env)

    def git_in(
        self, place: bytes, *arguments: str | bytes, stdin: bytes = b"", fails: bool = False, **env: str
    ) -> bytes:
        """Runs git in any place. Raises Declined unless it ends as is meant here."""
        ran = self.scene.run(place, *arguments, stdin=stdin, **env)
        if ran.returncode < 0:  # a git may die of a bug of its own, and leaves its lock
            lock = self.scene.run(place, "rev-parse", "--git-path", "index.lock").stdout.rstrip(b"\n")
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(place, lock))
        if (ran.returncode != 0) != fails:
            said = ran.stderr.decode(errors="replace").splitlines()
            raise Declined(f"git {arguments}: exit {ran.returncode}: {' / '.join(said[:2])}")
        return ran.stdout

    def commit(self, *paths: bytes, message: str = "") -> str:
        """Commits these paths of the lane, and returns the commit."""
        self.git("add", "-f", "--", *paths)
        said = message or f"{self.own.decode()} {self.rng.getrandbits(32)}"
        self.git("commit", "-q", "-m", said, "--", *paths)
        return self.git("rev-parse", "HEAD").decode().strip()

    def program(self, name: str, script: str) -> str:
        """Makes a program that leaves a mark when it runs, and returns its path."""
        path = self.world.home / name
        path.write_text(f"#!/bin/sh\necho '{name}' >>'{self.scene.mark}'\n{script}\n")
        path.chmod(0o755)
        return str(path)

    def configure(self, key: str, value: str) -> None:
        """Sets something in the repository's own configuration."""
        self.git("config", key, value)


def play(scene: Scene, moves: list[Move], seed: int) -> None:
    """Makes the lane: every move prepares, all of it is committed at once, and each acts, in its order."""
    spots = [(each, Spot(scene, each.name, seed)) for each in sorted(moves, key=lambda m: (m.order, m.name))]
    acting: list[tuple[Move, Callable[[], object]]] = []
    for each, spot in spots:
        begun = each.act(spot) if inspect.isgeneratorfunction(each.act) else None
        if begun is None:
            acting.append((each, partial(each.act, spot)))
        elif _done(scene, each, partial(next, begun)):
            acting.append((each, partial(next, begun, None)))
    _commit(scene)
    for each, act in acting:
        _done(scene, each, act)


def _done(scene: Scene, each: Move, act: Callable[[], object]) -> bool:
    try:
        act()
    except (Declined, OSError) as error:  # the other moves have made it impossible
        scene.declined.append(f"{each.name}: {error}")
        return False
    return True


def _commit(scene: Scene) -> None:
    for arguments in (("add", "-A", "-f"), ("commit", "-q", "--allow-empty", "-m", "prepared")):
        ran = scene.run(scene.place, *arguments)
        assert ran.returncode == 0, ran.stderr
