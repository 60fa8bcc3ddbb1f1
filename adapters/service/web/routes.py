"""The addresses: what each takes, and which function answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from litestar import Response, get, post
from litestar.openapi import ResponseSpec
from litestar.params import JSONBody

from adapters.api import bodies, documents, operations, replay_documents
from adapters.api.resolve import Resolved
from adapters.service.web import (
    commanding,
    following,
    making,
    reading,
    replaying,
    snapshot_routes,
    sweeping,
)
from adapters.service.web.parameters import (
    After,
    At,
    CommandId,
    From,
    Glob,
    Gone,
    Inside,
    Key,
    LaneId,
    Last,
    Limit,
    Match,
    Near,
    Observe,
    OfLane,
    Prefer,
    Slug,
    States,
    To,
    Undone,
    UpTo,
    Wanted,
)
from adapters.service.web.responding import Http, typed

if TYPE_CHECKING:
    from litestar.handlers import HTTPRouteHandler


CHANGE = {202: ResponseSpec(documents.Command, False, "it goes on: Location says where to follow it")}
ANSWER = {**CHANGE, 201: ResponseSpec(documents.ChangedLane, False, "the lane that was made")}
UNREADY = {503: ResponseSpec(documents.Health, False, "it recovers, or stops")}


@get("/v1/lanes", operation_id="listLanes")
async def list_lanes(
    request: Http,
    repository: Inside = None,
    near: Near = None,
    gone: Gone = False,
    states: States = None,
    slug: Slug = None,
    at: At = None,
    observe: Observe = "recent",
) -> Response[list[documents.Lane]]:
    """Lists lanes, the oldest first, now or as of a position."""
    wanted = reading.Which(repository, near, gone=gone, states=tuple(states or ()), slug=slug)
    return await typed(reading.list_lanes(request, wanted, at=at, age=reading.age(request, observe)))


@get("/v1/resolve", operation_id="resolveLane")
async def resolve_lane(
    request: Http,
    wanted: Wanted,
    repository: Inside = None,
    near: Near = None,
    undone: Undone = False,
) -> Response[Resolved]:
    """Finds the lane that is meant by a slug, an id or its beginning, or a path inside the lane."""
    return await typed(reading.resolve_lane(request, wanted, repository, near, undone=undone))


@get("/v1/lanes/{lane:str}", operation_id="showLane")
async def show_lane(request: Http, lane: LaneId) -> Response[documents.ShownLane]:
    """Shows everything about a lane, looking at it now; its version is the ETag."""
    return await typed(reading.show_lane(request, lane))


@get("/v1/lanes/{lane:str}/review", operation_id="reviewLane")
async def review_lane(request: Http, lane: LaneId) -> Response[documents.ReviewedLane]:
    """Shows why a lane waits for a person, and the ways out."""
    return await typed(reading.review_lane(request, lane))


@get("/v1/lanes/{lane:str}/replay", operation_id="replayLane")
async def replay_lane(
    request: Http, lane: LaneId, to: UpTo = None
) -> Response[replay_documents.ReplayedEvent]:
    """Explains a lane's log event by event: one a line as application/x-ndjson, or as people read it."""
    return await typed(replaying.replay(request, lane, to))


@get("/v1/lanes/{lane:str}/dry-drive", operation_id="dryDriveLane")
async def dry_drive_lane(request: Http, lane: LaneId, to: UpTo = None) -> Response[replay_documents.DryDrive]:
    """Tells what a recovery would do next for a lane, without doing it."""
    return await typed(replaying.dry_drive(request, lane, to))


@get("/v1/events", operation_id="listEvents")
async def list_events(
    request: Http, after: After = 0, limit: Limit = 1000, lane: OfLane = None, glob: Glob = None
) -> Response[documents.Events]:
    """Reads the log in pages: as one document, or an event a line as application/x-ndjson."""
    return await typed(reading.list_events(request, after, limit, lane, glob))


@get("/v1/events/stream", operation_id="followEvents")
async def follow_events(
    request: Http,
    after: After = 0,
    lane: OfLane = None,
    glob: Glob = None,
    last: Last = None,
) -> Response[str]:
    """Follows the log after a position, without a gap: server-sent events, or application/x-ndjson."""
    return await typed(following.follow_events(request, after, lane, glob, last))


