"""What git and the disk say about our lanes, apart from what the log says. It only looks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from adapters.files.errors import words
from adapters.files.identity import identify
from adapters.git.errors import GitError
from adapters.git.registration import Unreadable, pointers_agree, registrations
from adapters.repositories import MANAGED, QUARANTINE
from adapters.snapshots.capture.capture import verify
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.manifest import snapshot_dir
from domain.paths import display, unpack
from domain.states import Active, NeedsReview, Quarantined, Snapshotting
from projections.claims import claims

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


async def differences(git: Git, reader: Reader, state_dir: bytes) -> AsyncIterator[Difference]:
    """Yields every difference between the log and what is on disk; every snapshot is read back."""
    claimed: dict[bytes, str] = {}
    for row in reader.lanes():
        lane, _ = reader.lane(str(row["id"]))
        # An unfinished lane may be in either of two places, and neither is a stranger's.
        claimed |= {unpack(str(value)): str(row["slug"]) for _, kind, value in claims(lane) if kind == "path"}
        place = _place(lane)
        if place is not None:
            for what in _tree(row, place):
                yield Difference(str(row["id"]), what)
        async for what in _snapshots(git, lane, state_dir):
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
    if not place.identity.same(found):
        yield f"{slug}: {display(place.path)} is another directory than the one recorded"
    if row["kind"] != "primary" and (why := pointers_agree(admin, path)) is not None:
        yield f"{slug}: {why}"


async def _snapshots(git: Git, lane: Lane, state_dir: bytes) -> AsyncIterator[str]:
    record = getattr(lane, "record", None)
    if record is None:
        return
    for taken in record.snapshots:
        directory = snapshot_dir(state_dir, taken.id)
        try:
            await verify(git, directory, unpack(record.repository), taken)
        except (SnapshotDamaged, GitError, OSError) as error:
            yield f"{record.slug}: snapshot {taken.id} cannot be restored: {words(error)}"


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
