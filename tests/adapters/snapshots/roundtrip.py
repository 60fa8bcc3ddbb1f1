"""One round trip of one scene: into quarantine, deleted, rebuilt; and a look that is not by our code."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import EvidenceUnavailable, Refusal, UnknownIgnored
from domain.states import Active, Quarantined, Reaped
from tests.adapters.snapshots.scenes import Lane, commit
from tests.sagas.scenarios import place_of
from tests.sagas.trees import walk
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from tests.adapters.snapshots.scenes import Scene
    from tests.sagas.trees import Entry
    from tests.sagas.worlds import Open

MEMORY = Path("/dev/shm")


async def make_round_trip(scene: Scene) -> str:
    """Asserts that the lane comes back identical, or is refused and untouched; returns which of them."""
    memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    home = Path(tempfile.mkdtemp(prefix="laneyard-", dir=memory))
    try:
        world = World(home)
        commit(world, scene)
        async with world.open() as opened:
            await opened.create()
            lane = Lane(world, place_of(opened))
            for change in scene.changes:
                lane.change(change)
            answer = await _there_and_back(opened, lane.place)
        complaints = await world.complaints()
        assert complaints == [], complaints
        return answer
    finally:
        shutil.rmtree(home)


async def _there_and_back(opened: Open, place: bytes) -> str:
    before, untouched = look(opened.world, place), stamps(opened.world, place)
    with suppress(Refusal):  # the removal is refused for the same reason
        await opened.snapshot()
    assert stamps(opened.world, place) == untouched
    lost = await _put_away(opened, place)
    if lost is None:
        assert look(opened.world, place) == before
        assert stamps(opened.world, place) == untouched
        return "refused"
    reaped = await opened.reap()
    assert isinstance(reaped.lane, Reaped), reaped.problem
    restored = await opened.restore()
    assert isinstance(restored.lane, Active), restored.problem
    assert restored.warnings == ()
    after = look(opened.world, place)
    assert after[0] == {path: entry for path, entry in before[0].items() if not within(path, lost)}
    assert after[1:] == before[1:]
    return "lost what was ignored" if lost else "identical"


async def _put_away(opened: Open, place: bytes) -> frozenset[bytes] | None:
    """Removes the lane, and returns the ignored paths that this loses; None where it is refused."""
    try:
        done = await opened.remove()
    except UnknownIgnored:
        ignored = ignored_by_git(opened.world, place)
        assert ignored
        done = await opened.remove(mode="force")
        assert isinstance(done.lane, Quarantined), done.problem
        return ignored
    except EvidenceUnavailable:
        # Git cannot tell: it gives up on a submodule that has become a link, for instance.
        assert opened.world.git(place, "status", check=False) == b""
        return None
    except Refusal as refusal:
        if refusal.code != "cannot_hold":
            raise
        return None
    assert isinstance(done.lane, Quarantined), done.problem
    return frozenset()


def look(world: World, place: bytes) -> tuple[dict[bytes, Entry], bytes, bytes, bytes, bytes]:
    """Returns every entry of the tree, what git says of it and of its index, its HEAD and HEAD's log."""
    status = world.git(place, "status", "--porcelain=v2", "-z", "--branch", check=False)
    staged = world.git(place, "ls-files", "--stage", "-z")
    admin = admin_of(world, place)
    return walk(place), status, staged, read(admin + b"/HEAD"), read(admin + b"/logs/HEAD")


def stamps(world: World, place: bytes) -> tuple[object, ...]:
    """Returns the times and numbers of every entry, and the index as it is on disk."""
    seen = {}
    for path in walk(place):
        status = os.lstat(os.path.join(place, path))
        seen[path] = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_nlink)
    index = admin_of(world, place) + b"/index"
    return seen, read(index), os.lstat(index).st_mtime_ns


def ignored_by_git(world: World, place: bytes) -> frozenset[bytes]:
    """Returns what git ignores, a directory for all that is in it."""
    out = world.git(place, "status", "--porcelain", "-z", "--ignored=matching", "--untracked-files=all")
    records = (record for record in out.split(b"\0") if record.startswith(b"!! "))
    return frozenset(record[3:].rstrip(b"/") for record in records)


def within(path: bytes, roots: frozenset[bytes]) -> bool:
    """Tells whether a path is one of the roots, or below one."""
    while path and path not in roots:
        path = os.path.dirname(path)
    return path in roots


def admin_of(world: World, place: bytes) -> bytes:
    """Returns a lane's registration."""
    return os.path.join(world.common, b"worktrees", os.path.basename(place))


def read(path: bytes) -> bytes:
    """Returns a file."""
    with open(path, "rb") as file:
        return file.read()
