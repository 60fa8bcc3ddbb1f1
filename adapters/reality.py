"""What git and the disk say about our lanes, apart from what the log says. It only looks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from adapters.files.identity import identify
from adapters.git.errors import GitError
from adapters.git.refs import read_ref
from adapters.git.registration import Unreadable, pointers_agree, registrations
from adapters.repositories import MANAGED, QUARANTINE
from domain.paths import display, unpack
from domain.states import Active, NeedsReview, Quarantined, Snapshotting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from adapters.git.door import Git
    from adapters.store.reader import Reader, Record
    from domain.evidence import Place
    from domain.states import Lane


class Difference(msgspec.Struct, frozen=True):
    """Something that the log and the world do not agree on."""

    lane: str | None
    what: str


async def differences(git: Git, reader: Reader) -> AsyncIterator[Difference]:
    """Yields every difference between the log and what is on disk."""
    claimed: dict[bytes, str] = {}
    for row in reader.lanes():
        lane, _ = reader.lane(str(row["id"]))
        place = _place(lane)
        if place is not None:
            claimed[unpack(place.path)] = str(row["slug"])
            for what in _tree(row, place):
                yield Difference(str(row["id"]), what)
        async for what in _snapshots(git, lane):
            yield Difference(str(row["id"]), what)
    for row in reader.repositories():
        for what in _strangers(row, claimed):
            yield Difference(None, what)


def _place(lane: Lane) -> Place | None:
    match lane:
        case Active(place=place) | Quarantined(place=place):
            return place
        case NeedsReview(demolition=doomed):
            return doomed.place
        case Snapshotting(of=of):
            return _place(of)
        case _:
            return None


def _tree(row: Record, place: Place) -> Iterator[str]:
    path, admin, slug = unpack(place.path), unpack(place.admin), row["slug"]
    try:
        found = identify(path)
    except FileNotFoundError:
        yield f"{slug}: {display(place.path)} is not there"
        return
    except OSError as error:
        yield f"{slug}: {display(place.path)} cannot be looked at: {error}"
        return
    if found != place.identity:
        yield f"{slug}: {display(place.path)} is another directory than the one recorded"
    if row["kind"] != "primary" and (why := pointers_agree(admin, path)) is not None:
        yield f"{slug}: {why}"


async def _snapshots(git: Git, lane: Lane) -> AsyncIterator[str]:
    record = getattr(lane, "record", None)
    if record is None:
        return
    for taken in record.snapshots:
        try:
            at = await read_ref(git, unpack(record.repository), taken.ref.encode())
        except (GitError, OSError) as error:
            yield f"{taken.ref} cannot be read: {error}"
            continue
        if at != taken.commit:
            yield f"{taken.ref} is at {at}, not at {taken.commit}"


def _strangers(row: Record, claimed: dict[bytes, str]) -> Iterator[str]:
    """Yields what lies in our directories, or is registered there, and belongs to no lane."""
    common, root = unpack(str(row["common"])), unpack(str(row["root"]))
    for home in (MANAGED, QUARANTINE):
        directory = os.path.join(root, home)
        for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else []:
            path = os.path.join(directory, name)
            if path not in claimed:
                yield f"{os.fsdecode(path)} belongs to no lane"
    for each in registrations(common):
        if isinstance(each, Unreadable):
            yield f"the registration {os.fsdecode(each.git_dir)} cannot be read: {each.why}"
            continue
        path = os.path.dirname(each.points_to)
        ours = any(path.startswith(os.path.join(root, home) + b"/") for home in (MANAGED, QUARANTINE))
        if ours and path not in claimed and not os.path.lexists(path):
            yield f"git still lists {os.fsdecode(path)}, which belongs to no lane and is not there"
