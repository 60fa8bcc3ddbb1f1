"""Errors instead of death: one call of ours or one git goes wrong, once or from then on, and all is judged.

`python -m tests.faults.errors` runs every error at every point of every scenario; `--scenario`, `--fault` and
`--every` choose among them. Each case is a process of its own in a world of its own.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import os
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec
import trio

from adapters.api import showing
from adapters.api.answers import NotReached
from adapters.api.concluding import changed
from adapters.api.problems import problem
from adapters.config import GitSettings
from adapters.store.errors import StoreMissing
from adapters.wiring import open_yard
from adapters.yard.concluded import Done
from domain.creation import KEPT
from domain.errors import Refusal
from domain.events import LaneSnapshotted
from tests.adapters.volumes import fill, volume
from tests.faults.points import Point, install, loaded
from tests.sagas.crashes import in_a_process
from tests.sagas.scenarios import SCENARIOS, Scenario
from tests.sagas.trees import walk
from tests.sagas.worlds import Open, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapters.config import Settings

ERRORS = ("ENOSPC", "EIO", "EACCES", "EROFS", "EMFILE")
# Calls that may be done and still report an error: what waits for the disk, or goes over a network.
LATE = ("fsync", "sync_file_system", "rename", "rename_without_replacing", "unlink", "mkdir", "link")
FULL = "full disk"  # a real one: every write of ours, of git's and of SQLite's fails from the point on
PATIENCE = 120  # seconds after which a case counts as stuck
ANSWER = 3.0  # seconds that git has where it is to hang; else the usual
VOLUME = 12  # megabytes

NOWHERE = Point("before", "call", "", "")

# What is run in git's place: `$GIT` is the real one.
GIT = {
    "exit-1": "echo 'error: no' >&2; exit 1",
    "exit-128": "echo 'fatal: unable to go on' >&2; exit 128",
    "silent": "exit 0",
    "mute": '"$GIT" "$@" >/dev/null',
    "random": """"$GIT" "$@" >/dev/null; printf '\\377\\000\\001 4711 no\\n\\177\\n'""",
    "truncated": 'out=$("$GIT" "$@" | od -An -v -tx1 | tr -d " \\n"); half=$((${#out} / 4 * 2)); '
    "printf '%s' \"$out\" | head -c $half | "
    "sed 's/../\\\\x&/g' | xargs -0 printf '%b'",
    "flood": '"$GIT" "$@" >/dev/null; exec yes',
    "hang": "exec sleep 1000",
    "killed-before": "kill -9 $$",
    "killed-after": '"$GIT" "$@"; kill -9 $$',
    "crashed-after": '"$GIT" "$@"; kill -SEGV $$',
}
SLOW = ("hang", "truncated", "mute", "random", "flood")  # what may keep us waiting for an answer


class Fault(msgspec.Struct, frozen=True):
    """What goes wrong: an errno by name, a way of git's, or a full disk.

    `lasting` ones go on until the process ends; `late` ones come after the call was done.
    """

    name: str
    lasting: bool = False
    late: bool = False

    @property
    def title(self) -> str:
        """Returns the fault in a few words."""
        return " ".join(
            [self.name, *(["for ever"] if self.lasting else []), *(["late"] if self.late else [])]
        )


class Spot(msgspec.Struct, frozen=True):
    """A point, and which of the times that it is come by, from 0."""

    point: Point
    time: int = 0


class Said(msgspec.Struct):
    """What whoever asked was told; `code` is none where it is done, and `outcome` empty for a traceback."""

    outcome: str
    code: str | None = None
    words: str = ""
    struck: bool = False
    unfinished: list[str] = []
    notes: list[str] = []


class Verdict(msgspec.Struct):
    """How a case ended: `forward`, `undone` or `review`, and what is wrong with it (`trouble`)."""

    scenario: str
    spot: Spot
    fault: Fault
    said: Said
    ended: str = ""
    trouble: list[str] = msgspec.field(default_factory=list)

    @property
    def line(self) -> str:
        """Returns the verdict as one line."""
        told = f"{self.said.outcome or 'traceback'}/{self.said.code or '-'}"
        wrong = f"  !! {' | '.join(self.trouble)}" if self.trouble else ""
        where = f"{self.scenario}: {self.spot.point.name} #{self.spot.time}"
        return f"{where}: {self.fault.title} -> {told}, {self.ended}{wrong}"


class Impatient(World):
    """A world whose git must answer soon."""

    patience = 0.0

    @property
    def settings(self) -> Settings:
        """Returns the usual settings, with other times."""
        settings = super().settings
        if not self.patience:
            return settings
        git = GitSettings(program=self.program, read_timeout=self.patience, write_timeout=self.patience)
        configuration = msgspec.structs.replace(settings.configuration, git=git)
        return msgspec.structs.replace(settings, configuration=configuration)

    def last(self) -> str:
        """Returns what was last written down, if anything was."""
        return next(reversed(self.tags()), "")

    def stands(self) -> str | None:
        """Returns the state of the lane, or none where there is no such lane."""
        try:
            return self.state()
        except (IndexError, StoreMissing):
            return None

    def instead(self, fault: Fault) -> bytes:
        """Writes the program that is run in git's place, and returns its path."""
        path = self.home / "bad-git"
        path.write_text(f"#!/bin/sh\nGIT='{self.program}'\n{GIT[fault.name]}\n")
        path.chmod(0o755)
        return os.fsencode(path)


