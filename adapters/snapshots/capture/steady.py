"""The second look at a tree that was captured: between the two, it was as it was seen.

Every entry has the times that it had, and a name more or less would show in its directory's. Where an entry
was written so shortly before the first look that another write may carry the same time, it is read again.
"""

from __future__ import annotations

import os
from operator import attrgetter
from typing import TYPE_CHECKING

from adapters.files.blob import file_oid, link_oid
from adapters.files.errors import words
from adapters.files.scan import TOGETHER
from adapters.snapshots.beneath import LONGEST, Beneath
from adapters.snapshots.capture.looks import is_racy, wait_for_the_clock
from adapters.snapshots.capture.putting_apart import BIG
from adapters.snapshots.objects import REPLACED, Moving
from domain.paths import unpack

if TYPE_CHECKING:
    from adapters.files.scan import Entry
    from adapters.snapshots.capture.survey import Survey


def require_still(root: bytes, seen: Survey, algorithm: str) -> None:
    """Raises Moving unless nothing in the tree has changed since it was surveyed, or OSError."""
    try:
        with Beneath(root) as beneath:
            counted = _counted(seen)
            _require_same_times(beneath, seen, counted)
            young = [entry for entry in counted if is_racy(entry.ctime_ns, seen.began_ns)]
            if young or is_racy(seen.root.st_ctime_ns, seen.began_ns):
                _require_same_content(beneath, seen, young, algorithm)
                _require_same_times(beneath, seen, counted)
    except OSError as error:
        if error.errno not in REPLACED:
            raise
        raise Moving(words(error)) from error


def _counted(seen: Survey) -> list[Entry]:
    """Returns all entries but what is omitted: whoever writes there changes nothing that is held."""
    if not seen.omitted:
        return seen.seen
    omitted = {unpack(path) for path in seen.omitted}
    return [entry for entry in seen.seen if entry.path not in omitted]


def _require_same_times(beneath: Beneath, seen: Survey, counted: list[Entry]) -> None:
    top = beneath.descriptor
    _require_same_root(os.fstat(top), seen.root)
    for start in range(0, len(counted), TOGETHER):
        entries = counted[start : start + TOGETHER]
        now = list(map(CHANGE, _statuses(beneath, [entry.path for entry in entries])))
        # Whatever else of an entry changed, its ctime did.
        if now != list(map(SEEN, entries)):
            path = next(e.path for e, times in zip(entries, now, strict=True) if SEEN(e) != times)
            raise Moving(f"{os.fsdecode(path)} changed after it was looked at")


def _statuses(beneath: Beneath, paths: list[bytes]) -> list[os.stat_result]:
    # A lane has tens of thousands of entries: one call for each, and nothing in between.
    top, look = beneath.descriptor, os.stat
    if max(map(len, paths)) <= LONGEST:
        return [look(path, dir_fd=top, follow_symlinks=False) for path in paths]
    found = []
    for path in paths:
        with beneath.parent(path) as (parent, name):
            found.append(look(name, dir_fd=parent, follow_symlinks=False))
    return found


def _require_same_root(now: os.stat_result, before: os.stat_result) -> None:
    same = (now.st_ino, now.st_mode, now.st_mtime_ns, now.st_ctime_ns)
    if same != (before.st_ino, before.st_mode, before.st_mtime_ns, before.st_ctime_ns):
        raise Moving("the tree's directory changed after it was looked at")


def _require_same_content(beneath: Beneath, seen: Survey, young: list[Entry], algorithm: str) -> None:
    """Reads again what was written just before it was read, once the clock has gone on."""
    times = [entry.ctime_ns for entry in young] + [seen.root.st_ctime_ns]
    wait_for_the_clock(max(times))
    listed = _names(seen)
    for entry in young:
        if entry.kind == "directory":
            with beneath.directory(entry.path) as descriptor:
                _require_same_names(descriptor, listed.get(entry.path, set()), entry.path)
        elif entry.kind in ("file", "link") and entry.size < BIG:
            with beneath.parent(entry.path) as (parent, name):
                read = (file_oid if entry.kind == "file" else link_oid)(parent, name, algorithm)
            if read is None or (read[1], read[2]) != (entry.oid, entry.xattrs):
                raise Moving(f"{os.fsdecode(entry.path)} changed after it was read")
    _require_same_names(beneath.descriptor, listed.get(b"", set()), b".")


def _names(seen: Survey) -> dict[bytes, set[bytes]]:
    """Returns the names in each directory that had any."""
    found: dict[bytes, set[bytes]] = {}
    for entry in seen.seen:
        parent, _, name = entry.path.rpartition(b"/")
        found.setdefault(parent, set()).add(name)
    return found


def _require_same_names(descriptor: int, expected: set[bytes], path: bytes) -> None:
    if set(os.listdir(b"/proc/self/fd/%d" % descriptor)) != expected:
        raise Moving(f"the names in {os.fsdecode(path)} changed after they were read")


CHANGE = attrgetter("st_ctime_ns", "st_ino")
SEEN = attrgetter("ctime_ns", "inode")
