"""The ways to put a lane away and get it back: Laneyard's, and what people do with git alone."""

from __future__ import annotations

import errno
import os
import re
import traceback
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from adapters.wiring import new_request
from adapters.yard import putting_away
from domain.errors import Refusal
from domain.paths import pack
from domain.states import Active, Quarantined, Reaped
from tests.roundtrip.looking import stamps

if TYPE_CHECKING:
    from adapters.yard.yard import Done
    from tests.roundtrip.scene import Scene
    from tests.sagas.worlds import Open, World

PLACE = b".laneyard/worktrees/work"
KINDS = ("special-file", "linked-worktree", "nested-worktrees", "missing-object", "private-tag")
COLLECT = ("-c", "gc.reflogExpire=never", "-c", "gc.reflogExpireUnreachable=never", "gc", "--prune=now", "-q")


class Ended(NamedTuple):
    """How it went: refused with these codes and nothing done, or done; with what was wrong on the way."""

    held: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    said: str = ""


class Way(ABC):
    """One way to put a lane away and get it back."""

    name: str

    @abstractmethod
    async def create(self, world: World) -> bytes:
        """Makes the lane, and returns its place."""

    @abstractmethod
    async def there_and_back(self, scene: Scene) -> Ended:
        """Puts the lane away for good and gets it back."""

    def broke(self, error: Exception) -> Ended:
        """Returns that the way ended in what nobody foresaw."""
        return Ended(problems=("".join(traceback.format_exception_only(error)).strip(),))


def collect(scene: Scene) -> tuple[str, ...]:
    """Lets git throw away what nothing keeps; but not the logs, whose dates are fixed and long ago."""
    ran = scene.run(scene.world.root, *COLLECT)
    return (f"gc: {ran.stderr.decode(errors='replace')}",) if ran.returncode else ()


class Laneyard(Way):
    """Removed, reaped, collected, and restored by another process of the service."""

    name = "laneyard"

    async def create(self, world: World) -> bytes:
        async with world.open() as opened:
            await opened.create()
        return os.path.join(world.root, PLACE)

    async def there_and_back(self, scene: Scene) -> Ended:
        ended = await self._away(scene)
        if ended is None:
            problems = collect(scene)
            async with scene.world.open() as opened:
                restored = await opened.restore()
            if not isinstance(restored.lane, Active) or restored.warnings or restored.problem:
                problems += (f"not restored: {restored.problem} {restored.warnings}",)
            ended = Ended(problems=problems + _not_told(scene))
        return ended._replace(problems=ended.problems + await _complaints(scene))

    async def _away(self, scene: Scene) -> Ended | None:
        """Removes and reaps the lane; returns how it was refused, or went wrong."""
        before = stamps(scene.place)
        async with scene.world.open() as opened:
            try:
                done = await remove(opened, includes=scene.includes)
            except Refusal as refusal:
                touched = () if stamps(scene.place) == before else ("refused, and the lane was touched",)
                return Ended(codes(refusal), touched, str(refusal))
            if not isinstance(done.lane, Quarantined):
                return Ended(problems=(f"not removed: {done.problem}",))
            try:
                reaped = await opened.reap()
            except Refusal as refusal:  # it rests whole, and must come back from there
                return Ended(codes(refusal), await _put_back(opened), str(refusal))
        if isinstance(reaped.lane, Reaped):
            return None
        return Ended(problems=(f"not reaped: {reaped.problem} {reaped.warnings}",))


async def _put_back(opened: Open) -> tuple[str, ...]:
    back = await opened.restore()
    return () if isinstance(back.lane, Active) else (f"not put back: {back.problem}",)


async def _complaints(scene: Scene) -> tuple[str, ...]:
    """Returns what is wrong with the log, the disk against the log, and what was left about."""
    try:
        return tuple(await scene.world.complaints())
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return ()  # the scratch world's own walk ends at PATH_MAX