class Reference(msgspec.Struct, frozen=True):
    """How a scenario runs where nothing goes wrong, and all the spots that it comes by."""

    before: str
    after: str
    lost: frozenset[str]
    outcome: str
    milestone: str
    spots: tuple[tuple[Point, int], ...]


@contextmanager
def made(scenario: Scenario, *, on_volume: bool = False) -> Iterator[Impatient]:
    """Lends a world where the scenario can begin; on a volume of its own it can be filled."""
    memory = Path("/dev/shm")
    base = Path(tempfile.mkdtemp(prefix="errors-", dir=memory if memory.is_dir() else None))
    try:
        with ExitStack() as stack:
            home = base / "home"
            if on_volume:
                stack.enter_context(volume(home, VOLUME))
            else:
                home.mkdir()
            world = Impatient(home, retention=scenario.retention)
            trio.run(_in, world, scenario.prepare)
            if scenario.program:
                world.fake(scenario.program)
            yield world
    finally:
        shutil.rmtree(base)


async def _in(world: World, act: Callable[[Open], object]) -> object:
    async with world.open() as opened:
        return await act(opened)  # type: ignore[misc]


async def _nothing(opened: Open) -> None:
    """Only opens the yard."""


@cache
def reference(scenario: Scenario) -> Reference:
    """Runs a scenario without an error."""
    with made(scenario) as world:
        before, held = sight(world), contents(world)
        heard = world.home / "heard"
        said = _asked_in_a_process(world, scenario, Spot(NOWHERE), Fault(""), heard)
        assert said.outcome, said.words
        points = [msgspec.json.decode(line, type=Point) for line in heard.read_bytes().splitlines()]
        count: Counter[Point] = Counter(points)
        spots = tuple((point, times) for point, times in count.items())
        lost = frozenset(held.keys() - contents(world).keys())
        return Reference(before, sight(world), lost, said.outcome, world.last(), spots)


def faults(point: Point) -> list[Fault]:
    """Returns what can go wrong at a point."""
    if point.kind == "call" and point.moment == "before":
        return [Fault(name, lasting) for name in ERRORS for lasting in (False, True)]
    if point.kind == "call":
        late = ("EIO", "ENOSPC") if point.what in LATE[:2] else ("EIO",)
        return [Fault(name, late=True) for name in late] if point.what in LATE else []
    if point.kind == "git" and point.moment == "before":
        return [Fault(name) for name in GIT]
    return []


