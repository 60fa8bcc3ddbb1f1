"""The application: addresses, the document that describes them, and what becomes of errors."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

from litestar import Litestar, MediaType, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig
from prometheus_client import CollectorRegistry

from adapters.api.problems import problem
from adapters.service.web import metrics
from adapters.service.web.bounded import Bounded
from adapters.service.web.commanding import told
from adapters.service.web.description import Description
from adapters.service.web.misuse import (
    InvalidRequest,
    MethodNotAllowed,
    NoSuchAddress,
    RequestTooLarge,
    UnsupportedMedia,
)
from adapters.service.web.responding import Http, beside, refuse
from adapters.service.web.routes import HANDLERS
from adapters.service.web.understood import Understood, check, spelt

if TYPE_CHECKING:
    from adapters.service.front.http11 import App
    from adapters.service.service import Service

LOG = logging.getLogger("laneyard.http")


def whole(service: Service) -> App:
    """Returns all that answers a request: it is understood, counted, received in time, and then handled."""
    limits = service.settings.configuration.service
    inner = build(service, body_bytes=limits.body_bytes)
    in_time = Bounded(cast("App", inner), limits.body_timeout)
    return Understood(metrics.Requests(in_time, inner.state.registry))


def build(service: Service | None, *, body_bytes: int = 1 << 20) -> Litestar:
    """Returns the application over a service; without one it can only describe itself."""
    registry = CollectorRegistry()
    if service is not None:
        registry.register(metrics.State(service))
    return Litestar(
        [*HANDLERS, metrics.show_metrics],
        state=State({"service": service, "registry": registry}),
        openapi_config=OpenAPIConfig(
            title="Laneyard",
            version="1",
            path="/openapi.json",
            render_plugins=[Description(path="/", media_type=MediaType.JSON)],
            create_examples=False,
            use_handler_docstrings=True,
        ),
        before_request=check,
        exception_handlers={Exception: fail},
        request_max_body_size=body_bytes,
        logging_config=None,
        debug=False,
    )


def fail(request: Http, error: Exception) -> Response[bytes]:
    """Returns the response to a request that was not done; what only a bug explains is logged."""
    meant = _misuse(request, error) if isinstance(error, HTTPException) else error
    if problem(meant) is None:
        fields = {"method": request.method, "path": request.url.path}
        LOG.error("a request has met a bug", exc_info=error, extra={"fields": fields})
    return refuse(request, told(meant), _headers(error, meant))


def _headers(error: Exception, meant: Exception) -> dict[str, str]:
    """Returns what a client needs beside the problem: when to come back, the version, the methods."""
    if isinstance(meant, MethodNotAllowed) and isinstance(error, HTTPException):
        allowed = (error.headers or {}).get("allow", "")
        return {"Allow": allowed.replace("GET", "GET, HEAD")}
    return beside(meant)


def _misuse(request: Http, error: HTTPException) -> Exception:
    path = request.url.path
    match error.status_code:
        case 404:
            return NoSuchAddress(path)
        case 405:
            return MethodNotAllowed(request.method, path)
        case 413:
            most = request.app.request_max_body_size
            return RequestTooLarge(most if isinstance(most, int) else 0)
        case 415:
            return UnsupportedMedia(request.headers.get("content-type", ""))
        case status if status >= 500:
            return error
        case _:
            return InvalidRequest(_why(request, error))


def _why(request: Http, error: HTTPException) -> str:
    """Returns what does not fit, by the names that the request uses."""
    extra = error.extra if isinstance(error.extra, list) else []
    # Where anything else does not fit, an optional body that was not sent is complained of by its own name.
    found = [_one(request, each) for each in extra if each.get("message") != "'data'"]
    return "; ".join(found) or str(error.detail).rstrip(".")


def _one(request: Http, found: dict[str, Any]) -> str:
    argument = str(found.get("key", "")).partition(".")
    handler = request.scope.get("route_handler")
    known = spelt(handler) if handler is not None else {}
    name = "body" if argument[0] == "data" else known.get(argument[0], (None,))[0] or argument[0]
    return f"{name}{argument[1]}{argument[2]}: {found.get('message', '')}".strip(": ")
