"""What changes while a tree is captured is noticed, also where no time tells of it."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
import pytest

from adapters.snapshots.capture.steady import require_still
from adapters.snapshots.objects import Moving
from domain.effects import Captured, NotDone
from tests.adapters.snapshots.test_capture_whole import held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapters.snapshots.capture.survey import Survey
    from tests.adapters.snapshots.lanes import Lane

MUCH_LATER = 1 << 62  # nanoseconds


def settled(seen: Survey) -> Survey:
    """A survey in which everything was old enough for its times to tell of any write."""
    return msgspec.structs.replace(seen, began_ns=MUCH_LATER)


async def test_a_tree_that_is_left_alone_is_still(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    seen = await lane.survey()
    for each in (seen, settled(seen)):
        require_still(lane.path, each, "sha1")


def swap(path: bytes, kind: str) -> None:
    os.unlink(path)
    if kind == "directory":
        os.mkdir(path)
    elif kind == "link":
        os.symlink(b"file", path)


CHANGES: dict[str, Callable[[Lane], object]] = {
    "written": lambda lane: lane.write(b"file", b"ONE\n"),
    "grown": lambda lane: lane.write(b"file", b"one and more\n"),
    "touched": lambda lane: os.utime(lane.at(b"sub/inner")),
    "made secret": lambda lane: os.chmod(lane.at(b"file"), 0o600),
    "linked": lambda lane: os.link(lane.at(b"file"), os.path.join(lane.world.root, b"elsewhere")),
    "gone": lambda lane: swap(lane.at(b"file"), "gone"),
    "a directory": lambda lane: swap(lane.at(b"file"), "directory"),
    "a link": lambda lane: swap(lane.at(b"file"), "link"),
    "new": lambda lane: lane.write(b"new", b""),
    "new below": lambda lane: lane.write(b"sub/new", b""),
    "of another mode at the root": lambda lane: os.chmod(lane.path, 0o700),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
async def test_what_changed_since_the_first_look_is_moving(
    lane: Lane, change: Callable[[Lane], object]
) -> None:
    seen = await lane.survey()
    change(lane)
    for each in (seen, settled(seen)):
        with pytest.raises(Moving):
            require_still(lane.path, each, "sha1")


@pytest.mark.parametrize("at_rest", [False, True])
async def test_whoever_writes_in_what_is_omitted_does_not_make_it_move(lane: Lane, *, at_rest: bool) -> None:
    lane.write(b"build/output", b"output\n")
    lane.write(b"x.log", b"1\n")
    seen = await lane.survey(omit=(b"build", b"x.log"))
    seen = settled(seen) if at_rest else seen
    lane.write(b"build/more", b"")
    os.truncate(lane.at(b"x.log"), 1)
    require_still(lane.path, seen, "sha1")
    os.unlink(lane.at(b"x.log"))
    with pytest.raises(Moving):
        require_still(lane.path, seen, "sha1")


async def unnoticed(lane: Lane, first: Survey) -> Survey:
    """The first look at a tree, had everything that was written since been written with the same times."""
    now = {entry.path: entry for entry in (await lane.survey()).seen}
    same = [
        msgspec.structs.replace(e, ctime_ns=now[e.path].ctime_ns, mtime_ns=now[e.path].mtime_ns)
        for e in first.seen
    ]
    return msgspec.structs.replace(first, seen=same, root=os.lstat(lane.path))


async def test_a_write_that_no_time_tells_of_is_found_where_it_may_have_been(lane: Lane) -> None:
    first = await lane.survey()
    lane.write(b"file", b"ONE\n")
    same = await unnoticed(lane, first)
    require_still(lane.path, settled(same), "sha1")
    with pytest.raises(Moving, match="after it was read"):
        require_still(lane.path, same, "sha1")


async def test_a_name_that_no_time_tells_of_is_found_where_it_may_have_come(lane: Lane) -> None:
    for path in (b"late", b"sub/late"):
        first = await lane.survey()
        lane.write(path, b"")
        same = await unnoticed(lane, first)
        with pytest.raises(Moving, match="names"):
            require_still(lane.path, same, "sha1")
        os.unlink(lane.at(path))


@contextmanager
def writing(lane: Lane) -> Iterator[threading.Event]:
    """Writes to a file of the lane all the time; set the event to have it rest."""
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            lane.write(b"busy", b"%d\n" % number * (number % 7 + 1))

    thread = threading.Thread(target=write)
    lane.write(b"busy", b"")
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join()


@pytest.mark.slow
async def test_a_file_that_never_stops_changing_is_not_captured(lane: Lane) -> None:
    with writing(lane):
        outcome = await lane.perform(lane.capturing())
    assert isinstance(outcome, NotDone)
    assert outcome.code in ("still_changing", "changing")
    assert not os.path.exists(os.path.join(lane.directory(), b"manifest.json"))


@pytest.mark.slow
async def test_a_file_that_rests_is_captured_as_it_is_then(lane: Lane) -> None:
    with writing(lane) as stop:
        stop.set()
        outcome = await lane.perform(lane.capturing())
    assert isinstance(outcome, Captured)
    oid = held(lane)[b"busy"].oid
    assert oid is not None
    assert lane.git("rev-parse", f"{outcome.snapshot.commit}:busy").decode().strip() == oid