def cases(scenario: Scenario) -> Iterator[tuple[Spot, Fault]]:
    """Yields every case of a scenario: the first time at each point, and one in their midst."""
    for point, times in reference(scenario).spots:
        for fault in faults(point):
            yield Spot(point), fault
            if times > 1 and (point.kind == "git" or (fault.name == "EIO" and not fault.lasting)):
                yield Spot(point, times // 2), fault
        if os.geteuid() == 0 and point.moment == "before" and point.kind in ("effect", "append", "git"):
            yield Spot(point), Fault(FULL)


def sample(name: str) -> list[tuple[Scenario, Spot, Fault]]:
    """Returns a case of one fault for each call or subcommand of git that it can come in, spread over all."""
    found: dict[str, list[tuple[Scenario, Spot, Fault]]] = {}
    for scenario in SCENARIOS:
        for spot, fault in cases(scenario):
            if fault.name == name:
                found.setdefault(spot.point.what, []).append((scenario, spot, fault))
    number = [*ERRORS, *GIT, FULL].index(name)
    chosen = enumerate(found[what] for what in sorted(found))
    return [options[(31 * number + 7 * at) % len(options)] for at, options in chosen]


def run(scenario: Scenario, spot: Spot, fault: Fault) -> Verdict:
    """Runs the scenario with the fault at that spot, starts anew without it, and judges."""
    expected = reference(scenario)
    with made(scenario, on_volume=fault.name == FULL) as world:
        held = contents(world)
        world.patience = ANSWER if fault.name in SLOW else 0.0
        start = len(world.events())
        said = _asked_in_a_process(world, scenario, spot, fault)
        world.patience = 0.0
        verdict = Verdict(scenario.name, spot, fault, said)
        if not said.outcome:
            verdict.trouble.append(f"no typed answer: {said.words}")
        elif not said.struck:
            verdict.trouble.append("the fault did not come")
        world.events()  # the log can be read, however full the disk is
        (world.home / "ballast").unlink(missing_ok=True)
        _judge_lost(world, expected, held, verdict)
        _judge_answer(world, expected, verdict)
        told = len(world.events())
        try:
            trio.run(_in, world, _nothing)
            _judge_start(verdict, len(world.events()) - told)
            _lead_to_the_end(world, scenario, expected, verdict)
            # Where no file can be taken away any more, one without its name yet stays, which means nothing.
            found = trio.run(world.complaints)
            verdict.trouble += [each for each in found if not (fault.lasting and NAMELESS.search(each))]
            verdict.trouble += [] if fault.lasting else orphans(world)
        except Exception as error:
            verdict.trouble.append(f"stuck: {type(error).__name__}: {error}")
        _judge_lost(world, expected, held, verdict)
        assert start <= told
        return verdict


def _judge_lost(world: Impatient, expected: Reference, held: dict[str, str], verdict: Verdict) -> None:
    lost = held.keys() - contents(world).keys() - expected.lost
    verdict.trouble += [f"LOST {held[each]}" for each in sorted(lost)]


def _judge_answer(world: Impatient, expected: Reference, verdict: Verdict) -> None:
    """Holds the answer against the world as it is before anybody has mended it."""
    now = sight(world)
    warned = verdict.said.notes and world.stands() == "active"
    if (
        verdict.said.outcome == "done"
        and not warned
        and (now != expected.after or world.last() != expected.milestone)
    ):
        verdict.trouble.append(f"is not done: {difference(expected.after, now)}, {world.last()}")
    # A lock that could not be taken off again harms nobody, and is taken for our own the next time.
    ways = [LOCKED.sub("", each) for each in (expected.before, expected.after)]
    if verdict.said.outcome == "refused" and LOCKED.sub("", now) not in ways:
        verdict.trouble.append(f"not as it was: {difference(expected.before, now)}")


def _judge_start(verdict: Verdict, more: int) -> None:
    if more and verdict.said.outcome in ("done", "refused"):
        verdict.trouble.append(f"{verdict.said.outcome}, but the next start did {more} things")


def _lead_to_the_end(world: Impatient, scenario: Scenario, expected: Reference, verdict: Verdict) -> None:
    """Asks again where nothing was done, tries a residual again, and takes an exit out of a review."""
    said = verdict.said
    for _ in range(3):
        state, now = world.stands(), sight(world)
        if state == "needs-review" and scenario.ends != state and not _was_in_review(scenario, now, expected):
            verdict.ended = f"review by {trio.run(_in, world, _out)}"
            return
        if state not in RESTS and state != "needs-review":
            verdict.ended = "residual"
            trio.run(_in, world, lambda opened: opened.sweep())
        elif now == expected.after and (state, world.last()) == (scenario.ends, expected.milestone):
            verdict.ended = verdict.ended or "forward"
            return
        elif state == scenario.ends in WHOLE and expected.outcome == "done" and now != expected.before:
            verdict.ended = "warned"  # a step that nothing depends on was given up, and that was said
            _bring_back(world, scenario, verdict)
            return
        else:
            verdict.ended = verdict.ended or "undone"
            if KEPT in verdict.said.words:  # as whoever was told of it would
                world.git(world.root, "branch", "-q", "-D", "work")
            said = trio.run(asked, world, scenario)
    now = sight(world)
    if now != expected.after:
        verdict.trouble.append(
            f"is {world.stands()}: {said.code} {said.words}: {difference(expected.after, now)}"
        )


def _was_in_review(scenario: Scenario, now: str, expected: Reference) -> bool:
    """Tells whether a lane waits for a person as it did before the command."""
    return scenario.name.startswith("review-") and now == expected.before


def _bring_back(world: Impatient, scenario: Scenario, verdict: Verdict) -> None:
    """Puts away what is back, and brings back what is put away."""
    if scenario.ends == "active":
        trio.run(_in, world, lambda opened: opened.remove())
    trio.run(_in, world, lambda opened: opened.restore())
    if world.stands() != "active":
        verdict.trouble.append(f"cannot be brought back: it is {world.stands()}")


WHOLE = ("active", "quarantined")
RESTS = ("active", "quarantined", "reaped", "failed", None)


async def _out(opened: Open) -> str:
    """Takes the first way out of a review that is open."""
    told: list[str] = []
    for each in (opened.resnapshot, opened.restore, opened.discard):
        try:
            await each()
        except Refusal as error:
            told.append(str(error))
            continue
        if opened.state() in RESTS:
            return each.__name__
        told.append(opened.state())
    raise AssertionError(f"no way out: {told}")


def _asked_in_a_process(
    world: Impatient, scenario: Scenario, spot: Spot, fault: Fault, heard: Path | None = None
) -> Said:
    """Asks for what the scenario does in a process in which the fault strikes, and returns its answer."""
    loaded()
    told = world.home.parent / "answer"
    script = world.instead(fault) if fault.name in GIT else None
    line = os.open(heard, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if heard else None

    def child() -> None:
        signal.alarm(PATIENCE)
        striking = Striking(world, spot, fault, script, line)
        install(striking.hear)
        said = trio.run(asked, world, scenario)
        said.struck = striking.struck
        striking.over = True
        told.write_bytes(msgspec.json.encode(said))

    code = in_a_process(child)
    if line is not None:
        os.close(line)
    if code != 0:
        return Said("", None, f"the process ended with {code}")
    said = msgspec.json.decode(told.read_bytes(), type=Said)
    told.unlink()
    return said


class Striking:
    """Makes the fault happen at its spot."""

    def __init__(
        self, world: World, spot: Spot, fault: Fault, script: bytes | None, line: int | None
    ) -> None:
        self.struck = self.over = False
        self._world, self._spot, self._fault, self._script, self._line = world, spot, fault, script, line
        self._left = spot.time

    def hear(self, point: Point) -> bytes | None:
        """Hears of a point, and does or raises what is to happen there."""
        if self.over:
            return None
        if self._line is not None:
            self.over = True  # of what is done here nobody is to hear
            os.write(self._line, msgspec.json.encode(point) + b"\n")
            self.over = False
        if self.struck:
            if self._fault.lasting and point.kind == "call" and point.moment == "before":
                self._raise()
            return None
        if point.name != self._spot.point.name:
            return None
        self._left -= 1
        if self._left >= 0:
            return None
        self.struck = True
        if self._fault.name == FULL:
            self.over = True
            fill(self._world.home)
        elif self._script is None:
            self._raise()
        return self._script

    def _raise(self) -> NoReturn:
        number = getattr(errno, self._fault.name)
        raise OSError(number, os.strerror(number))


async def asked(world: World, scenario: Scenario) -> Said:
    """Opens the yard, asks for what the scenario does, and returns the answer as the interfaces give it."""
    unfinished: list[str] = []
    try:
        async with open_yard(world.settings) as (yard, stopped):
            unfinished += [f"{type(error).__name__}: {error}" for error in stopped.values()]
            done = await scenario.act(Open(world, yard))
        if isinstance(done, list):
            return Said(showing.swept(done).outcome, unfinished=unfinished)
        assert isinstance(done, Done)
        return Said(changed(done, "").outcome, notes=[*done.warnings], unfinished=unfinished)
    except NotReached as error:
        return Said(error.outcome, error.code, error.message, unfinished=unfinished)
    except Exception as error:
        told = problem(error)
        if told is None:
            return Said("", None, f"{type(error).__name__}: {error}")
        return Said(told.outcome, told.code, told.detail, unfinished=unfinished)


def sight(world: World) -> str:
    """Returns everything that can be seen, but for our own refs and numbers, as one text a line each."""
    seen = world.look()
    seen["refs"] = [each for each in seen["refs"] if b"refs/laneyard/" not in each]  # type: ignore[attr-defined]
    del seen["snapshots"]
    lines = []
    for what, each in seen.items():
        parts = each.items() if isinstance(each, dict) else each if isinstance(each, list | tuple) else [each]
        lines += [f"{what}: {part!r}" for part in parts]
    told = (re.sub(r"(LANE8?)-\d+", r"\1", line) for line in lines)
    kept = sorted(line for line in told if not (OURS.search(line) or NAMELESS.search(line)))
    return "".join(f"{line}\n" for line in kept)


# Directories of ours may be there before there is anything in them.
OURS = re.compile(r"^tree: \(b'\.laneyard(/\w+)?', \('directory'|^ours: ")


LOCKED = re.compile(r"locked laneyard: edition \d+ of LANE\\x00|admin: b'work/locked'\n")
NAMELESS = re.compile(r"\.laneyard-[0-9a-f]{16}")


def difference(expected: str, found: str) -> str:
    """Returns the lines that are in one of two sights only."""
    here, there = set(expected.splitlines()), set(found.splitlines())
    return f"missing {sorted(here - there)[:4]}, more {sorted(there - here)[:4]}"


def contents(world: World) -> dict[str, str]:
    """Returns the digest of every content that is held somewhere, and where: in a file, a ref or an index."""
    held: dict[str, str] = {}
    for path, (kind, _, data) in walk(world.root, (b".git",)).items():
        if kind == "file" and os.path.basename(path) != b".git":
            held[hashlib.sha256(data).hexdigest()] = os.fsdecode(path)
    for path, (kind, _, data) in walk(os.path.join(world.settings.state_dir, b"snapshots")).items():
        if kind == "file" and not path.endswith(b"/lock"):
            held.setdefault(hashlib.sha256(data).hexdigest(), f"snapshots/{os.fsdecode(path)}")
    return _in_git(world) | held


def _in_git(world: World) -> dict[str, str]:
    listed = world.git(world.root, "worktree", "list", "--porcelain", "-z").split(b"\0")
    trees = [each[9:] for each in listed if each.startswith(b"worktree ") and os.path.isdir(each[9:])]
    staged = b"".join(world.git(tree, "ls-files", "--stage", "-z", check=False) for tree in trees)
    names = {each.split(b" ")[1] for each in staged.split(b"\0") if each and not each.startswith(b"160000")}
    reached = world.git(world.root, "rev-list", "--objects", "--all").splitlines()
    names |= {each.split(b" ")[0] for each in reached}
    out = world.git(world.root, "cat-file", "--batch", stdin=b"".join(each + b"\n" for each in sorted(names)))
    held, at = {}, 0
    while at < len(out):
        end = out.index(b"\n", at)
        name, kind, size = out[at:end].split(b" ")
        data = out[end + 1 : end + 1 + int(size)]
        at = end + 2 + int(size)
        if kind == b"blob":
            held[hashlib.sha256(data).hexdigest()] = f"blob {name.decode()}"
    return held


def orphans(world: World) -> list[str]:
    """Returns snapshots' refs and directories of which the log has no snapshot."""
    facts = (each.fact for each in world.events())
    known = {fact.snapshot.id for fact in facts if isinstance(fact, LaneSnapshotted)}
    place = os.path.join(world.settings.state_dir, b"snapshots")
    found = os.listdir(place) if os.path.isdir(place) else []
    refs = world.git(world.root, "for-each-ref", "--format=%(refname)", "refs/laneyard/").split()
    return [
        *(f"orphan directory {os.fsdecode(each)}" for each in found if os.fsdecode(each) not in known),
        *(
            f"orphan ref {os.fsdecode(each)}"
            for each in refs
            if not any(i in os.fsdecode(each) for i in known)
        ),
    ]


def main() -> int:
    """Runs what is asked for, tells every case that is in trouble, and returns how many those are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", action="append", help="only this one")
    parser.add_argument("--fault", action="append", help="only those of this name")
    parser.add_argument("--point", default="", help="only points whose name contains this")
    parser.add_argument("--every", type=int, default=1, help="only each n-th case")
    parser.add_argument("--from", type=int, default=0, dest="first", help="how many cases to leave out first")
    parser.add_argument("--verbose", action="store_true", help="tell every case")
    chosen = parser.parse_args()
    ended: Counter[str] = Counter()
    number = -1
    for scenario in SCENARIOS:
        if chosen.scenario and scenario.name not in chosen.scenario:
            continue
        for spot, fault in cases(scenario):
            if (chosen.fault and fault.name not in chosen.fault) or chosen.point not in spot.point.name:
                continue
            number += 1
            if number % chosen.every != chosen.first % chosen.every:
                continue
            verdict = run(scenario, spot, fault)
            ended[verdict.ended] += 1
            ended["trouble"] += bool(verdict.trouble)
            ended[f"told {verdict.said.outcome or 'a traceback'}"] += 1
            if verdict.trouble or chosen.verbose:
                print(verdict.line, flush=True)  # noqa: T201
    print(dict(sorted(ended.items())))  # noqa: T201
    return min(ended["trouble"], 1)


if __name__ == "__main__":
    sys.exit(main())