async def remove(opened: Open, *, includes: bool) -> Done:
    """Puts the lane away, with its ignored files where that is asked for."""
    repository, request = await opened.repository(), new_request(opened.world.settings)
    return await putting_away.remove(
        opened.yard,
        repository,
        opened.row(),
        request,
        mode="safe",
        delete_branch=False,
        include=includes,
    )


def codes(refusal: Refusal) -> tuple[str, ...]:
    """Returns the code of a refusal, and the kinds of what could not be held."""
    told = f"{refusal} {refusal.details}"
    kinds = tuple(kind for kind in KINDS if re.search(rf"(?<![\w-]){kind}", told))
    return kinds or (refusal.code,)


def _not_told(scene: Scene) -> tuple[str, ...]:
    """Returns what was let go without a word in the log."""
    log = [msgspec.json.encode(each.fact).decode() for each in scene.world.events()] if scene.lost else []
    gone = [path for path in sorted(scene.lost) if not os.path.lexists(os.path.join(scene.place, path))]
    untold = [path for path in gone if not any(pack(path) in fact for fact in log)]
    return tuple(f"let go and not named in the log: {path!r}" for path in untold)


class Plain(Way):
    """`git worktree remove`, and `git worktree add` of what HEAD was."""

    name = "git worktree remove"
    force: tuple[str, ...] = ()

    async def create(self, world: World) -> bytes:
        place = os.path.join(world.root, PLACE)
        world.git(world.root, "worktree", "add", "-q", "-b", "work", place)
        return place

    async def there_and_back(self, scene: Scene) -> Ended:
        head = _head(scene)
        if refused := self._away(scene):
            return Ended(held=(refused,))
        problems = collect(scene)
        return Ended(problems=problems + _again(scene, *head) + self._unpack(scene))

    def _away(self, scene: Scene) -> str:
        ran = scene.run(scene.world.root, "worktree", "remove", *self.force, scene.place)
        return "refused" if ran.returncode and os.path.lexists(os.path.join(scene.place, b".git")) else ""

    def _unpack(self, scene: Scene) -> tuple[str, ...]:
        return ()


def _head(scene: Scene) -> tuple[str, ...]:
    symbolic = scene.run(scene.place, "symbolic-ref", "-q", "--short", "HEAD").stdout.decode().strip()
    commit = scene.run(scene.place, "rev-parse", "-q", "--verify", "HEAD").stdout.decode().strip()
    return (symbolic,) if symbolic else ("--detach", commit)


def _again(scene: Scene, *head: str) -> tuple[str, ...]:
    *options, what = head
    ran = scene.run(scene.world.root, "worktree", "add", "-q", *options, scene.place, what)
    return (f"worktree add: {ran.stderr.decode(errors='replace')}",) if ran.returncode else ()


class Forced(Plain):
    """`git worktree remove --force`."""

    name = "git worktree remove --force"
    force = ("--force", "--force")


class Stash(Forced):
    """`git stash -u`, the worktree removed by force and added again, and `git stash pop --index`."""

    name = "git stash -u"

    async def there_and_back(self, scene: Scene) -> Ended:
        before = scene.run(scene.place, "rev-parse", "-q", "--verify", "refs/stash").stdout
        head = _head(scene)
        if scene.run(scene.place, "stash", "push", "-q", "-u").returncode:
            return Ended(held=("refused",))
        self._stashed = scene.run(scene.place, "rev-parse", "-q", "--verify", "refs/stash").stdout != before
        if refused := self._away(scene):
            return Ended(problems=(refused,))
        problems = collect(scene)
        return Ended(problems=problems + _again(scene, *head) + self._unpack(scene))

    def _unpack(self, scene: Scene) -> tuple[str, ...]:
        if not self._stashed or not os.path.isdir(scene.place):
            return ()
        ran = scene.run(scene.place, "stash", "pop", "-q", "--index")
        return ("stash pop failed",) if ran.returncode else ()


WAYS: tuple[type[Way], ...] = (Laneyard, Stash, Plain, Forced)
