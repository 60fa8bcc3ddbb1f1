"""What is answered before, or instead of, the application: refusals of the connection itself."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from adapters.api.answers import encoded
from adapters.api.problems import made
from domain.errors import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapters.api.documents import Outcome

Headers = list[tuple[bytes, bytes]]


@dataclass(eq=False)
class ForeignUser(Refusal):
    """The process that has connected belongs to another user."""

    uid: int
    code = "foreign_user"
    text = "user {uid} does not own this service."
    status = 403


@dataclass(eq=False)
class TooManyConnections(Refusal):
    """As many connections as the service takes are open."""

    limit: int
    code = "too_many_connections"
    text = "{limit} connections are open, and no more are taken."
    remedy = "Try again in a second."
    status = 503


@dataclass(eq=False)
class HeadTooSlow(Refusal):
    """The request's line and headers did not arrive in the time that they have."""

    seconds: float
    code = "head_too_slow"
    text = "the request's headers did not arrive within {seconds} seconds."
    status = 408


@dataclass(eq=False)
class HeadTooLarge(Refusal):
    """The request's line and headers are larger than they may be."""

    limit: int
    code = "head_too_large"
    text = "the request's line and headers are larger than {limit} bytes."
    status = 431


@dataclass(eq=False)
class NotHttp(Refusal):
    """What was sent is no request of HTTP/1.1."""

    code = "not_http"
    text = "this is no request of HTTP/1.1."
    status = 400


@dataclass(eq=False)
class UnknownHttp(Refusal):
    """The request is of a version of HTTP that is not spoken here."""

    code = "unknown_http"
    text = "only HTTP/1.1 is spoken here."
    status = 505


@dataclass(eq=False)
class Unauthorised(Refusal):
    """Over TCP a request must carry the service's token."""

    code = "unauthorised"
    text = "the request does not carry the service's token."
    remedy = "Send 'Authorization: Bearer TOKEN' with the content of the token file."
    status = 401


def document_of(refusal: Refusal) -> bytes:
    """Returns the problem document (RFC 9457) of a refusal."""
    words, outcome = str(refusal), _outcome_of(refusal)
    return encoded(made(refusal.code, words, refusal.details, outcome, refusal.status)) + b"\n"


def headers_of(refusal: Refusal, body: bytes) -> Headers:
    """Returns the headers that go with a refusal's document."""
    return [
        (b"content-type", b"application/problem+json"),
        (b"content-length", b"%d" % len(body)),
        (b"laneyard-outcome", _outcome_of(refusal).encode()),
    ]


def response_of(refusal: Refusal, extra: Iterable[tuple[bytes, bytes]] = ()) -> bytes:
    """Returns the whole response to a connection that is closed after it."""
    body = document_of(refusal)
    headers = [*headers_of(refusal, body), *extra, (b"connection", b"close")]
    line = f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}\r\n".encode()
    return line + b"".join(b"%s: %s\r\n" % header for header in headers) + b"\r\n" + body


def _outcome_of(refusal: Refusal) -> Outcome:
    return "unavailable" if refusal.status == HTTPStatus.SERVICE_UNAVAILABLE else "refused"
