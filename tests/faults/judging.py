"""What became of a world in which the program was killed, held against a run in which it was not."""

from __future__ import annotations

import os
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Literal

import msgspec
import trio

from adapters.files.durable import TEMPORARY
from adapters.store.connection import connect
from adapters.store.reader import Reader
from adapters.store.verify import verify
from domain.states import name as state_name
from tests.faults.accounts import lost
from tests.faults.running import Scene, record, recorded, run, said, scene

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.lives import Life
    from tests.sagas.worlds import World

End = Literal["forward", "undone", "between", "review", "stuck", "not reached"]
RESTING = ("active", "quarantined", "reaped")
KEPT = ("refs", "snapshots")  # what a command that went no further than its capture leaves for ever


class Judgement(msgspec.Struct, frozen=True):
    """How a world ended, and whatever is wrong with it."""

    end: End
    lost: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()
    litter: tuple[str, ...] = ()
    log: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        """Returns all that should not be."""
        ended = (self.end,) if self.end in ("review", "stuck") else ()
        return (*ended, *(f"lost: {each}" for each in self.lost), *self.stuck, *self.litter, *self.log)


class Seen(msgspec.Struct, frozen=True):
    """The world as git and the disk show it, and every lane's state."""

    looks: dict[str, object]
    states: dict[str, str]

    @property
    def lanes(self) -> dict[str, str]:
        """Returns the states without that of the repository itself."""
        return {slug: state for slug, state in self.states.items() if slug != "primary"}

    def differing(self, other: Seen) -> list[str]:
        """Returns which of the looks are not the same."""
        names = {*self.looks, *other.looks}
        return sorted(each for each in names if self.looks.get(each) != other.looks.get(each))


class Reference(msgspec.Struct, frozen=True):
    """How a command goes when nobody kills it; `gone` is what the user has before and not afterwards."""

    before: Seen
    after: Seen
    code: int
    captured: int
    gone: frozenset[bytes]
    points: dict[str, int]


@cache
def reference(name: str) -> Reference:
    """Runs a command unharmed."""
    with scene(name) as found:
        before = seen(found.world)
        code = run(found.world, found.life.line, record(found.world.home))
        gone = frozenset(lost(found.had, found.world))
        return Reference(before, seen(found.world), code, captured(found), gone, recorded(found.world.home))


def seen(world: World) -> Seen:
    """Looks at everything."""
    states: dict[str, str] = {}
    if os.path.exists(world.settings.store):
        with Reader(world.settings.store) as reader:
            for row in reader.lanes():
                states[str(row["slug"])] = state_name(reader.lane(str(row["id"]))[0])
    return Seen({what: _tidy(each) for what, each in world.look().items()}, states)


def _tidy(found: object) -> object:
    """Leaves out what is left over: that is looked for apart from all else."""
    if isinstance(found, dict):
        return {path: each for path, each in found.items() if TEMPORARY not in path}
    return [each for each in found if TEMPORARY not in each] if isinstance(found, list) else found


def captured(found: Scene) -> int:
    """Returns how many snapshots the command has led to."""
    return found.world.tags(found.begins).count("lane.snapshotted@2")


def judged(
    found: Scene,
    code: int,
    ask: Callable[[str], int] | None = None,
    expected: int | None = None,
    close: Callable[[], object] = lambda: None,
) -> Judgement:
    """Says what became of a world after the start that ended with the code.

    What was not done is asked for again, by `ask`, and should end as `expected`; `close` is called before
    what only the state directory's owner can see.
    """
    world, usual = found.world, reference(found.life.name)
    stuck = [f"the start after it ended with {code}: {said(world)}"] if code else []
    stuck += [f"{stream} owes something" for stream in owing(world)]
    log, now = damage(found), seen(world)
    end, gone = classified(found, now), lost(found.had, world)
    if end in ("undone", "between") and not stuck:
        line, wanted = onward(found.life, now), usual.code if expected is None else expected
        again = run(world, line) if ask is None else ask(line)
        if again != wanted:
            stuck.append(f"asked again it ended with {again}, not {wanted}: {said(world)}")
        stuck += differences(found)
        gone |= lost(found.had, world)
    close()
    litter = () if stuck else tuple(trio.run(world.complaints))
    names = sorted(f"{where} ({each.decode()[:8]})" for each, where in gone.items() if each not in usual.gone)
    return Judgement(end, tuple(names), tuple(stuck), litter, tuple(log))


def classified(found: Scene, now: Seen) -> End:
    """Says which of the states that a command passes through this is."""
    usual = reference(found.life.name)
    if now == usual.after:
        return "forward"
    before, after = usual.before.lanes, usual.after.lanes
    changed = {slug: state for slug, state in now.lanes.items() if before.get(slug) != state}
    # What is known of the repository, or captured, is kept: it takes nothing from anybody.
    if now.lanes == before and {*now.differing(usual.before)} <= {*KEPT}:
        return "undone"
    if any(state == "needs-review" != after.get(slug) for slug, state in changed.items()):
        return "review"
    resting = all(state in RESTING or state == after.get(slug) for slug, state in changed.items())
    return "between" if resting else "stuck"


def onward(life: Life, now: Seen) -> str:
    """Returns what a person says who still wants what was asked for: the rest, if a part of it is done."""
    return life.rest if life.rest and now.states.get("work") == life.rests else life.line


def differences(found: Scene) -> list[str]:
    """Returns in what a world is not as it would be if nobody had been killed."""
    now, usual = seen(found.world), reference(found.life.name)
    twice = captured(found) > usual.captured
    differing = [each for each in now.differing(usual.after) if not (twice and each in KEPT)]
    states = [] if now.states == usual.after.states else [f"the lanes are {now.states}"]
    return [f"{each} is not as it would be" for each in differing] + states


def owing(world: World) -> list[str]:
    """Returns the streams whose journal is open."""
    if not os.path.exists(world.settings.store):
        return []
    with Reader(world.settings.store) as reader:
        return [str(row["stream"]) for row in reader.open_journals()]


def damage(found: Scene) -> list[str]:
    """Returns what is wrong with the log: its chain, and that all of one command has one cause."""
    if not os.path.exists(found.world.settings.store):
        return []
    with closing(connect(found.world.settings.store, read_only=True)) as connection:
        wrong = [str(each) for each in verify(connection)]
    causes = {event.cause for event in found.world.events(found.begins)}
    return wrong + ([f"{len(causes)} causes"] if len(causes) > 1 else [])
