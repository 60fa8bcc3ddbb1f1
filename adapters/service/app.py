"""The application: addresses, the document that describes them, and what becomes of errors."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from litestar import Litestar, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig
from prometheus_client import CollectorRegistry

from adapters.api.problems import problem
from adapters.service import metrics
from adapters.service.commanding import told
from adapters.service.description import Description
from adapters.service.misuse import (
    InvalidRequest,
    MethodNotAllowed,
    NoSuchAddress,
    RequestTooLarge,
    UnsupportedMedia,
)
from adapters.service.responding import Http, refuse
from adapters.service.routes import HANDLERS

if TYPE_CHECKING:
    from adapters.service.service import Service
    from domain.errors import Refusal

LOG = logging.getLogger("laneyard.http")


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
            render_plugins=[Description(path="/")],
            create_examples=False,
        ),
        exception_handlers={Exception: fail},
        request_max_body_size=body_bytes,
        logging_config=None,
        debug=False,
    )


def fail(request: Http, error: Exception) -> Response[bytes]:
    """Returns the response to a request that was not done; what only a bug explains is logged."""
    meant = _misuse(request, error) if isinstance(error, HTTPException) else error
    if problem(meant) is None:
        LOG.error("a request failed", exc_info=error, extra={"fields": {"path": request.url.path}})
    after = getattr(meant, "retry_after", None)
    return refuse(request, told(meant), {} if after is None else {"Retry-After": str(max(1, round(after)))})


def _misuse(request: Http, error: HTTPException) -> Refusal:
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
        case _:
            return InvalidRequest(_why(error))


def _why(error: HTTPException) -> str:
    """Returns what does not fit, by name."""
    extra = error.extra if isinstance(error.extra, list) else []
    found = [f"{each.get('key', '')}: {each.get('message', '')}".strip(": ") for each in extra]
    return "; ".join(found) or str(error.detail).rstrip(".")
