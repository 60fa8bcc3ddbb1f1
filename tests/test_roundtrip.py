"""Lanes of every kind, put away for good and brought back: nothing differs, or a hold names the reason."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from tests.roundtrip.cases import Case, Outcome, composed, run, tried
from tests.roundtrip.page import SEED, cell, row
from tests.roundtrip.scene import MOVES
from tests.roundtrip.ways import Ended, Forced, Way

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.roundtrip.scene import Scene
    from tests.sagas.worlds import World

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[1] / "docs/fidelity.md"
FIRST, CASES, AT_ONCE = 1000, 240, 12


def told(case: Case, outcome: Outcome) -> str:
    return "\n".join([f"scripts/roundtrip {case}", *map(str, outcome.found[:20])])


@pytest.mark.parametrize("name", MOVES)
def test_a_lane_with_one_thing_in_it_is_as_the_page_of_fidelity_says(name: str) -> None:
    case = Case(SEED, (name,))
    outcome = trio.run(run, case)
    if outcome.kind == "not here":
        pytest.skip(outcome.codes[0])
    assert outcome.declined == ()
    assert outcome.kind != "different", told(case, outcome)
    assert set(outcome.codes) <= set(MOVES[name].holds)
    assert row(name, cell(outcome)).removesuffix("|") in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("first", range(FIRST, FIRST + CASES, AT_ONCE))
def test_lanes_with_anything_in_them_come_back_or_are_held(first: int) -> None:
    ended = [tried(composed(seed), shrink=True) for seed in range(first, first + AT_ONCE)]
    assert [told(*each) for each in ended if each[1].kind == "different"] == []


class Tampering(Way):
    """A way that does nothing to the lane but one small thing."""

    name = "tampering"

    def __init__(self, tamper: Callable[[bytes], object]) -> None:
        self.tamper = tamper

    async def create(self, world: World) -> bytes:
        return await Forced().create(world)

    async def there_and_back(self, scene: Scene) -> Ended:
        self.tamper(scene.place)
        return Ended()


def admin(place: bytes) -> bytes:
    return os.path.join(os.path.dirname(place), b"../../.git/worktrees/work")


def rewritten(path: bytes) -> None:
    """Writes the file's own bytes to a new file, with the old one's mode and the old times."""
    old, above = os.stat(path), os.stat(os.path.dirname(path))
    with open(path, "rb") as file:
        data = file.read()
    os.unlink(path)
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, old.st_mode & 0o7777)
    os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))
    os.utime(os.path.dirname(path), ns=(above.st_atime_ns, above.st_mtime_ns))


def later(path: bytes) -> None:
    status = os.lstat(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1), follow_symlinks=False)


def bare(path: bytes) -> None:
    before = os.lstat(path)
    os.removexattr(path, b"user.empty")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


TAMPERED: dict[str, tuple[str, str, Callable[[bytes], object]]] = {
    "a time, by a nanosecond": ("nothing", "times", lambda at: later(at + b"/sub/inner")),
    "the time of a link": ("nothing", "times", lambda at: later(at + b"/link")),
    "the time of the root": ("nothing", "times", later),
    "a permission": ("nothing", "permissions", lambda at: os.chmod(at + b"/file", 0o640)),
    "the root's permissions": ("nothing", "permissions", lambda at: os.chmod(at, 0o700)),
    "a hard link": ("hard-links", "hard links", lambda at: rewritten(at + b"/hard-links/c")),
    "an attribute": ("attributes", "attributes", lambda at: bare(at + b"/attributes/clean")),
    "a file of an operation": ("merging", "registration", lambda at: os.unlink(admin(at) + b"/MERGE_MSG")),
    "the log of HEAD": (
        "amended",
        "objects, registration",
        lambda at: os.truncate(admin(at) + b"/logs/HEAD", 0),
    ),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_the_judge_sees_a_difference_in(what: str) -> None:
    name, aspects, tamper = TAMPERED[what]
    outcome = trio.run(run, Case(SEED, (name,)), Tampering(tamper))
    if outcome.kind == "not here":
        pytest.skip(outcome.codes[0])
    assert outcome.kind == "different"
    assert {each.aspect for each in outcome.found} == set(aspects.split(", "))


def test_the_judge_sees_none_where_nothing_was_done() -> None:
    for name in ("nothing", "merging", "nested", "hard-links", "split-index"):
        outcome = trio.run(run, Case(SEED, (name,)), Tampering(lambda place: None))
        assert outcome.found == ()
        assert outcome.kind == "identical"
