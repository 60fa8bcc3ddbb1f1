"""What is killed: every scenario of the sagas as a command line, and a few that are only killed."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

import msgspec

from tests.sagas.scenarios import SCENARIOS, dirty, overgrown, place_of
from tests.sagas.trees import write
from tests.sagas.worlds import Open


class Life(msgspec.Struct, frozen=True):
    """A world before a command, and the command; `rest` is what is left of it once a lane `rests`."""

    name: str
    prepare: Callable[[Open], Awaitable[object]]
    line: str
    retention: str = "7d"
    program: str = ""
    rests: str = ""
    rest: str = ""


async def parted(opened: Open) -> None:
    """Another lane, from which one is to start."""
    await opened.create("other")
    write(os.path.join(place_of(opened, "other"), b"file"), b"other\n")
    opened.world.git(place_of(opened, "other"), "commit", "-q", "-a", "-m", "other")


async def rebasing(opened: Open) -> None:
    """A lane whose rebase has stopped at a conflict, half resolved."""
    await opened.create()
    lane, world = place_of(opened), opened.world
    for name in (b"file", b"plain"):
        write(os.path.join(lane, name), b"ours " + name)
        world.git(lane, "commit", "-q", "-a", "-m", f"ours {os.fsdecode(name)}")
        write(os.path.join(world.root, name), b"theirs " + name)
    world.git(world.root, "commit", "-q", "-a", "-m", "theirs")
    world.git(lane, "rebase", "main", check=False)
    write(os.path.join(lane, b"file"), b"neither\n")
    write(os.path.join(lane, b"notes"), b"what to do\n")


async def rebasing_removed(opened: Open) -> None:
    """A lane that was put away in the middle of a rebase."""
    await rebasing(opened)
    await opened.remove()


async def rebasing_reaped(opened: Open) -> None:
    """A lane that was reaped in the middle of a rebase."""
    await rebasing_removed(opened)
    await opened.reap()


async def three_removed(opened: Open) -> None:
    """Three lanes that have rested long enough; one of them is clean."""
    await dirty(opened)
    await opened.create("second")
    await opened.create("third")
    write(os.path.join(place_of(opened, "third"), b"untracked"), b"of the third\n")
    for lane in ("work", "second", "third"):
        await opened.remove(lane)


LINES = {
    "create": "create work",
    "create-second": "create work",
    "create-undone": "create work",
    "snapshot": "snapshot work",
    "remove-clean": "remove work",
    "remove-dirty": "remove work",
    "remove-forced": "remove work --force",
    "remove-branch": "remove work --delete-branch",
    "remove-let-go": "remove work",
    "remove-given-up": "remove work",
    "restore-moved": "restore work",
    "reap": "reap work",
    "reap-without-snapshot": "reap work",
    "restore-rebuilt": "restore work",
    "restore-undone": "restore work",
    "reap-in-doubt": "reap work",
    "review-put-back": "review work --put-back",
    "review-resnapshot": "review work --resnapshot",
    "review-discard": "review work --discard",
    "sweep": "sweep --apply",
}
LIVES = (
    *(Life(each.name, each.prepare, LINES[each.name], each.retention, each.program) for each in SCENARIOS),
    Life("create-parent", parted, "create work --parent other"),
    Life("remove-rebasing", rebasing, "remove work"),
    Life("restore-rebasing-moved", rebasing_removed, "restore work"),
    Life("restore-rebasing-rebuilt", rebasing_reaped, "restore work"),
    Life("remove-ignored", overgrown, "remove work --force --include-ignored"),
    Life("remove-reap", dirty, "remove work --reap", rests="quarantined", rest="reap work"),
    Life("sweep-three", three_removed, "sweep --apply", retention="0s"),
)
BY_NAME = {each.name: each for each in LIVES}
