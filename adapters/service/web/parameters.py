"""What an address, a query and headers may say, as the handlers take it and the document describes it."""

from __future__ import annotations

from typing import Annotated, Literal

from litestar.params import HeaderParameter, PathParameter, QueryParameter

from adapters.api.documents import State
from adapters.service.web.headers import KEY_PATTERN, MATCH_PATTERN

POSITION = (1 << 53) - 1  # what every reader of JSON can hold (RFC 8259, section 6)
PATH = 12_288  # characters of a path in which every byte may be written as %XX

LaneId = Annotated[
    str,
    PathParameter(min_length=1, max_length=64, pattern=r"^[^/]+$", description="The lane's id, a UUID."),
]
CommandId = Annotated[
    str,
    PathParameter(
        min_length=1,
        max_length=255,
        pattern=KEY_PATTERN,
        description="The command's id: the Idempotency-Key that it was sent with, or that was made for it.",
    ),
]
Wanted = Annotated[
    str,
    QueryParameter(
        name="lane",
        min_length=1,
        max_length=PATH,
        description="A slug, an id or a unique beginning of one, or a path inside the lane.",
    ),
]
Inside = Annotated[
    str | None,
    QueryParameter(
        name="repository",
        min_length=1,
        max_length=PATH,
        description="An absolute path inside a repository: only that one's. It is an error if it is in none.",
    ),
]
Near = Annotated[
    str | None,
    QueryParameter(
        name="near",
        pattern="^/",
        min_length=1,
        max_length=PATH,
        description="An absolute path where somebody stands: the repository around it if any is, else all.",
    ),
]
Gone = Annotated[bool, QueryParameter(name="all", description="Also lanes that are reaped.")]
States = Annotated[
    list[State] | None, QueryParameter(name="state", description="Only lanes in this state; may be repeated.")
]
Slug = Annotated[
    str | None,
    QueryParameter(name="slug", min_length=1, max_length=200, description="Only the lanes with this slug."),
]
At = Annotated[
    int | None,
    QueryParameter(
        name="at", ge=-POSITION, le=POSITION, description="As the lanes were at this position of the log."
    ),
]
Observe = Annotated[
    Literal["recent", "now", "none"],
    QueryParameter(
        name="observe",
        description="What is seen of each lane on the disk: by default as it was at most `service.look_age` "
        "seconds ago, each value with its time; `now` looks again, and `none` leaves it out.",
    ),
]
Undone = Annotated[
    bool, QueryParameter(name="undone", description="Also the whole id of a lane that never came to be.")
]
OfLane = Annotated[
    str | None,
    QueryParameter(
        name="lane",
        min_length=1,
        max_length=64,
        description="Only the events of the lane with this id, which is whole.",
    ),
]
After = Annotated[
    int, QueryParameter(name="after", ge=0, le=POSITION, description="Only what follows this position.")
]
From = Annotated[
    int, QueryParameter(name="from", ge=-POSITION, le=POSITION, description="The earlier position.")
]
To = Annotated[int, QueryParameter(name="to", ge=-POSITION, le=POSITION, description="The later position.")]
UpTo = Annotated[
    int | None,
    QueryParameter(
        name="to", ge=-POSITION, le=POSITION, description="Only up to and with this position of the log."
    ),
]
Limit = Annotated[int, QueryParameter(name="limit", ge=1, le=1000, description="Events on a page at most.")]
Glob = Annotated[
    str | None,
    QueryParameter(
        name="type",
        min_length=1,
        max_length=100,
        description="Only events whose type matches, such as `lane.*` or `removal.planned@4`.",
    ),
]
Last = Annotated[
    str | None,
    HeaderParameter(
        name="Last-Event-ID",
        max_length=100,
        required=False,
        description="The id of the last event that was received; goes before `after`.",
    ),
]
Key = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        min_length=1,
        max_length=257,
        pattern=f'^({KEY_PATTERN[1:-1]}|"{KEY_PATTERN[1:-1]}")$',
        required=False,
        description=(
            "The command's id; without it one is made. The same key with the same request is the same "
            "command, also after a restart of the service: it is done once, and answered alike. What was "
            "refused before anything began is decided again. Plain, or in double quotes."
        ),
    ),
]
Match = Annotated[
    str | None,
    HeaderParameter(
        name="If-Match",
        pattern=MATCH_PATTERN,
        required=False,
        description='The version that the lane must have, as its ETag says: `"7"`. `*` is any.',
    ),
]
Prefer = Annotated[
    str | None,
    HeaderParameter(
        name="Prefer",
        required=False,
        description=(
            "`wait=SECONDS` to be answered when it has ended or that time is over, `respond-async` to be "
            "answered at once. What is not understood is ignored (RFC 7240)."
        ),
    ),
]
