"""The addresses of snapshots: what each takes, and which function answers it."""

from __future__ import annotations

from typing import Annotated, Literal

from litestar import Response, get
from litestar.params import PathParameter, QueryParameter

from adapters.api import snapshot_documents as documents
from adapters.service.web import snapshots
from adapters.service.web.parameters import PATH, Inside, Near
from adapters.service.web.responding import Http, typed

ENTRIES = 10_000  # on a page at most

SnapshotId = Annotated[
    str,
    PathParameter(
        min_length=1, max_length=64, pattern=r"^[^/]+$", description="The snapshot's whole id, a UUID."
    ),
]
OfLane = Annotated[
    str | None,
    QueryParameter(
        name="lane", min_length=1, max_length=64, description="Only those of the lane with this id."
    ),
]
Wanted = Annotated[
    str,
    QueryParameter(
        name="snapshot",
        min_length=1,
        max_length=PATH,
        description="An id or a unique beginning of one; `LANE` for a lane's last snapshot, `LANE@N` for the "
        "one that its edition N comes back from.",
    ),
]
Paths = Annotated[
    Literal["first", "all"],
    QueryParameter(name="paths", description="Name the first paths of each class, or all."),
]
Verify = Annotated[bool, QueryParameter(name="verify", description="Read all of it back now.")]
Staged = Annotated[bool, QueryParameter(name="staged", description="Of the index, not of the worktree.")]
Below = Annotated[
    list[str] | None,
    QueryParameter(
        name="below",
        description="Only this path, relative to the lane, and what is below it; may be repeated.",
    ),
]
At = Annotated[
    list[str],
    QueryParameter(
        name="path",
        min_items=1,
        description="A file or link, relative to the lane; may be repeated for one content after the other.",
    ),
]
After = Annotated[
    str | None,
    QueryParameter(name="after", min_length=1, max_length=PATH, description="Only what follows this path."),
]
Limit = Annotated[
    int, QueryParameter(name="limit", ge=1, le=ENTRIES, description="Entries on a page at most.")
]


@get("/v1/snapshots", operation_id="listSnapshots")
async def list_snapshots(
    request: Http, repository: Inside = None, near: Near = None, lane: OfLane = None
) -> Response[list[documents.ListedSnapshot]]:
    """Lists the snapshots that are kept, in the order in which they were taken."""
    return await typed(snapshots.list_all(request, repository, near, lane))


@get("/v1/resolve/snapshot", operation_id="resolveSnapshot")
async def resolve_snapshot(
    request: Http, wanted: Wanted, repository: Inside = None, near: Near = None
) -> Response[documents.FoundSnapshot]:
    """Finds the snapshot that is meant by what people call it."""
    return await typed(snapshots.resolve(request, wanted, repository, near))


@get("/v1/snapshots/{snapshot:str}", operation_id="showSnapshot")
async def show_snapshot(
    request: Http, snapshot: SnapshotId, paths: Paths = "first", verify: Verify = False
) -> Response[documents.ShownSnapshot]:
    """Shows everything about a snapshot."""
    return await typed(snapshots.show(request, snapshot, whole=paths == "all", read_back=verify))


@get("/v1/snapshots/{snapshot:str}/diff", operation_id="diffSnapshot")
async def diff_snapshot(
    request: Http, snapshot: SnapshotId, below: Below = None, staged: Staged = False
) -> Response[str]:
    """Shows what a snapshot changes, as `git diff` does."""
    return await typed(snapshots.diff(request, snapshot, below or (), staged=staged))


@get("/v1/snapshots/{snapshot:str}/entries", operation_id="listSnapshotEntries")
async def list_entries(
    request: Http, snapshot: SnapshotId, below: Below = None, after: After = None, limit: Limit = 1000
) -> Response[documents.SnapshotEntries]:
    """Lists what a restore would make, in pages."""
    return await typed(snapshots.entries(request, snapshot, below or (), after, limit))


@get("/v1/snapshots/{snapshot:str}/content", operation_id="readSnapshotContent")
async def read_content(
    request: Http, snapshot: SnapshotId, paths: At, staged: Staged = False
) -> Response[bytes]:
    """Reads files of a snapshot."""
    return await typed(snapshots.content(request, snapshot, paths, staged=staged))


HANDLERS = (list_snapshots, resolve_snapshot, show_snapshot, diff_snapshot, list_entries, read_content)
