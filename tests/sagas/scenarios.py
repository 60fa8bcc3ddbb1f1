"""The commands that are to survive a crash: what comes before them, what they do, and in which steps."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from domain import effects
from tests.sagas.trees import write
from tests.sagas.worlds import Open

if TYPE_CHECKING:
    Act = Callable[[Open], Awaitable[object]]

EFFECTS = {each.__name__ for each in effects.Effect.__subclasses__()}


class Scenario(msgspec.Struct, frozen=True):
    """One command. `ends` is the state of the lane that it leads to without a crash."""

    name: str
    prepare: Callable[[Open], Awaitable[object]]
    act: Callable[[Open], Awaitable[object]]
    steps: str
    ends: str
    retention: str = "7d"
    program: str = ""

    @property
    def moments(self) -> list[tuple[str, str]]:
        """Returns every moment between two steps: two for what is only written, four for what is done."""
        found = []
        for step in self.steps.split():
            if step in EFFECTS:
                found += [("before-effect", step), ("after-effect", step)]
            found += [("before-append", step), ("after-append", step)]
        return found


def place_of(opened: Open, lane: str = "work") -> bytes:
    """Returns where a lane is worked in."""
    return os.path.join(opened.world.root, b".laneyard/worktrees", lane.encode())


def resting(opened: Open) -> bytes:
    """Returns where the only lane that was put away rests."""
    quarantine = os.path.join(opened.world.root, b".laneyard/quarantine")
    (name,) = os.listdir(quarantine)
    return os.path.join(quarantine, name)


async def nothing(opened: Open) -> None:
    """The repository is not known yet."""


async def second(opened: Open) -> None:
    """Another lane."""
    await opened.create("other")


async def clean(opened: Open) -> None:
    """A lane without a change."""
    await opened.create()


async def dirty(opened: Open) -> None:
    """A lane with every kind of change, and a commit of its own."""
    await opened.create()
    write(os.path.join(place_of(opened), b"committed"), b"committed\n")
    opened.world.git(place_of(opened), "add", "committed")
    opened.world.git(place_of(opened), "commit", "-q", "-m", "second")
    opened.world.dirty(place_of(opened))


async def overgrown(opened: Open) -> None:
    """A dirty lane with ignored files and somebody's repository in it."""
    await dirty(opened)
    write(os.path.join(place_of(opened), b"build/output"), b"output\n")
    write(os.path.join(place_of(opened), b"trace.log"), b"trace\n")
    nested = os.path.join(place_of(opened), b"nested")
    os.mkdir(nested)
    opened.world.git(nested, "init", "-q")
    write(os.path.join(nested, b"theirs"), b"theirs\n")


async def cached(opened: Open) -> None:
    """A lane in which a tool has made what it can make again."""
    await opened.create()
    tag = b"Signature: 8a477f597d28d172789f06886806bc55\n"
    write(os.path.join(place_of(opened), b"build/CACHEDIR.TAG"), tag)


async def obstructed(opened: Open) -> None:
    """A lane with no place to rest."""
    await opened.create()
    write(os.path.join(opened.world.root, b".laneyard/quarantine"), b"somebody's\n")


async def removed(opened: Open) -> None:
    """A dirty lane in quarantine, with its snapshot."""
    await dirty(opened)
    await opened.remove()


async def removed_clean(opened: Open) -> None:
    """A lane in quarantine that no snapshot was taken of."""
    await opened.create()
    await opened.remove()


async def reaped(opened: Open) -> None:
    """A dirty lane of which only the snapshot is left."""
    await removed(opened)
    await opened.reap()


async def written_to(opened: Open) -> None:
    """A lane in quarantine to which somebody has written."""
    await removed(opened)
    write(os.path.join(resting(opened), b"late"), b"late\n")


async def in_review(opened: Open) -> None:
    """A lane whose deletion has met what nothing explains."""
    await written_to(opened)
    await opened.reap()


# The new worktree is made, and git dies before its index is there.
KILLED = """\
case " $* " in *" worktree add "*)
    git "$@" || exit
    lane=work
    tree="$MAIN/.laneyard/worktrees/$lane"
    rm "$MAIN/.git/worktrees/$lane/index" "$tree/plain"
    printf 'on' >"$tree/file"
    kill -9 $$
esac"""
# Somebody's git is at work in the registration that a restore has just made, and does not end.
BUSY = """case " $* " in *" --no-checkout "*)
    git "$@" || exit
    : >"$MAIN/.git/worktrees/work/index.lock"
    exit;; esac"""

CREATE, CAPTURE = "note AdoptLane CreateLane Checkout", "SnapshotLane Capture"
MOVE, DELETE = "RemoveLane Lock Move FreeBranch", "Explain Destroy Deregister"

SCENARIOS = (
    Scenario("create", nothing, lambda o: o.create(), f"{CREATE} Unlock", "active"),
    Scenario("create-second", second, lambda o: o.create(), "CreateLane Checkout Unlock", "active"),
    Scenario(
        "create-undone",
        nothing,
        lambda o: o.create(),
        f"{CREATE} {DELETE} DropBranch",
        "failed",
        program=KILLED,
    ),
    Scenario("snapshot", dirty, lambda o: o.snapshot(), CAPTURE, "active"),
    Scenario("remove-clean", clean, lambda o: o.remove(), MOVE, "quarantined"),
    Scenario("remove-dirty", dirty, lambda o: o.remove(), f"{CAPTURE} {MOVE}", "quarantined"),
    Scenario(
        "remove-forced", overgrown, lambda o: o.remove(mode="force"), f"{CAPTURE} {MOVE}", "quarantined"
    ),
    Scenario(
        "remove-branch",
        dirty,
        lambda o: o.remove(delete_branch=True),
        f"{CAPTURE} {MOVE} DropBranch",
        "quarantined",
    ),
    Scenario("remove-let-go", cached, lambda o: o.remove(), MOVE, "quarantined"),
    Scenario("remove-given-up", obstructed, lambda o: o.remove(), "RemoveLane Lock Move Unlock", "active"),
    Scenario("restore-moved", removed, lambda o: o.restore(), "RestoreLane Move Rejoin Unlock", "active"),
    Scenario("reap", removed, lambda o: o.reap(), f"ReapLane {DELETE}", "reaped"),
    Scenario(
        "reap-without-snapshot", removed_clean, lambda o: o.reap(), f"{CAPTURE} ReapLane {DELETE}", "reaped"
    ),
    Scenario(
        "restore-rebuilt", reaped, lambda o: o.restore(), "RestoreLane Checkout Apply Rejoin Unlock", "active"
    ),
    Scenario(
        "restore-undone",
        reaped,
        lambda o: o.restore(),
        f"RestoreLane Checkout Apply Apply Apply Apply {DELETE}",
        "reaped",
        program=BUSY,
    ),
    Scenario("reap-in-doubt", written_to, lambda o: o.reap(), "ReapLane Explain", "needs-review"),
    Scenario("review-put-back", in_review, lambda o: o.restore(), "RestoreLane Move Rejoin Unlock", "active"),
    Scenario(
        "review-resnapshot", in_review, lambda o: o.resnapshot(), f"{CAPTURE} ReapLane {DELETE}", "reaped"
    ),
    Scenario("review-discard", in_review, lambda o: o.discard(), f"DiscardLane {DELETE}", "reaped"),
    Scenario(
        "sweep", removed, lambda o: o.sweep("once"), f"note ReapLane {DELETE} note", "reaped", retention="0s"
    ),
)
