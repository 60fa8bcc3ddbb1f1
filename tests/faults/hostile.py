"""Somebody changes the world between two steps of ours: at every moment, every kind of change, then judged.

    python -m tests.faults.hostile [--scenario NAME] [--change NAME] [--within] [--killed] [--every N]
    python -m tests.faults.hostile --write

A trial lets one change happen at one moment of a scenario, starts anew with the change in place, takes the
change back, asks again, and brings the lane back whichever way it is offered. All that is compared was seen
without our code: what files and git objects there are, and how the neighbours are.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import trio

from adapters.api.problems import problem
from adapters.wiring import open_yard
from domain.errors import Refusal
from domain.states import NeedsReview, Quarantined
from tests.faults import changes_page, points
from tests.faults.changes import CHANGES, Scene
from tests.faults.changes_page import KINDS
from tests.sagas.crashes import Stopped, in_a_process
from tests.sagas.scenarios import EFFECTS, SCENARIOS, dirty, nothing, reaped
from tests.sagas.trees import walk
from tests.sagas.worlds import Open, World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.faults.points import Point

PATIENCE = 120  # seconds after which a trial hangs
PAGE = Path("docs/world-changes.md")
# Within, killed, the first and every which: that is prime to how many changes there are.
SAMPLES = ((False, False, 0, 23), (False, True, 11, 23), (True, True, 7, 97), (True, False, 53, 97))
RESTING = ("active", "quarantined", "reaped", "failed", "needs-review", "none")
SCENARIO = {each.name: each for each in SCENARIOS}
CHANGE = {each.name: each for each in CHANGES}


class Trial(msgspec.Struct, frozen=True):
    """One change at one moment; `within` counts starts of git and renames, `killed` ends us there."""

    scenario: str
    change: str
    moment: int
    within: bool = False
    killed: bool = False


class Verdict(msgspec.Struct):
    """How it went: what the command answered, where that left the lane, where it came in the end."""

    trial: Trial
    moment: str = ""
    answer: str = ""
    meanwhile: str = ""
    afterwards: str = ""
    wrong: list[str] = []

    @property
    def kind(self) -> str:
        """Returns where the lane was while the change was in place: that is what a person would have met."""
        if self.meanwhile == SCENARIO[self.trial.scenario].ends:
            return "done"
        if self.meanwhile == "needs-review":
            return "review"
        return "abandoned" if self.meanwhile in RESTING else "waits"

    def __str__(self) -> str:
        trial = self.trial
        how = " killed" * trial.killed + " within" * trial.within
        told = f"{self.answer} | {self.meanwhile} | {self.afterwards}"
        return f"{trial.scenario} {trial.change} {trial.moment}{how} ({self.moment}): {told}"


class Nothing(Exception):
    """At that moment there is nothing to do the change to, or no such moment."""


class Watch:
    """Hears of the moments and does something at one of them."""

    def __init__(self, within: bool) -> None:
        self.within = within
        self.left = -1
        self.passed: list[str] = []
        self.at = ""
        self.listening = False
        self.do: object = None

    def __call__(self, point: Point) -> None:
        if not self.listening or not _counts(point, within=self.within):
            return
        self.passed.append(point.name)
        self.left -= 1
        if self.left == -1:
            self.listening = False
            self.at = point.name
            assert callable(self.do)
            self.do()


def _counts(point: Point, *, within: bool) -> bool:
    """Tells whether the world may be another than at the moment before; between two appends it is not."""
    if point.kind == "effect":
        return True
    if point.kind == "append":
        return point.what not in EFFECTS
    return within and (point.kind == "git" or point.what == "rename_without_replacing")


class Bystanders:
    """A lane, or at least a worktree, and the main checkout, which are none of our command's business."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.place = os.path.join(os.fsencode(world.home), b"bystander")

    async def prepare(self, opened: Open, *, plain: bool) -> None:
        world = self.world
        if plain:
            world.git(world.root, "worktree", "add", "-q", "-b", "bystander", self.place)
        else:
            await opened.create("bystander")
            self.place = os.path.join(world.root, b".laneyard/worktrees/bystander")
        for place in (self.place, world.root):
            world.dirty(place)
        self.before = self.look()

    def look(self) -> dict[str, object]:
        """Returns what can be seen of them."""
        world = self.world
        admin = os.path.join(world.common, b"worktrees/bystander")
        refs = world.git(world.root, "for-each-ref", "refs/heads/main", "refs/heads/bystander", "refs/tags")
        seen: dict[str, object] = {"refs": refs, "lane": walk(self.place)}
        seen["main"] = {
            path: what
            for path, what in walk(world.root, (b".git", b".laneyard")).items()
            if not path.startswith((b".git/", b".laneyard/"))
        }
        for place, names in ((admin, FILES), (world.common, (b"HEAD", b"index", b"config"))):
            for name in names:
                path = os.path.join(place, name)
                if os.path.exists(path):
                    seen[os.fsdecode(path)] = Path(os.fsdecode(path)).read_bytes()
        return seen

    def complaints(self) -> list[str]:
        """Returns what is other than before."""
        now = self.look()
        return [
            f"{what} of a bystander has changed" for what in self.before if now.get(what) != self.before[what]
        ]


