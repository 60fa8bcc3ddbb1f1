"""Snapshots as they are answered: all of them, one in full, its entries, its difference and its content."""

from __future__ import annotations

from contextlib import ExitStack, aclosing, contextmanager
from typing import IO, TYPE_CHECKING, Literal, cast

from msgspec import UNSET
from msgspec.structs import asdict

from adapters.api.answers import Answer
from adapters.api.documents import Actor
from adapters.api.keeping import snapshots as kept_snapshots
from adapters.api.snapshot_documents import (
    ListedSnapshot,
    ShownSnapshot,
    SnapshotEntries,
    SnapshotEntry,
    SnapshotPart,
)
from adapters.api.snapshot_text import apart_lines, shown
from adapters.api.text import table
from adapters.api.words import clock
from adapters.snapshots.capture.capture import verify
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.manifest import snapshot_dir
from adapters.snapshots.reading import comparing, contents
from adapters.snapshots.reading.reading import open_snapshot, relative
from adapters.snapshots.reading.recent import Recent
from adapters.snapshots.reading.summary import operation, summarise
from domain.envelope import stream_of
from domain.errors import SnapshotUnusable
from domain.events import LaneSnapshotted, ReapingPlanned, RemovalPlanned
from domain.paths import display, is_text, pack, unpack

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from adapters.api.choosing import Chosen
    from adapters.api.documents import KeptSnapshot
    from adapters.api.snapshot_documents import Sort as Name
    from adapters.git.door import Git
    from adapters.snapshots.reading.reading import Opened, Part
    from adapters.snapshots.reading.summary import Sort
    from adapters.store.reader import Reader
    from domain.envelope import Envelope

    Why = Literal["asked", "removal", "reaping"]
    Kind = Literal["file", "link", "directory"]

FIRST = 20  # paths of a class that are named unless all are asked for


class Shelf:
    """Where snapshots are read from: git, the state directory, and the log."""

    def __init__(self, git: Git, state_dir: bytes, reader: Reader, recent: Recent | None = None) -> None:
        self.git, self.state_dir, self.reader = git, state_dir, reader
        self._recent = recent if recent is not None else Recent()

    async def open(self, chosen: Chosen, *, again: bool = False) -> Opened:
        """Opens a snapshot; `again` takes one that was opened a moment ago.

        Raises NotARepository, SnapshotUnusable.
        """
        opened = self._recent.get(chosen.taken) if again else None
        if opened is None:
            with usable(chosen):
                opened = await open_snapshot(self.git, self.state_dir, chosen.lane.repository, chosen.taken)
        self._recent.put(chosen.taken, opened)
        return opened


@contextmanager
def usable(chosen: Chosen) -> Iterator[None]:
    """Tells of damage as a refusal. Raises SnapshotUnusable."""
    try:
        yield
    except SnapshotDamaged as error:
        raise SnapshotUnusable(chosen.taken.id, str(error)) from error


def listed(reader: Reader, key: str | None, lane: str | None) -> Answer:
    """Returns the snapshots of a repository, by its key, of one lane, or all, the oldest first."""
    kept = cast("list[KeptSnapshot]", kept_snapshots(reader).document)
    found = [
        ListedSnapshot(**asdict(each), taken_at=_taken_at(reader, each.position))
        for each in kept
        if key in (None, each.repository) and lane in (None, each.lane)
    ]
    return answered(found)


def answered(found: Sequence[ListedSnapshot]) -> Answer:
    """Returns snapshots as they are answered."""
    return Answer(document=found, text=lambda: _listed_text(found))


def _taken_at(reader: Reader, position: int) -> str:
    return next(each.time for each in reader.events(after=position - 1, limit=1))


def _listed_text(found: Sequence[ListedSnapshot]) -> str:
    if not found:
        return "no snapshot is kept; 'laneyard snapshot LANE' takes one"
    rows = [(e.id, e.slug, e.edition, clock(e.taken_at), e.entries, e.bytes) for e in found]
    return table(("SNAPSHOT", "LANE", "EDITION", "TAKEN", "ENTRIES", "BYTES"), rows)


async def show(shelf: Shelf, chosen: Chosen, *, whole: bool, read_back: bool) -> Answer:
    """Returns everything about a snapshot, with all paths or the first ones, read back if that is asked for.

    Raises NotARepository, SnapshotUnusable, GitError.
    """
    opened = await shelf.open(chosen)
    with usable(chosen):
        if read_back:
            directory = snapshot_dir(shelf.state_dir, chosen.taken.id)
            await verify(shelf.git, directory, opened.common, chosen.taken)
        sorts = await summarise(opened)
    document = _document(shelf.reader, chosen, opened, sorts, whole=whole, verified=read_back)
    return Answer(document=document, text=lambda: shown(document, whole=whole))


def _document(
    reader: Reader, chosen: Chosen, opened: Opened, sorts: Sequence[Sort], *, whole: bool, verified: bool
) -> ShownSnapshot:
    taken, lane, manifest = chosen.taken, chosen.lane, opened.manifest
    event, why = _moment(reader, chosen)
    return ShownSnapshot(
        id=taken.id,
        lane=lane.lane,
        slug=lane.slug,
        repository=lane.repository,
        edition=next((each.number for each in lane.editions if each.snapshot_id == taken.id), None),
        ref=taken.ref,
        commit=taken.commit,
        entries=taken.entries,
        bytes=taken.bytes,
        position=event.position,
        taken_at=event.time,
        actor=Actor(uid=event.actor.uid, pid=event.actor.pid, client=event.actor.client),
        cause=event.cause,
        why=why,
        format=manifest.format,
        head=manifest.head or None,
        branch=manifest.branch,
        operation=operation(manifest.registration),
        remnant=lane.is_remnant(taken.id),
        verified=verified,
        parts=tuple(_part(each, None if whole else FIRST) for each in sorts),
        omitted=manifest.omitted,
    )


