"""The commands: each asks a use case of the yard, and returns its answer or raises why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.api import bodies, showing
from adapters.api.answers import Answer
from adapters.api.concluding import changed, reaped
from adapters.api.documents import Rebuilt, Registered
from adapters.api.words import count, legible, several
from adapters.lookup import require_understood
from adapters.yard import create as creating
from adapters.yard import ending, putting_away
from adapters.yard.yard import known_repository
from domain.errors import NoSuchLane
from domain.events import IgnoredLetGo
from domain.paths import display, pack, unpack
from domain.states import Active, NeedsReview, Quarantined

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from adapters.engine import Request
    from adapters.repositories import Repository
    from adapters.store.reader import Record
    from adapters.yard.yard import Done, Yard


REBUILDING = "rebuild"  # the stream under which its requests are remembered; it has no events


async def create(yard: Yard, body: bodies.CreateBody, request: Request) -> Answer:
    """Makes a lane; the text is its path."""
    repository = await yard.repository(unpack(body.repository))
    wish = creating.Wish(
        name=body.name, base=body.base, parent=body.parent, branch=body.branch, owner=body.owner
    )
    done = await creating.create(yard, repository, wish, request)
    place = getattr(done.lane, "place", None)
    return changed(done, display(place.path) if place else "")


async def snapshot(yard: Yard, lane: str, body: bodies.SnapshotBody, request: Request) -> Answer:
    """Captures a lane."""
    row, _ = found(yard, lane)
    include = bodies.included(body.include_ignored)
    done = await putting_away.snapshot(yard, row, request, include=include)
    assert isinstance(done.lane, Active | Quarantined | NeedsReview)
    taken = done.lane.record.snapshots[-1]
    size = f"{count(taken.entries, 'entry')}, {count(taken.bytes, 'byte')}"
    if taken.ignored:
        size += f", {count(len(taken.ignored), 'ignored path')} included"
    return changed(done, f"snapshot {taken.id} of {slug(done, row)}: {size}, verified")


async def remove(yard: Yard, lane: str, body: bodies.RemoveBody, request: Request) -> Answer:
    """Puts a lane into quarantine, and reaps it if asked to."""
    row, repository = found(yard, lane)
    done = await putting_away.remove(
        yard,
        repository,
        row,
        request,
        mode="force" if body.force else "safe",
        delete_branch=body.delete_branch,
        reap=body.reap,
        include=bodies.included(body.include_ignored),
    )
    if body.reap and not isinstance(done.lane, Active | Quarantined):
        return changed(done, reaped(slug(done, row), done))
    record = getattr(done.lane, "record", None)
    number, who = record.edition if record is not None else 0, slug(done, row)
    sentence = f"{who} is in quarantine as edition {number}. Bring it back with: laneyard restore {who}"
    return changed(done, "\n".join((sentence, *_let_go(done))))


def _let_go(done: Done) -> Iterator[str]:
    """Yields what the removal was not held by, and a reaping will not keep."""
    for fact in done.facts:
        if isinstance(fact, IgnoredLetGo):
            named = several([legible(display(each.path)) for each in fact.ignored])
            yield f"rebuildable, and not kept when it is reaped: {named}"


async def restore(yard: Yard, lane: str, body: bodies.RestoreBody, request: Request) -> Answer:
    """Brings a lane back."""
    row, repository = found(yard, lane)
    done = await ending.restore(yard, repository, row, request, edition=body.edition, snapshot=body.snapshot)
    place = getattr(done.lane, "place", None)
    return changed(done, f"{slug(done, row)} is back at {legible(display(place.path)) if place else ''}")


async def reap(yard: Yard, lane: str, body: bodies.ReapBody, request: Request) -> Answer:
    """Deletes a quarantined lane."""
    row, _ = found(yard, lane)
    done = await ending.reap(yard, row, request)
    return changed(done, reaped(slug(done, row), done))


async def put_back(yard: Yard, lane: str, body: bodies.ReviewBody, request: Request) -> Answer:
    """Takes a lane out of its review by restoring it from the quarantine."""
    row, repository = found(yard, lane)
    done = await ending.restore(yard, repository, row, request)
    return changed(done, f"{slug(done, row)} is back")


async def resnapshot(yard: Yard, lane: str, body: bodies.ReviewBody, request: Request) -> Answer:
    """Takes a lane out of its review by capturing it as it is, and reaping it."""
    row, _ = found(yard, lane)
    done = await ending.resnapshot(yard, row, request)
    return changed(done, reaped(slug(done, row), done))


async def discard(yard: Yard, lane: str, body: bodies.ReviewBody, request: Request) -> Answer:
    """Takes a lane out of its review by deleting it, with a recorded consent."""
    row, _ = found(yard, lane)
    done = await ending.discard(yard, row, request)
    return changed(done, f"{slug(done, row)} is discarded")


async def register(yard: Yard, body: bodies.RepositoryBody, request: Request) -> Answer:
    """Takes a repository and its main checkout under our care."""
    repository = await yard.repository(unpack(body.path))
    await yard.once(request, repository.stream, lambda: yard.register(repository, request))
    document = Registered(
        common=repository.key, root=pack(repository.root), object_format=repository.object_format
    )
    return Answer(document=document, text=f"{legible(display(document.root))} is under our care")


async def rebuild(yard: Yard, tables: Callable[[], Awaitable[None]], request: Request) -> Answer:
    """Makes every table anew from the log."""
    await yard.once(request, REBUILDING, tables)
    return Answer(document=Rebuilt(), text="every table is made anew from the log")


def review(yard: Yard, lane: str) -> Answer:
    """Tells why a lane waits for a person, and the ways out."""
    row, _ = found(yard, lane)
    return showing.review(yard.reader, row)


def slug(done: Done, row: Record) -> str:
    """Returns what the lane was called when the command had ended."""
    return str((done.row or row)["slug"])


def found(yard: Yard, lane: str) -> tuple[Record, Repository]:
    """Returns a lane's row and its repository. Raises NoSuchLane, LaneBlocked."""
    row = yard.reader.row(lane)
    if row is None:
        raise NoSuchLane(lane)
    require_understood(row)
    repository = known_repository(yard.reader, unpack(str(row["repository"])))
    assert repository is not None
    return row, repository


# By the last part of the address: what is said, and what is done.
ON_LANES = {
    "snapshot": (bodies.SnapshotBody, snapshot),
    "remove": (bodies.RemoveBody, remove),
    "restore": (bodies.RestoreBody, restore),
    "reap": (bodies.ReapBody, reap),
    "put-back": (bodies.ReviewBody, put_back),
    "resnapshot": (bodies.ReviewBody, resnapshot),
    "discard": (bodies.ReviewBody, discard),
}
