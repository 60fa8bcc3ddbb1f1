"""The document that describes the interface, as it is served and as it is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from litestar.openapi.plugins import OpenAPIRenderPlugin

if TYPE_CHECKING:
    from litestar import Litestar

    from adapters.service.responding import Http


def describe(app: Litestar) -> bytes:
    """Returns the OpenAPI document of an application, always spelt the same."""
    schema: dict[str, Any] = app.openapi_schema.to_schema()
    schema["info"]["description"] = (
        "Owns the life of git worktrees. Paths in requests and in `repository` are written with %XX for `%` "
        "and for bytes that are not UTF-8. Every answer is JSON, or text/plain as the command line prints it."
    )
    schema["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "over TCP only"}
    }
    schema["security"] = [{}, {"token": []}]
    for address, methods in schema["paths"].items():
        for method, operation in methods.items():
            if method == "post" and address not in ("/v1/lanes", "/v1/repositories"):
                operation["requestBody"]["required"] = False  # every key has a default
    return msgspec.json.format(msgspec.json.encode(schema, order="sorted"), indent=1) + b"\n"


class Description(OpenAPIRenderPlugin):
    """Answers with the document, spelt as it is committed."""

    def render(self, request: Http, openapi_schema: dict[str, Any]) -> bytes:
        """Returns the document."""
        return describe(request.app)
