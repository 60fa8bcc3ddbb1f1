"""What is asked of a service, where one runs: the same commands, over its socket."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from adapters.cli import thin
from adapters.cli.output import progress
from adapters.cli.whereabouts import here, near
from adapters.client.calls import call
from adapters.client.connection import Connection
from adapters.client.targets import packed, quoted, target
from adapters.client.wire import ClientError, NoService
from adapters.config import place

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from adapters.client.connection import Response

PATIENCE = 30.0  # seconds for which a service that has gone may come back
JSON, TEXT, NDJSON = "application/json", "text/plain", "application/x-ndjson"


def change(arguments: Namespace, verb: str, body: dict[str, Any]) -> int | None:
    """Sends one command and tells its answer; returns the exit code, or None where no service runs."""

    def work(service: Service) -> int:
        if verb == "create":
            return _create(service, body)
        if verb == "candidates":
            return service.tell(service.get("/v1/sweeps", **service.scope))
        if verb == "sweep":
            return service.tell(service.post("/v1/sweeps", service.scope))
        lane = service.resolve(arguments.lane)
        if isinstance(lane, int):
            return lane
        address = f"/v1/lanes/{quoted(lane)}/{verb}"
        return service.tell(service.get(address) if verb == "review" else service.post(address, body))

    return over(arguments, work)


def _create(service: Service, body: dict[str, Any]) -> int:
    """Sends the creation; which lane is the parent is asked first, as it may be meant by a path from here."""
    if body["parent"] is not None:
        parent = service.resolve(body["parent"])
        if isinstance(parent, int):
            return parent
        body = body | {"parent": parent}
    return service.tell(service.post("/v1/lanes", body))


def show(arguments: Namespace) -> int | None:
    """Asks for everything about a lane; returns the exit code, or None where no service runs."""

    def work(service: Service) -> int:
        lane = service.resolve(arguments.lane)
        return lane if isinstance(lane, int) else service.tell(service.get(f"/v1/lanes/{quoted(lane)}"))

    return over(arguments, work)


def rebuild(arguments: Namespace) -> int | None:
    """Has every table made anew; returns the exit code, or None where no service runs."""
    return over(arguments, lambda service: service.tell(service.post("/v1/rebuild", {})))


def over(arguments: Namespace, work: Callable[[Service], int]) -> int | None:
    """Runs what speaks with the service; returns its exit code, or None where no service runs."""
    values = place.environment()
    path = os.path.join(place.state_directory(arguments.state_dir, values), place.SOCKET)
    if not os.path.exists(path):
        return None
    with Connection(path) as connection:
        try:
            return work(Service(arguments, connection, place.client(values)))
        except NoService:
            return None
        except ClientError as error:
            return thin.unanswered(arguments, error)


class Service:
    """A service as one command line speaks with it."""

    def __init__(self, arguments: Namespace, connection: Connection, client: str) -> None:
        self.arguments, self.connection, self.client = arguments, connection, client
        self.media = JSON if arguments.json else TEXT

    @property
    def scope(self) -> dict[str, str | None]:
        """Returns which repository is meant: one that must be, or the one around us if there is one."""
        name = "near" if self.arguments.repository is None else "repository"
        return {name: packed(here(self.arguments))}

    def get(self, address: str, accept: str | None = None, **query: str | None) -> Response:
        """Returns the answer to a question."""
        return call(
            self.connection, "GET", target(address, **query), accept=accept or self.media, client=self.client
        )

    def post(self, address: str, body: dict[str, Any]) -> Response:
        """Returns the answer to a command, once it has ended."""
        import json

        said = json.dumps({name: value for name, value in body.items() if value is not None}).encode()
        with progress(self.arguments.json, "the service is at work"):
            return call(
                self.connection,
                "POST",
                address,
                accept=self.media,
                client=self.client,
                body=said,
                patience=PATIENCE,
            )

    def resolve(self, lane: str, *, undone: bool = False) -> str | int:
        """Returns the id of the lane that is meant, or the exit code after telling why there is none."""
        scope, place = self.scope, near()
        asked = {"near": None if place is None else packed(place), **scope}
        more = {"undone": "true"} if undone else {}
        found = self.get("/v1/resolve", lane=packed(os.fsencode(lane)), **asked, **more)
        if found.status >= 400:
            return self.tell(found)
        if not self.arguments.json:
            return found.body.decode().strip()
        import json

        return str(json.loads(found.body)["id"])

    def tell(self, answer: Response) -> int:
        """Prints an answer, or why there is none, and returns the exit code."""
        return thin.tell(self.arguments, answer)
