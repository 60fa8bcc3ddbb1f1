"""Kills of the service: what it has acknowledged is so, and the same request again leads to the same end."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from functools import cache
from signal import SIGKILL, SIGTERM
from typing import TYPE_CHECKING, Any

import msgspec

from adapters.client.connection import Connection
from adapters.client.targets import packed
from adapters.client.wire import ClientError
from adapters.store.reader import Reader
from tests.faults.judging import Judgement, judged, owing
from tests.faults.running import KILLED, Kill, Scene, killing, record, recorded, say, scene
from tests.faults.trials import UNREACHED
from tests.sagas.crashes import ended
from tests.soak.house import PATIENCE, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.points import Point
    from tests.faults.running import Hear
    from tests.sagas.worlds import World

KINDS = ("effect", "append", "git")
KEY = "6f1c3d2a-8f0e-4c58-9a57-2d1f0b7c9e11"
OTHER = "0b9d5f0e-3f2b-4a3f-8d0c-5f6f3c1e7a22"  # of what is left of a command
REFUSED = 409  # what is answered where a command was undone, for whatever reason of the world
UNDONE = {"creation.undone@1", "removal.abandoned@1", "restore.abandoned@1"}


class Serving:
    """A service in a process of its own. What it is to hear of begins with `listen`."""

    def __init__(self, world: World, hear: Hear | None = None) -> None:
        self._world, self._listens = world, world.home / "listens"
        self._listens.unlink(missing_ok=True)
        self._process: int | None = say(world, "serve", None if hear is None else self._later(hear))
        self._socket = os.path.join(world.settings.state_dir, b"laneyard.sock")
        eventually(self._ready)

    def _later(self, hear: Hear) -> Hear:
        def listening(point: Point) -> None:
            if point.kind in KINDS and self._listens.exists():
                hear(point)

        return listening

    def _ready(self) -> bool:
        with suppress(ClientError):
            return self.request("GET", "/v1/health") == 200
        return False

    def listen(self) -> None:
        """Lets the points be heard of from now on."""
        self._listens.touch()

    def request(self, method: str, target: str, body: object = None, key: str = "") -> int:
        """Asks once and returns the status. Raises ClientError."""
        data = b"" if body is None else json.dumps(body).encode()
        fields = {"Accept": "application/json", "Prefer": f"wait={PATIENCE:.0f}"}
        fields |= {"Content-Type": "application/json"} if data else {}
        fields |= {"Idempotency-Key": key} if key else {}
        with Connection(self._socket) as connection:
            return connection.request(method, target, fields, data, 2 * PATIENCE).status

    def say(self, line: str, key: str = KEY) -> int:
        """Asks for what a command line says and returns the status, or 0 where no answer came."""
        try:
            return self.request("POST", *_asked(self._world, line), key)
        except ClientError:
            return 0

    def ended(self, number: int = SIGKILL) -> int:
        """Sends a signal, if it is there still, and returns how it ended."""
        process, self._process = self._process, None
        if process is None:
            return 0
        os.kill(process, number)
        return ended(process)


@contextmanager
def serving(world: World, hear: Hear | None = None) -> Iterator[Serving]:
    """Lends a service that is ready; it is killed at the end if it still runs."""
    service = Serving(world, hear)
    try:
        yield service
    finally:
        service.ended()


def _asked(world: World, line: str) -> tuple[str, dict[str, Any]]:
    """Returns the address and the body that mean what a command line says."""
    verb, *words = line.split()
    flags = {each[2:].replace("-", "_"): True for each in words if each.startswith("--")}
    if verb == "sweep":
        return "/v1/sweeps", {"repository": packed(world.root)}
    if verb == "create":
        parent = {"parent": words[2]} if "--parent" in words else {}
        return "/v1/lanes", {"repository": packed(world.root), "name": words[0], **parent}
    with Reader(world.settings.store) as reader:
        lane = next(str(row["id"]) for row in reader.lanes() if row["slug"] == words[0])
    if verb == "review":
        return f"/v1/lanes/{lane}/{words[1][2:]}", {}
    return f"/v1/lanes/{lane}/{verb}", flags


@cache
def usual(name: str) -> tuple[int, dict[str, int]]:
    """Says a command to a service unharmed, and returns the status and the points."""
    with scene(name) as found, serving(found.world, record(found.world.home)) as service:
        service.listen()
        status = service.say(found.life.line)
        service.ended(SIGTERM)
        return status, recorded(found.world.home)


def trial(name: str, kill: Kill) -> Judgement:
    """Kills a service at work, starts it again, and judges what became of the command."""
    with scene(name) as found:
        with serving(found.world, killing(kill)) as service:
            service.listen()
            status = service.say(found.life.line)
            if service.ended(SIGTERM) != KILLED:
                return UNREACHED
        with serving(found.world) as service:
            return _again(found, service, status)


def _again(found: Scene, service: Serving, status: int) -> Judgement:
    world, line, wanted = found.world, found.life.line, usual(found.life.name)[0]
    eventually(lambda: not owing(world))
    wrong = []
    if status and KEY not in {event.cause for event in world.events(found.begins)}:
        wrong.append(f"{status} was answered, and the log does not know why")
    told: list[int] = []

    def undone() -> bool:
        return not UNDONE.isdisjoint(world.tags(found.begins))

    def ask(said: str) -> int:
        told.append(service.say(said, KEY if said == line else OTHER))
        if said == line and told[0] == REFUSED and undone():
            return service.say(said, OTHER)  # it was begun and undone, and that stays its answer
        return told[0]

    def close() -> None:
        again, expected = service.say(line), told[0] if told and undone() else wanted
        if again != expected:
            wrong.append(f"the same request again is answered with {again}, not {expected}")
        service.ended(SIGTERM)

    judgement = judged(found, 0, ask, wanted, close)
    return msgspec.structs.replace(judgement, log=(*judgement.log, *wrong))