@get("/v1/diff", operation_id="diff")
async def differ(
    request: Http,
    before: From,
    after: To,
) -> Response[documents.Diff]:
    """Tells what differs between two positions of the log."""
    return await typed(reading.differ(request, before, after))


@get("/v1/repositories", operation_id="listRepositories")
async def list_repositories(request: Http) -> Response[list[documents.RepositoryDocument]]:
    """Lists the repositories under our care."""
    return await typed(reading.list_repositories(request))


@get("/v1/sweeps", operation_id="showSweep")
async def show_sweep(
    request: Http, repository: Inside = None, near: Near = None
) -> Response[list[documents.Candidate]]:
    """Shows what a sweep would do."""
    return await typed(sweeping.show(request, repository, near))


@get("/v1/commands/{command:str}", operation_id="showCommand")
async def show_command(
    request: Http, command: CommandId, prefer: Prefer = None
) -> Response[documents.Command]:
    """Tells how far a command is."""
    return await typed(commanding.follow(request, command))


@get("/v1/commands/{command:str}/answer", operation_id="answerCommand", responses=ANSWER)
async def answer_command(request: Http, command: CommandId, prefer: Prefer = None) -> Response[Any]:
    """Answers as the command's own request would have, waiting as preferred."""
    return await typed(commanding.answer_of(request, command))


@get("/v1/health", operation_id="showHealth", responses=UNREADY)
async def show_health(request: Http) -> Response[documents.Health]:
    """Tells whether the service is ready."""
    return await typed(reading.tell_health(request))


@post("/v1/lanes", operation_id="create", status_code=201, responses=CHANGE)
async def create(
    request: Http,
    data: JSONBody[bodies.CreateBody],
    key: Key = None,
    prefer: Prefer = None,
) -> Response[documents.ChangedLane]:
    """Makes a lane."""
    return await typed(making.create(request, data))


@post("/v1/repositories", operation_id="register", status_code=200, responses=CHANGE)
async def register(
    request: Http, data: JSONBody[bodies.RepositoryBody], key: Key = None, prefer: Prefer = None
) -> Response[documents.Registered]:
    """Takes a repository under our care, and its main checkout as its primary lane."""
    return await typed(making.register(request, data))


@post("/v1/sweeps", operation_id="sweep", status_code=200, responses=CHANGE)
async def sweep(
    request: Http, data: JSONBody[bodies.SweepBody | None] = None, key: Key = None, prefer: Prefer = None
) -> Response[list[documents.SweptLane]]:
    """Reaps what has rested long enough, and tries again what could not be deleted."""
    return await typed(sweeping.sweep(request, data or bodies.SweepBody()))


@post("/v1/rebuild", operation_id="rebuild", status_code=200, responses=CHANGE)
async def rebuild(
    request: Http, data: JSONBody[bodies.RebuildBody | None] = None, key: Key = None, prefer: Prefer = None
) -> Response[documents.Rebuilt]:
    """Makes every table anew from the log."""
    return await typed(making.rebuild(request, data or bodies.RebuildBody()))


def on_lane(verb: str, body: type[bodies.Body], what: str) -> HTTPRouteHandler:
    """Returns the handler of one command on a lane."""

    async def handler(request, lane, data=None, key=None, prefer=None, match=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return await typed(commanding.command_lane(request, verb, lane, data or body()))

    handler.__name__, handler.__doc__ = verb.replace("-", "_"), what
    handler.__annotations__ = {
        "request": Http,
        "lane": LaneId,
        "data": cast("Any", JSONBody)[body | None],
        "key": Key,
        "prefer": Prefer,
        "match": Match,
        "return": Response[documents.ChangedLane | documents.GoneLane]
        if verb == "reap"
        else Response[documents.ChangedLane],
    }
    address = f"/v1/lanes/{{lane:str}}/{verb}"
    return post(address, operation_id=handler.__name__, status_code=200, responses=CHANGE)(handler)


ON_LANES = tuple(
    on_lane(verb, cast("type[bodies.Body]", body), str(operation.__doc__))
    for verb, (body, operation) in operations.ON_LANES.items()
)
HANDLERS = (
    *(list_lanes, create, resolve_lane, show_lane, review_lane, *ON_LANES),
    *(replay_lane, dry_drive_lane),
    *(list_events, follow_events, differ, list_repositories, register, *snapshot_routes.HANDLERS),
    *(show_sweep, sweep, show_command, answer_command, rebuild, show_health),
)
