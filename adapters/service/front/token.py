"""The bearer token that a request over TCP must carry."""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adapters.files.descriptors import owned
from adapters.files.durable import write_new
from adapters.files.errors import legible
from adapters.service.front.denials import Unauthorised, document_of, headers_of
from domain.errors import Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from adapters.service.front.http11 import App, Send

    Scope = Mapping[str, Any]

LIMIT = 4096  # bytes of a token file
OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(eq=False)
class UnsafeToken(Refusal):
    """The token file could be known to others, or holds no token."""

    path: str
    why: str
    code = "unsafe_token"
    text = "the token in {path} cannot be used: {why}."
    remedy = "Remove the file, and a new one is made."
    status = 500


def read_token(path: bytes) -> str:
    """Returns the token in the file, which is made, for its owner alone, if there is none.

    Raises UnsafeToken, OSError.
    """
    if not os.path.lexists(path):
        with suppress(FileExistsError):  # somebody has just made it, which is as good
            write_new(path, secrets.token_urlsafe(32).encode() + b"\n", 0o600)
    try:
        descriptor = os.open(path, OPEN)
    except OSError as error:
        if stat.S_ISREG(os.lstat(path).st_mode):
            raise
        raise UnsafeToken(legible(path), "it is no regular file") from error
    with owned(descriptor):
        return _read(descriptor, path)


def _read(descriptor: int, path: bytes) -> str:
    why = _objection(os.fstat(descriptor))
    content = b"" if why else os.read(descriptor, LIMIT + 1)
    token = content.strip()
    if not why and not token:
        why = "it is empty"
    elif not why and (len(content) > LIMIT or not all(0x20 < byte < 0x7F for byte in token)):
        why = "it is not one word of visible ASCII characters"
    if why:
        raise UnsafeToken(legible(path), why)
    return token.decode("ascii")


def _objection(status: os.stat_result) -> str:
    if not stat.S_ISREG(status.st_mode):
        return "it is no regular file"
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}"
    if status.st_mode & 0o077:
        return f"others may use it (its mode is {stat.S_IMODE(status.st_mode):04o}, not 0600)"
    return ""


class Authorised:
    """An application that answers over the Unix socket, and elsewhere to those who know the token."""

    def __init__(self, app: App, token: str, refuse: Callable[[str], None] = lambda _: None) -> None:
        """Lets those in who show the token; `refuse` is told the reason of each refusal."""
        self._app, self._token, self._refuse = app, token.encode("ascii"), refuse

    async def __call__(self, scope: Scope, receive: Callable[[], Awaitable[Any]], send: Send) -> None:
        """Passes the request on, or answers 401, after which the connection is closed."""
        if scope["type"] == "lifespan" or _over_unix(scope):
            await self._app(scope, receive, send)
        elif self._knows(scope):
            scope["state"]["trust"]()
            await self._app(scope, receive, send)
        else:
            self._refuse(Unauthorised.code)
            await _refuse(send)

    def _knows(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token)


def _over_unix(scope: Scope) -> bool:
    return bool(scope.get("state", {}).get("transport") == "unix")


async def _refuse(send: Send) -> None:
    refusal = Unauthorised()
    body = document_of(refusal)
    headers = [*headers_of(refusal, body), (b"www-authenticate", b'Bearer realm="laneyard"')]
    headers.append((b"connection", b"close"))  # nobody rests here who has not shown the token
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
