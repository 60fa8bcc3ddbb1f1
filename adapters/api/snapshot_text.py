"""A snapshot told in full, as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.api.text import labelled
from adapters.api.words import clock, count, legible
from domain.naming import short_branch
from domain.paths import display

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adapters.api.snapshot_documents import ShownSnapshot
    from adapters.snapshots.manifest import Held

FIRST = 20  # paths that are named of what is left out
WHY = {
    "asked": "somebody asked for it",
    "removal": "the lane was about to be removed",
    "reaping": "the lane was about to be reaped",
}
SORTS = {  # what a class is called, and one thing of it
    "changed": ("changed", "path"),
    "untracked": ("untracked", "path"),
    "deleted": ("deleted", "path"),
    "staged": ("staged", "path"),
    "apart": ("apart from git", "path"),
    "directories": ("directories with a mode of their own", "path"),
    "empty": ("empty directories", "path"),
    "linked": ("hard links", "path"),
    "attributed": ("with extended attributes", "path"),
    "registration": ("of the registration", "file"),
}


def shown(snapshot: ShownSnapshot, *, whole: bool) -> str:
    """Returns everything about a snapshot; what is left out by its first paths only, unless it is `whole`."""
    omitted = snapshot.omitted if whole else snapshot.omitted[:FIRST]
    left_out = _omitted(omitted, len(snapshot.omitted))
    return "\n".join((*_state(snapshot), *_parts(snapshot), *left_out, *_following(snapshot)))


def _state(snapshot: ShownSnapshot) -> Iterator[str]:
    edition = f", edition {snapshot.edition}" if snapshot.edition else ""
    partly = ", of what was left of it" if snapshot.remnant else ""
    yield f"snapshot {snapshot.id} of {snapshot.slug}{edition}{partly}"
    yield from labelled("taken", clock(snapshot.taken_at))
    actor = snapshot.actor
    yield from labelled("by", f"{actor.client}, user {actor.uid}, process {actor.pid}")
    yield from labelled("why", WHY[snapshot.why])
    yield from labelled("lane", snapshot.lane)
    yield from labelled("repository", display(snapshot.repository))
    yield from labelled("head", snapshot.head or "none: its branch had no commit yet")
    yield from labelled("branch", short_branch(snapshot.branch) or "none: HEAD was detached")
    yield from labelled("operation", f"{snapshot.operation} in progress" if snapshot.operation else None)
    yield from labelled("commit", snapshot.commit)
    yield from labelled("ref", snapshot.ref)
    checked = "yes: all of it was read back just now" if snapshot.verified else UNREAD
    yield from labelled("readable", checked)


UNREAD = "yes, by its ref and its manifest; --verify reads all of it back"


def _parts(snapshot: ShownSnapshot) -> Iterator[str]:
    yield f"holds, beside the commit: {count(snapshot.entries, 'entry')}, {count(snapshot.bytes, 'byte')}"
    for part in snapshot.parts:
        name, thing = SORTS[part.name]
        size = f", {count(part.bytes, 'byte')}" if part.bytes else ""
        yield f"  {name}: {count(part.count, thing)}{size}"
        yield from _paths(part.paths, part.count)
    if not snapshot.parts:
        yield "  nothing"


def _omitted(paths: Iterable[str], total: int) -> Iterator[str]:
    if total:
        yield f"does not hold: {count(total, 'path')}"
        yield from _paths(paths, total)


def _paths(paths: Iterable[str], total: int) -> Iterator[str]:
    named = [f"    {legible(display(path))}" for path in paths]
    yield from named
    if total > len(named):
        yield f"    and {total - len(named)} more"


def _following(snapshot: ShownSnapshot) -> Iterator[str]:
    short = snapshot.id[:8]
    yield "next"
    yield f"  laneyard snapshot diff {short}, or laneyard snapshot cat {short} PATH"


def apart_lines(held: Iterable[Held]) -> bytes:
    """Returns a line for each path whose content git does not have, under a heading."""
    lines = [
        f"  {each.apart}  {count(each.size, 'byte'):>16}  {legible(display(each.path))}\n" for each in held
    ]
    return "".join(["held apart from git:\n", *lines] if lines else []).encode("utf-8", "replace")