FILES = (b"HEAD", b"index", b"gitdir", b"commondir", b"locked")


class Treasure:
    """The bytes and commits that must not be lost, by git's names for them."""

    def __init__(self, scene: Scene, tree: bytes) -> None:
        self.scene = scene
        world = scene.world
        self.names = {_blob(data) for data in _contents(tree)}
        for line in world.git(tree, "ls-files", "--stage", "-z").split(b"\0")[:-1]:
            self.names.add(line.split(b" ")[1].decode())
        self.names |= set(world.git(tree, "rev-list", "HEAD").decode().split())

    def lost(self) -> list[str]:
        """Returns which of them are in no file and reached by no ref, index or log of git."""
        world = self.scene.world
        found = {_blob(data) for data in _contents(os.fsencode(world.home))}
        reached = ("rev-list", "--objects", "--all", "--reflog", "--indexed-objects")
        found |= {
            line[:40] for line in world.git(world.root, *reached).decode("utf-8", "replace").splitlines()
        }
        return sorted((self.names | self.scene.added) - self.scene.spoilt - found)


def _blob(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _contents(place: bytes) -> Iterator[bytes]:
    for path, (kind, _, data) in walk(place).items():
        if kind == "file" and not path.startswith(b"state/") and b".git" not in path.split(b"/"):
            yield data


@asynccontextmanager
async def opened_anyway(world: World) -> AsyncIterator[tuple[Open, dict[str, Exception]]]:
    """Opens the yard, whatever could not be driven on."""
    async with open_yard(world.settings) as (yard, stopped):
        yield Open(world, yard), stopped


def state_of(world: World) -> str:
    """Returns the state of the lane, none where it was never made."""
    made = any(getattr(each.fact, "slug", None) == "work" for each in world.events())
    return world.state() if made else "none"


class Judge:
    """Runs one trial."""

    def __init__(self, home: Path, trial: Trial, watch: Watch) -> None:
        self.scenario, self.change = SCENARIO[trial.scenario], CHANGE[trial.change]
        self.trial, self.watch = trial, watch
        self.world = World(home, retention=self.scenario.retention)
        self.scene = Scene(self.world)
        self.bystanders = Bystanders(self.world)
        self.treasure: Treasure | None = None
        self.undo: object = None
        self.verdict = Verdict(trial)

    def run(self) -> Verdict:
        trio.run(self.prepare)
        self.before = state_of(self.world)
        self.watch.left, self.watch.do = self.trial.moment, self.interfere
        self.watch.listening = True
        self.verdict.answer = self.attempt(self.act)
        self.watch.listening = False
        self.verdict.moment = self.watch.at
        if self.undo is None:
            raise Nothing
        self.verdict.meanwhile = self.attempt(self.look_again)
        try:
            self.undo()  # type: ignore[operator]
        except (OSError, AssertionError) as error:
            self.verdict.wrong.append(f"cannot be taken back: {error}")
            return self.verdict
        self.world.program = "git"
        if self.scenario.name == "restore-undone":  # the git that was busy ends as well
            Path(os.fsdecode(self.world.common), "worktrees", "work", "index.lock").unlink(missing_ok=True)
        self.verdict.afterwards = self.attempt(self.finish)
        self.judge()
        return self.verdict

    def attempt(self, work: object) -> str:
        """Returns what came of it; what only a bug explains is wrong."""
        try:
            return str(trio.run(work))  # type: ignore[arg-type]
        except Stopped:
            return "killed"
        except BaseException as error:
            while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
                error = error.exceptions[0]
            if isinstance(error, Stopped):
                return "killed"
            told = problem(error) if isinstance(error, Exception) else None
            if told is None:
                self.verdict.wrong.append("bug: " + "".join(traceback.format_exception(error)[-4:]))
                return f"bug {error!r}"
            return f"{told.code}: {told.detail}"

    async def prepare(self) -> None:
        async with self.world.open() as opened:
            fresh = self.scenario.prepare is nothing
            await self.bystanders.prepare(opened, plain=fresh)
            await (dirty if self.scenario.prepare is reaped else self.scenario.prepare)(opened)
            if self.scene.tree is not None:
                self.treasure = Treasure(self.scene, self.scene.tree)
            if self.scenario.prepare is reaped:
                await opened.remove()
                await opened.reap()
        self.bystanders.before = self.bystanders.look()
        if self.scenario.program:
            self.world.fake(self.scenario.program)

    def interfere(self) -> None:
        self.undo = self.change.do(self.scene)
        if self.trial.killed:
            raise Stopped

    async def act(self) -> str:
        async with opened_anyway(self.world) as (opened, _):
            await self.scenario.act(opened)
        return state_of(self.world)

    async def look_again(self) -> str:
        """Starts anew with the change in place."""
        async with opened_anyway(self.world) as (_, stopped):
            self.note_bugs(stopped)
        return state_of(self.world)

    def note_bugs(self, stopped: dict[str, Exception]) -> None:
        self.verdict.wrong += [f"stopped: {error!r}" for error in stopped.values() if problem(error) is None]

    async def finish(self) -> str:
        """Starts anew, asks again for what has not come about, and brings the lane back."""
        passed = []
        async with opened_anyway(self.world) as (opened, stopped):
            self.note_bugs(stopped)
            for _ in range(6):
                state = state_of(self.world)
                passed.append(state)
                if state not in RESTING:
                    await opened.reap()
                elif state == "needs-review":
                    await self.leave_review(opened, self.trial.moment + passed.count(state) - 1)
                elif state in ("none", "failed", self.before) and passed.count(state) == 1:
                    if self.scenario.ends == state:
                        continue
                    await self.scenario.act(opened)
                elif state in ("quarantined", "reaped"):
                    await opened.restore()
                else:
                    break
        return " > ".join(passed)

    async def leave_review(self, opened: Open, number: int) -> None:
        """Takes the way of that number out of a review, and where it is refused the way back."""
        lane = opened.lane()
        assert isinstance(lane, NeedsReview)
        ways = ["restore", "resnapshot", "discard"] if isinstance(lane.home, Quarantined) else ["discard"]
        way = ways[number % len(ways)]
        try:
            await getattr(opened, way)()
        except Refusal:
            if way == "restore":
                raise
            await opened.restore()
        if ways == ["discard"] and state_of(self.world) == "needs-review" and self.scene.tree:
            os.rename(self.scene.tree, self.scene.elsewhere + b"-aside")
            await opened.discard()
        if way == "discard":
            self.scene.spoilt |= self.scene.added | {_blob(b"late\n")}

    def judge(self) -> None:
        """Adds what is wrong now that all is over."""
        wrong, state = self.verdict.wrong, state_of(self.world)
        if state not in RESTING:
            wrong.append(f"stuck: {state}")
        good = (
            ("active", "failed") if self.before in ("none", "active") or not self.change.forever else RESTING
        )
        if state not in good and not self.change.forever:
            wrong.append(f"does not come back: {state}")
        if self.scenario.name == "review-discard":
            self.scene.spoilt.add(_blob(b"late\n"))
        if self.treasure is not None and not self.change.destroys:
            wrong += [f"lost: {name}" for name in self.treasure.lost()]
        wrong += self.bystanders.complaints()
        if not self.change.forever:
            wrong += [each for each in trio.run(self.world.complaints) if not self.is_theirs(each)]
        fsck = self.world.git(self.world.root, "fsck", "--no-dangling", "--connectivity-only", check=False)
        wrong += [f"fsck: {line!r}" for line in fsck.splitlines()]

    def is_theirs(self, complaint: str) -> bool:
        """Tells whether it is about a new worktree that somebody has taken from us, or its lock."""
        taken = self.change.name in ("tree-moved", "tree-replaced", "unlocked", "locked-by-them")
        return taken and complaint.endswith("/worktrees/work belongs to no lane")


def _in_child(trial: Trial, answer: Path) -> None:
    """Runs a trial, and leaves its verdict in a file."""
    signal.alarm(PATIENCE)
    watch = Watch(trial.within)
    points.install(watch)
    try:
        verdict = Judge(answer.parent, trial, watch).run()
    except Nothing:
        answer.write_bytes(msgspec.json.encode(watch.passed))
        os._exit(3)
    answer.write_bytes(msgspec.json.encode(verdict))


def tried(trial: Trial) -> Verdict | list[str]:
    """Returns the verdict, or all the moments of the scenario where the change could not be made."""
    memory = Path("/dev/shm")
    home = Path(tempfile.mkdtemp(prefix="hostile-", dir=memory if trial.change != "tree-made-anew" else None))
    answer = home / "answer"
    points.loaded()
    try:
        ended = in_a_process(lambda: _in_child(trial, answer))
        if ended == 3:
            return msgspec.json.decode(answer.read_bytes(), type=list[str])
        if ended != 0:
            return Verdict(
                trial, wrong=[f"hung: ended with {ended}" if ended < 0 else "the trial itself failed"]
            )
        return msgspec.json.decode(answer.read_bytes(), type=Verdict)
    finally:
        shutil.rmtree(home)


def moments(scenario: str, *, within: bool) -> list[str]:
    """Returns the moments of a scenario."""
    found = tried(Trial(scenario, CHANGES[0].name, 1 << 20, within))
    assert isinstance(found, list), found
    return found


def main() -> int:
    """Runs the trials that are asked for and prints what is wrong, and a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.hostile")
    parser.add_argument("--scenario", choices=SCENARIO, action="append")
    parser.add_argument("--change", choices=CHANGE, action="append")
    parser.add_argument("--moment", type=int)
    parser.add_argument("--within", action="store_true", help="also between the calls of git in one step")
    parser.add_argument("--killed", action="store_true", help="we are dead at the moment of the change")
    parser.add_argument("--every", type=int, default=1, help="only every so manieth trial")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"writes {PAGE} from a sample of all kinds")
    asked = parser.parse_args()
    points.loaded()
    with ProcessPoolExecutor(asked.jobs) as pool:
        if asked.write:
            verdicts = _written(pool, verbose=asked.verbose)
        else:
            names, kind = asked.scenario or list(SCENARIO), (asked.within, asked.killed)
            every = trials(pool, names, asked.change or list(CHANGE), *kind)
            chosen = [each for each in every if asked.moment in (None, each.moment)]
            verdicts = list(_shown(pool.map(tried, chosen[:: asked.every]), asked.verbose))
    sys.stdout.write(table(verdicts) + "\n")
    return int(any(each.wrong for each in verdicts))


def trials(
    pool: ProcessPoolExecutor, names: list[str], changes: list[str], within: bool, killed: bool
) -> list[Trial]:
    """Returns every trial of one kind."""
    counts = pool.map(_count, [(name, within) for name in names])
    return [
        Trial(name, change, moment, within, killed)
        for name, count in zip(names, counts, strict=True)
        for moment in range(count)
        for change in changes
    ]


def _count(asked: tuple[str, bool]) -> int:
    return len(moments(asked[0], within=asked[1]))


def _written(pool: ProcessPoolExecutor, *, verbose: bool) -> list[Verdict]:
    """Writes the page from every so manieth trial of each kind, and returns the verdicts."""
    verdicts, drawn = list[Verdict](), list[str]()
    for within, killed, first, step in SAMPLES:
        every = trials(pool, list(SCENARIO), list(CHANGE), within, killed)
        chosen = every[first::step]
        verdicts += _shown(pool.map(tried, chosen), verbose)
        kind = ", ".join(("killed" if killed else "live", *(["within"] if within else [])))
        drawn.append(f"{kind}: one in {step} of {len(every):,} trials, from number {first + 1} on")
    PAGE.write_text(changes_page.page(verdicts, drawn))
    return verdicts


def _shown(found: Iterator[Verdict | list[str]], verbose: bool) -> Iterator[Verdict]:
    for each in found:
        if isinstance(each, Verdict):
            if each.wrong or verbose:
                sys.stdout.write("\n    ".join((str(each), *each.wrong)) + "\n")
                sys.stdout.flush()
            yield each


def table(verdicts: list[Verdict]) -> str:
    """Returns the verdicts, counted for each change."""
    lines = [f"{'change':24} {'trials':>6}" + "".join(f" {kind:>9}" for kind in (*KINDS, "wrong"))]
    for change in CHANGE:
        here = [each for each in verdicts if each.trial.change == change]
        if here:
            kinds = Counter(each.kind for each in here)
            wrong = sum(bool(each.wrong) for each in here)
            shown = "".join(f" {kinds[kind]:9}" for kind in KINDS)
            lines.append(f"{change:24} {len(here):6}{shown} {wrong:9}")
    lines.append(f"{'all':24} {len(verdicts):6} {sum(bool(each.wrong) for each in verdicts):49}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
