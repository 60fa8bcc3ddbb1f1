"""One case: a lane made of moves, put away and brought back, compared, and gone on with where it was busy."""

from __future__ import annotations

import os
import random
import shutil
import stat
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import trio

from tests.roundtrip import moves
from tests.roundtrip.comparing import Difference, differences
from tests.roundtrip.continuing import go_on
from tests.roundtrip.looking import is_lane, look
from tests.roundtrip.scene import MOVES, Move, NotHere, Scene, play
from tests.roundtrip.ways import Laneyard
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.roundtrip.ways import Way

assert moves.LOADED
MEMORY = Path("/dev/shm")
MOST = 12


class Case(NamedTuple):
    """What a lane is made of; a move's own chance comes from the seed and its name alone."""

    seed: int
    moves: tuple[str, ...]

    def __str__(self) -> str:
        return f"--seed {self.seed} --moves {','.join(self.moves)}"


class Outcome(NamedTuple):
    """`identical`, `held` by codes, `different`, or `not here` and why. `declined` are moves left out."""

    kind: str
    codes: tuple[str, ...] = ()
    found: tuple[Difference, ...] = ()
    declined: tuple[str, ...] = ()
    said: str = ""


def composed(seed: int, number: int | None = None) -> Case:
    """Returns the case of a seed: 1 to 12 moves (of a class, at least one), no two of one group."""
    chance = random.Random(seed)
    names = sorted(MOVES.keys() - {"nothing"})
    chosen: list[Move] = []
    if number is not None:
        chosen.append(MOVES[chance.choice([name for name in names if MOVES[name].number == number])])
    for name in chance.sample(names, chance.randint(1, MOST)):
        one = MOVES[name]
        if (
            one not in chosen
            and not any(one.groups & other.groups for other in chosen)
            and _goes(one, chance)
        ):
            chosen.append(one)
    return Case(seed, tuple(sorted(each.name for each in chosen)) or ("nothing",))


def _goes(one: Move, chance: random.Random) -> bool:
    """Tells whether a move comes in: one that holds would keep most cases from being a round trip."""
    return not one.holds or chance.random() < 0.1


async def run(case: Case, way: Way | None = None) -> Outcome:
    """Makes the lane, takes it there and back, and returns how it is afterwards."""
    chosen = [MOVES[name] for name in case.moves]
    way = way or Laneyard()
    with scratch() as home:
        try:
            scene = await _made(home, case, chosen, way)
        except NotHere as error:
            return Outcome("not here", (str(error),))
        outcome = await _there_and_back(scene, way)
        if outcome.kind != "identical" or not scene.goes_on or not isinstance(way, Laneyard):
            return outcome
        went = go_on(scene)
        erase(home)
        home.mkdir()
        untouched = await _made(home, case, chosen, way)
        found = differences(go_on(untouched), went)
    return Outcome("different", (), tuple(found), outcome.declined) if found else outcome


async def _made(home: Path, case: Case, chosen: list[Move], way: Way) -> Scene:
    builders = [each.world for each in chosen if each.world]
    world = builders[0](home) if builders else World(home)
    scene = Scene(world, await way.create(world))
    play(scene, chosen, case.seed)
    return scene


async def _there_and_back(scene: Scene, way: Way) -> Outcome:
    declined = tuple(scene.declined)
    before = look(scene)
    scene.mark.unlink(missing_ok=True)
    try:
        ended = await way.there_and_back(scene)
    except Exception as error:  # the judge must go on: what nobody foresaw is a difference of its own
        ended = way.broke(error)
    problems = [Difference("problem", b"", "", each) for each in ended.problems]
    if isinstance(way, Laneyard) and scene.mark.exists():
        problems.append(Difference("program run", b"", "", scene.mark.read_text()))
    problems += _compared(scene, before)
    if problems:
        return Outcome("different", ended.held, tuple(problems), declined, ended.said)
    return Outcome("held" if ended.held else "identical", ended.held, (), declined, ended.said)


def _compared(scene: Scene, before: dict[str, dict[bytes, object]]) -> list[Difference]:
    if not is_lane(scene.place):
        return [Difference("missing", b".git", "a lane", "no lane")]
    return differences(before, look(scene))


@contextmanager
def scratch() -> Iterator[Path]:
    """Lends a directory of its own, in memory where the system has such a place."""
    memory = MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None
    home = Path(tempfile.mkdtemp(prefix="roundtrip-", dir=memory))
    try:
        yield home
    finally:
        erase(home)


def erase(home: Path) -> None:
    """Removes it all, closed directories too."""
    if os.geteuid() != 0:
        for directory, names, _ in os.walk(home):
            for name in names:
                path = os.path.join(directory, name)
                if not stat.S_ISLNK(os.lstat(path).st_mode):
                    os.chmod(path, 0o700)
    shutil.rmtree(home)


async def shrunk(case: Case) -> tuple[Case, Outcome]:
    """Returns the smallest case that still differs: moves are taken out one by one while it does."""
    outcome, going = await run(case), True
    while going:
        going = False
        for name in case.moves if len(case.moves) > 1 else ():
            less = Case(case.seed, tuple(each for each in case.moves if each != name))
            tried = await run(less)
            if tried.kind == "different":
                case, outcome, going = less, tried, True
                break
    return case, outcome


def tried(case: Case, *, shrink: bool) -> tuple[Case, Outcome]:
    """Runs a case, and makes it as small as it can be if it differs."""
    outcome = trio.run(run, case)
    if outcome.kind == "different" and shrink and len(case.moves) > 1:
        case, outcome = trio.run(shrunk, case)
    return case, outcome
