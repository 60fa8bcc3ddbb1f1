"""From an answer or a problem to a response, as JSON or as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from litestar import Request, Response

from adapters.api.answers import encoded
from adapters.api.documents import Lane
from domain.errors import VersionMismatch

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from adapters.api.answers import Answer
    from adapters.api.documents import Problem

JSON, TEXT, NDJSON, SSE = "application/json", "text/plain", "application/x-ndjson", "text/event-stream"
Http = Request[Any, Any, Any]
T = TypeVar("T")

PROBLEM = "application/problem+json"
OUTCOME = "Laneyard-Outcome"


def chosen(request: Http, *offered: str) -> str:
    """Returns what the client likes best of what is offered, else the first."""
    if not request.headers.get("accept"):
        return offered[0]
    return request.accept.best_match(list(offered)) or offered[0]


def respond(
    request: Http, answer: Answer, status: int = 200, headers: dict[str, str] | None = None
) -> Response[bytes]:
    """Returns the response to what was asked; of a lane with its version as ETag."""
    shown = {OUTCOME: answer.outcome, "Vary": "Accept", **(headers or {})}
    if isinstance(answer.document, Lane):
        shown["ETag"] = f'"{answer.document.version}"'
    media = chosen(request, JSON, TEXT)
    return sent(body_of(answer, media), media, status, shown)


def body_of(answer: Answer, media: str) -> bytes:
    """Returns an answer as text or as JSON."""
    return (answer.text.encode("utf-8", "replace") if media == TEXT else encoded(answer.document)) + b"\n"


def refuse(request: Http, problem: Problem, headers: dict[str, str] | None = None) -> Response[bytes]:
    """Returns the response to what was not done."""
    shown = {OUTCOME: problem.outcome, "Vary": "Accept", **(headers or {})}
    if chosen(request, PROBLEM, JSON, TEXT) == TEXT:
        body = f"{problem.detail} [{problem.code}]\n".encode()
        return sent(body, TEXT, problem.status, shown)
    return sent(encoded(problem) + b"\n", PROBLEM, problem.status, shown)


def beside(error: Exception) -> dict[str, str]:
    """Returns the headers that go with a refusal: when to come back, or the version that the lane has."""
    after = getattr(error, "retry_after", None)
    if after is not None:
        return {"Retry-After": str(max(1, round(after)))}
    return {"ETag": f'"{error.version}"'} if isinstance(error, VersionMismatch) else {}


def sent(body: bytes, media: str, status: int, headers: dict[str, str]) -> Response[bytes]:
    """Returns a response as it is; Litestar names the charset of a text."""
    return Response(content=body, status_code=status, media_type=media, headers=headers)


async def typed(answer: Awaitable[Response[bytes]]) -> Response[T]:
    """Returns an encoded response where the document is annotated, which describes what is encoded."""
    return cast("Response[T]", await answer)
