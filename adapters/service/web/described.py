"""What all operations have in common, for the document: headers, and the problems by status."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from adapters.api import events, replaying
from adapters.api.problems import UNUSABLES
from adapters.config import settings
from adapters.ignored import wanted
from adapters.service import refusals
from adapters.service.front import denials
from adapters.service.web import misuse
from adapters.yard import capturing, create
from domain import errors
from domain.errors import Refusal

ABOUT = """\
Owns the life of git worktrees: every transition an event, every removal reversible, nothing lost.

**Paths** in requests, in `repository` and in observations are written with %XX for `%` and for bytes that \
are not UTF-8. `path` is for reading; where it is not exact, `path_encoded` is.

**Answers** are JSON, or text/plain as the command line prints it, by `Accept`; what is not offered is \
answered as JSON. `Laneyard-Outcome` says how it ended: `done`, `unfinished` (begun: a 202, or a lane that \
needs a person), `refused` (nothing has changed), or `unavailable` (the service or its log cannot be \
used).

**Problems** are RFC 9457: decide by `code`, which is stable; `docs/errors.md` lists each with its \
`details`. As text/plain a problem is one line, `MESSAGE [code]`. With 503 and `Retry-After` the same \
request may be taken later.

**Commands** (every POST) have an id, the `Idempotency-Key`. Whoever has lost the connection sends the \
same request with the same key again. A client that goes away cancels nothing. A command that takes longer \
than it is waited for is answered 202, with a `Location` where its answer will be.

Every GET may be a HEAD. A parameter or a key that is unknown is refused by name."""

OUTCOME, KEY, LOCATION, ETAG = "Laneyard-Outcome", "Idempotency-Key", "Location", "ETag"
RETRY, APPLIED, LINK, POSITION = "Retry-After", "Preference-Applied", "Link", "Laneyard-Position"
CHALLENGE = "WWW-Authenticate"
HEADERS: dict[str, Any] = {
    OUTCOME: {
        "description": "How it ended.",
        "schema": {"type": "string", "enum": ["done", "unfinished", "refused", "unavailable"]},
    },
    KEY: {"description": "The command's id.", "schema": {"type": "string"}},
    LOCATION: {
        "description": "Where the lane that was made is, or with 202 where the answer will be.",
        "schema": {"type": "string"},
    },
    ETAG: {
        "description": "The lane's version, as `If-Match` takes it.",
        "schema": {"type": "string", "pattern": '^"[0-9]+"$'},
    },
    RETRY: {"description": "Seconds until it is worth asking again.", "schema": {"type": "integer"}},
    APPLIED: {"description": "What of `Prefer` was done.", "schema": {"type": "string"}},
    LINK: {"description": 'The next page: `<ADDRESS>; rel="next"`.', "schema": {"type": "string"}},
    POSITION: {
        "description": "The position up to which the log was looked through.",
        "schema": {"type": "integer"},
    },
    CHALLENGE: {"description": "How to show the token.", "schema": {"type": "string"}},
}
OURS = (
    errors,
    events,
    replaying,
    capturing,
    create,
    settings,
    wanted,
    denials,
    misuse,
    refusals,
)  # where the refusals are that a request can meet
OF_PROBLEM = {"401": (CHALLENGE,), "412": (ETAG,), "503": (RETRY,)}
SHOWING_A_LANE = {"showLane", "reviewLane"}
OF_SNAPSHOTS = (
    *("listSnapshots", "resolveSnapshot", "showSnapshot", "diffSnapshot"),
    *("listSnapshotEntries", "readSnapshotContent"),
)
# What any request may meet, what a question may, and what a command may.
ANY = ("400", "401", "403", "408", "413", "431", "500", "503", "505")
QUESTION = (*ANY, "404", "409", "422", "504")
COMMAND = (*QUESTION, "410", "412", "415", "502", "507")


def headers_of(operation: str, status: str) -> dict[str, Any]:
    """Returns the headers of an answer that is no problem; those of a command's end are its own request's."""
    names = () if operation == "metrics" else (OUTCOME,)
    command = operation not in ("listLanes", "resolveLane", "listRepositories", *OF_SNAPSHOTS, "showSweep")
    if operation in SHOWING_A_LANE or status == "201":
        names = (*names, ETAG)
    if operation == "listEvents":
        names = (*names, LINK, POSITION)
    if operation == "listSnapshotEntries":
        names = (*names, LINK)
    if status == "202":
        names = (*names, LOCATION, RETRY)
    elif status == "201":
        names = (*names, LOCATION)
    if command and _is_change(operation):
        names = (*names, KEY, APPLIED)
        names = (*names, ETAG) if ETAG not in names and status == "200" else names
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _is_change(operation: str) -> bool:
    return operation not in {
        *("listLanes", "resolveLane", "showLane", "reviewLane", "listEvents", "followEvents", "diff"),
        *("replayLane", "dryDriveLane"),
        *("listRepositories", *OF_SNAPSHOTS, "showSweep", "showCommand", "showHealth", "metrics"),
    }


def problems_of(operation: str, method: str) -> tuple[str, ...]:
    """Returns the statuses of the problems that an operation may answer."""
    if method == "post" or operation == "answerCommand":
        return COMMAND
    return ANY if operation in ("metrics", "showHealth") else QUESTION


def problem_responses() -> dict[str, Any]:
    """Returns a response for each status that a problem may have, with the codes that go with it."""
    codes = codes_by_status()
    return {f"Problem{status}": _response(status, codes[status]) for status in sorted(COMMAND)}


def _response(status: str, codes: set[str]) -> dict[str, Any]:
    names = (OUTCOME, *OF_PROBLEM.get(status, ()))
    listed = ", ".join(f"`{code}`" for code in sorted(codes))
    return {
        "description": f"{HTTPStatus(int(status)).phrase}: {listed}",
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names},
        "content": {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}},
            "text/plain": {"schema": {"type": "string", "description": "`MESSAGE [code]`"}},
        },
    }


def codes_by_status() -> dict[str, set[str]]:
    """Returns the codes that a problem may have, by its status."""
    found: dict[str, set[str]] = {status: set() for status in COMMAND}
    for refusal in (each for module in OURS for each in vars(module).values()):
        if (
            isinstance(refusal, type)
            and issubclass(refusal, Refusal)
            and "code" in vars(refusal)
            and refusal is not Refusal
        ):
            found.setdefault(str(refusal.status), set()).add(refusal.code)
    for _, code, status, *_ in UNUSABLES:
        found.setdefault(str(status), set()).add(code)
    found["500"] = {"internal_error"}
    found["503"] |= {"io_failed"}
    return found
