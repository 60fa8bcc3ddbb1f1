"""The document that describes the interface, as it is served and as it is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from litestar.openapi.plugins import OpenAPIRenderPlugin

from adapters.service.web.catalogue import OPERATIONS, TAGS
from adapters.service.web.described import ABOUT, HEADERS, headers_of, problem_responses, problems_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from litestar import Litestar

    from adapters.service.web.responding import Http

    Node = dict[str, Any]

WHOLE = {"type": "string", "description": "What the command line prints."}
MORE = {  # what an operation answers besides JSON and text, by media type
    "listEvents": {"application/x-ndjson": "An Event of JSON on each line."},
    "followEvents": {
        "text/event-stream": "Server-sent events; the id is the position, `data` an Event.",
        "application/x-ndjson": "An Event of JSON on each line, or an empty line.",
        "text/plain": "The lines that people read, or an empty line.",
    },
    "replayLane": {
        "application/x-ndjson": "A ReplayedEvent of JSON on each line.",
        "text/plain": "What the command line prints.",
    },
    "metrics": {"text/plain": "Prometheus' text format."},
    "diffSnapshot": {"text/plain": "What `git diff` prints, and what is held apart from git."},
    "readSnapshotContent": {"application/octet-stream": "The bytes of the file, or the link's target."},
}
UNREADY = ("showHealth", "503")  # the same document as 200
ONLY = {
    "followEvents",
    "replayLane",
    "metrics",
    "diffSnapshot",
    "readSnapshotContent",
}  # those that have no document


def describe(app: Litestar) -> bytes:
    """Returns the OpenAPI document of an application, always spelt the same."""
    schema: Node = app.openapi_schema.to_schema()
    schema["info"] |= {"description": ABOUT, "license": {"name": "MIT", "identifier": "MIT"}}
    schema["tags"] = [{"name": name, "description": what} for name, what in TAGS.items()]
    schema["servers"] = [
        {"url": "/", "description": "over <state>/laneyard.sock, or TCP where that is set up"}
    ]
    schema["security"] = [{}, {"token": []}]
    components = schema["components"]
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "Over TCP only."}
    }
    components["headers"] = HEADERS
    components["responses"] = problem_responses()
    for name, each in components["schemas"].items():
        if name.endswith("Body"):
            each["additionalProperties"] = False
    for _, method, operation in _operations(schema):
        _complete(operation, method)
    return msgspec.json.format(msgspec.json.encode(_tidied(schema), order="sorted"), indent=1) + b"\n"


def _operations(schema: Node) -> Iterator[tuple[str, str, Node]]:
    for address, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield address, method, operation


def _complete(operation: Node, method: str) -> None:
    name = operation["operationId"]
    words = OPERATIONS[name]
    operation |= {"tags": [words.tag], "summary": words.summary, "description": words.description}
    if method == "post" and name not in ("create", "register"):
        operation["requestBody"]["required"] = False  # every key has a default
    for parameter in operation.get("parameters", ()):
        _tidy_parameter(parameter)
    responses = operation["responses"]
    for status in [each for each in responses if each >= "400" and (name, each) != UNREADY]:
        del responses[status]  # what the framework would answer, and we do not
    for status, response in responses.items():
        _complete_response(name, status, response)
    for status in problems_of(name, method):
        responses.setdefault(status, {"$ref": f"#/components/responses/Problem{status}"})


def _complete_response(name: str, status: str, response: Node) -> None:
    response["headers"] = headers_of(name, status)
    if name in ONLY:
        response["content"] = {}
    else:
        response["content"]["text/plain"] = {"schema": WHOLE}
    if status.startswith("2") and status != "202":
        response["description"] = "done" if name != "followEvents" else "the events, until one side ends it"
        for media, what in MORE.get(name, {}).items():
            response["content"][media] = {"schema": {"type": "string", "description": what}}


def _tidy_parameter(parameter: Node) -> None:
    """Takes away what no parameter can be, null, and what is said twice."""
    for key in ("allowEmptyValue", "allowReserved", "deprecated"):
        parameter.pop(key, None)
    schema = parameter["schema"]
    schema.pop("description", None)
    kinds = [each for each in schema.pop("oneOf", ()) if each != {"type": "null"}]
    for each in kinds:
        schema |= each
    if schema.get("type") == "integer":
        schema.setdefault("minimum", 0)  # which the framework leaves out
    if schema.get("type") == "array":
        parameter |= {"style": "form", "explode": True}


def _tidied(node: Any) -> Any:  # noqa: ANN401 (any piece of a document)
    """Returns the document with whole numbers as such, and no choice of one."""
    if isinstance(node, dict):
        choice = node.get("oneOf")
        if isinstance(choice, list) and len(choice) == 1:
            node = {key: value for key, value in node.items() if key != "oneOf"} | choice[0]
        # What the framework calls a choice of exactly one may be more than one: a short document is also the
        # beginning of a longer one.
        return {
            "anyOf" if key == "oneOf" else key: _tidied(value)
            for key, value in node.items()
            if not (key == "deprecated" and not value)
        }
    if isinstance(node, list | tuple):
        return [_tidied(each) for each in node]
    return int(node) if isinstance(node, float) and node.is_integer() else node


class Description(OpenAPIRenderPlugin):
    """Answers with the document, spelt as it is committed."""

    def render(self, request: Http, openapi_schema: dict[str, Any]) -> bytes:
        """Returns the document."""
        return describe(request.app)