def _part(sort: Sort, most: int | None) -> SnapshotPart:
    name = cast("Name", sort.name)
    return SnapshotPart(name=name, count=len(sort.paths), bytes=sort.bytes, paths=sort.paths[:most])


def _moment(reader: Reader, chosen: Chosen) -> tuple[Envelope, Why]:
    """Returns the event that tells of the capture, and what it was taken for: what its command did next."""
    taken: Envelope | None = None
    for event in reader.events(stream=stream_of(chosen.lane.lane)):
        if isinstance(event.fact, LaneSnapshotted) and event.fact.snapshot.id == chosen.taken.id:
            taken = event
        elif taken is not None and event.cause == taken.cause:
            if isinstance(event.fact, RemovalPlanned):
                return taken, "removal"
            if isinstance(event.fact, ReapingPlanned):
                return taken, "reaping"
    assert taken is not None
    return taken, "asked"


async def diff(
    shelf: Shelf, chosen: Chosen, paths: Sequence[bytes], *, staged: bool
) -> AsyncGenerator[bytes]:
    """Yields what `git diff` would show, and after it what is held apart from git, as bytes.

    Raises NotARepository, NotInSnapshot, SnapshotUnusable, GitError.
    """
    plain = [relative(path, chosen.taken.id) for path in paths]
    opened = await shelf.open(chosen)
    with usable(chosen):
        async for piece in comparing.diff(opened, plain, staged=staged):
            yield piece
    if not staged:
        yield apart_lines(comparing.apart(opened, plain))


async def content(shelf: Shelf, chosen: Chosen, paths: Sequence[bytes], *, staged: bool) -> list[IO[bytes]]:
    """Returns the content of files, of links their targets, in the order of the paths; the caller closes it.

    Raises NotARepository, NotInSnapshot, SnapshotUnusable, GitError, OSError.
    """
    plain = [relative(path, chosen.taken.id) for path in paths]
    opened = await shelf.open(chosen, again=True)
    with usable(chosen):
        held = await (opened.staged_at(plain) if staged else opened.at(plain))
        wanted = [(each.oid or "", each.apart) for each in held]
        async with aclosing(contents.contents(opened, wanted)) as found:
            with ExitStack() as unwanted:  # where a later one is damaged
                fetched = [unwanted.enter_context(each) async for each in found]
                unwanted.pop_all()
                return fetched


async def entries(
    shelf: Shelf, chosen: Chosen, below: Sequence[bytes], after: str | None, limit: int
) -> Answer:
    """Returns a page of what a restore would make: at these paths and below, or everything.

    Raises NotARepository, NotInSnapshot, SnapshotUnusable, GitError.
    """
    plain = [relative(path, chosen.taken.id) for path in below]
    opened = await shelf.open(chosen, again=True)
    with usable(chosen):
        parts = await opened.parts(plain)
        if after is not None:
            last = unpack(after).split(b"/")
            parts = [each for each in parts if each.path.split(b"/") > last]
        page = await opened.measured(parts[:limit])
    following = pack(page[-1].path) if len(parts) > limit else None
    document = SnapshotEntries(entries=tuple(map(entry_document, page)), next=following)
    return Answer(document=document, text=lambda: _entries_text(document.entries))


class Source:
    """The entries of one snapshot and their contents."""

    def __init__(self, chosen: Chosen, opened: Opened) -> None:
        self._chosen, self._opened = chosen, opened

    async def parts(self, below: bytes) -> list[Part]:
        """Returns a path and all below it. Raises NotInSnapshot, SnapshotUnusable, GitError."""
        with usable(self._chosen):
            return await self._opened.parts([below])

    async def contents(self, parts: Sequence[Part]) -> AsyncGenerator[IO[bytes]]:
        """Yields what is in each file, or a link's target; the caller closes it. Raises SnapshotUnusable."""
        wanted = [(each.oid or "", each.sha256) for each in parts]
        with usable(self._chosen):
            async with aclosing(contents.contents(self._opened, wanted)) as found:
                async for each in found:
                    yield each


async def open_parts(shelf: Shelf, chosen: Chosen) -> Source:
    """Opens a snapshot for more than one look. Raises NotARepository, SnapshotUnusable."""
    return Source(chosen, await shelf.open(chosen))


def entry_document(part: Part) -> SnapshotEntry:
    """Returns an entry as it is answered."""
    packed = pack(part.path)
    return SnapshotEntry(
        path=display(packed),
        path_encoded=UNSET if is_text(packed) else packed,
        kind=cast("Kind", part.kind),
        mode=f"{part.mode:04o}",
        size=part.size,
        oid=part.oid,
        sha256=part.sha256,
        mtime_ns=None if part.mtime_ns is None else str(part.mtime_ns),
        committed=part.committed,
    )


def _entries_text(entries: Sequence[SnapshotEntry]) -> str:
    return table(("MODE", "KIND", "BYTES", "PATH"), [(e.mode, e.kind, e.size, e.path) for e in entries])
