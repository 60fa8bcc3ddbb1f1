"""What a request means before it is routed or read: HEAD, absolute targets, and what would be overlooked."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec
import trio
from litestar import Response
from litestar.params import QueryParameter

from adapters.api.bodies import misfit
from adapters.service.web.headers import command_id, expected_version
from adapters.service.web.misuse import InvalidRequest, NoSuchAddress, UnsupportedMedia

if TYPE_CHECKING:
    from litestar.handlers import HTTPRouteHandler

    from adapters.service.front.http11 import App, Asked, Message, Receive, Send
    from adapters.service.web.responding import Http

SCHEMES = ("http://", "https://")
REPEATED = {"state", "below", "path"}  # parameters that may be given more than once
NUMBERS = {"at", "to"}  # may be left out; the framework takes the word null for that
CHARSETS = {"utf-8", "utf8", "us-ascii"}


class Understood:
    """Answers HEAD as GET without the body, and absolute targets (RFC 9112, 3.2.2); wraps an application."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Asked, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"].lower().startswith(SCHEMES):
            scope = {**scope, "path": "/" + scope["path"].split("//", 1)[1].partition("/")[2]}
        if scope["method"] == "OPTIONS" and scope["path"] == "*":  # the service itself (RFC 9110, 9.3.7)
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        elif scope["method"] == "HEAD":
            await self._head({**scope, "method": "GET"}, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _head(self, scope: Asked, receive: Receive, send: Send) -> None:
        with trio.CancelScope() as answered:

            async def head_only(message: Message) -> None:
                if message["type"] == "http.response.start":
                    await send(message)
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                    answered.cancel()  # a stream of events would go on for ever

            await self._app(scope, receive, head_only)


async def check(request: Http) -> Response[None] | None:
    """Refuses what would be overlooked otherwise, and answers OPTIONS.

    Raises NoSuchAddress for a `/` that was written as %2F, InvalidRequest for a parameter that is unknown or
    given twice and for a body that is not as described, UnsupportedMedia for one that says it is no JSON.
    """
    if b"%2f" in request.scope.get("raw_path", b"").partition(b"?")[0].lower():
        raise NoSuchAddress(request.url.path)
    if request.method == "OPTIONS":
        return Response(None, status_code=204, headers={"Allow": _methods(request)})
    known = parameters(request.route_handler)
    for name in request.query_params:
        if name not in known:
            raise InvalidRequest(f"the parameter {name!r} is unknown here")
        if name in NUMBERS and request.query_params[name] == "null":
            raise InvalidRequest(f"the parameter {name!r} is no number")
        if name not in REPEATED and len(request.query_params.getall(name)) > 1:
            raise InvalidRequest(f"the parameter {name!r} is given more than once")
    if request.method == "POST":
        # The framework would tell of a pattern that does not match, and these say what is wanted.
        command_id(request.headers.get("idempotency-key"))
        expected_version(request.headers.get("if-match"))
        _check_media(request)
        await _check_body(request)
    return None


def _methods(request: Http) -> str:
    """Returns the methods of all that is served at an address; the framework tells of one of them only."""
    here = request.scope["path_template"]
    found = {method for route in request.app.routes if route.path_format == here for method in route.methods}
    return ", ".join(sorted({*found, "HEAD"} if "GET" in found else found))


def _check_media(request: Http) -> None:
    given = request.headers.get("content-type", "")
    empty = request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers
    if empty or not given:
        return
    media, _, rest = given.partition(";")
    charset = rest.strip().lower().removeprefix("charset=").strip('"')
    if media.strip().lower() != "application/json" or (charset and charset not in CHARSETS):
        raise UnsupportedMedia(given)


async def _check_body(request: Http) -> None:
    """Reads the body as strictly as it is described: the framework takes "yes" for true and "1" for 1."""
    body, field = await request.body(), request.route_handler.parsed_data_field
    if field is None:
        return
    if not body:
        if not field.is_optional:
            raise InvalidRequest("body: it is missing")
        return
    try:
        msgspec.convert(_whole(msgspec.json.decode(body)), type=field.annotation)
    except RecursionError as error:
        raise InvalidRequest("body: it is nested too deeply") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise misfit(error) from error


def _whole(said: object) -> object:
    """Returns what was said with 3.0 as 3, which is an integer to JSON Schema (2020-12 core, 4.2.3)."""
    if not isinstance(said, dict):
        return said
    return {k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in said.items()}


@cache
def parameters(handler: HTTPRouteHandler) -> frozenset[str]:
    """Returns the names of the query parameters that a handler takes."""
    return frozenset(
        found for found, kind in spelt(handler).values() if kind is QueryParameter and found is not None
    )


@cache
def spelt(handler: HTTPRouteHandler) -> dict[str, tuple[str | None, type]]:
    """Returns what each of a handler's arguments is called in a request, and where it stands there."""
    fields = handler.parsed_fn_signature.parameters
    return {
        argument: (getattr(field.kwarg_definition, "name", None), type(field.kwarg_definition))
        for argument, field in fields.items()
    }
