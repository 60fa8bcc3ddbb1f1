"""Clients that change lanes of their own and read everybody's; each knows what it was promised."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter, defaultdict
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

import msgspec

from adapters.client.connection import Connection
from adapters.client.wire import ClientError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from adapters.client.connection import Response

MOST = 4  # lanes that one client keeps
SILENCE = 60.0  # seconds
PAUSE = 0.05  # seconds until a service that is not there is tried again


class Promise(msgspec.Struct, frozen=True):
    """A command that was answered."""

    key: str
    verb: str
    status: int
    document: dict[str, Any]


class Tally:
    """What all clients have met, together."""

    def __init__(self) -> None:
        self.gate = threading.Lock()
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.problems: Counter[str] = Counter()
        self.pressed: Counter[str] = Counter()  # honest backpressure, by code
        self.lost: Counter[str] = Counter()
        self.promises: list[Promise] = []
        self.keys = 0
        self.abandoned = threading.Event()  # nobody will answer any more: who still waits gives up

    def took(self, kind: str, seconds: float) -> None:
        """Counts an answer."""
        with self.gate:
            self.seconds[kind].append(seconds)

    def count(self, counter: Counter[str], what: str) -> None:
        """Counts what went otherwise."""
        with self.gate:
            counter[what] += 1


class Client:
    """One client, in a thread of its own until `stop` is set; what it began it sees to its end."""

    def __init__(self, number: int, socket: bytes, root: Path, tally: Tally, stop: threading.Event) -> None:
        self._name, self._root, self._tally, self._stop = f"c{number}", str(root), tally, stop
        self._chance = random.Random(number)
        self._connection = Connection(socket)
        self._lanes: dict[str, str] = {}  # by id, the state that was promised last
        self._made = self._seen = 0  # lanes, and the last position
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name=self._name)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self.turn()
        except BaseException as error:
            self.failure = error
        finally:
            self.close()

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def turn(self) -> None:
        """Does one thing."""
        if self._chance.random() < READING:
            self._read()
        else:
            self._change()

    def _read(self) -> None:
        near = quote(self._root)
        targets = {
            "list": f"/v1/lanes?near={near}",
            "list all": "/v1/lanes?observe=none",
            "health": "/v1/health",
            "events": f"/v1/events?after={self._chance.randrange(self._seen + 1)}&limit=50",
            "repositories": "/v1/repositories",
        }
        if self._lanes:
            targets["show"] = f"/v1/lanes/{self._chance.choice([*self._lanes])}"
        kind = self._chance.choice([*targets])
        answer = self._answer(kind, "GET", targets[kind], {}, b"")
        self._seen = max(self._seen, int(answer.headers.get("laneyard-position", 0)))

    def _change(self) -> None:
        if (len(self._lanes) < MOST and self._chance.random() < 0.5) or not self._lanes:
            self._made += 1
            body = {"repository": self._root, "name": f"{self._name}-{self._made}"}
            made = self._command("create", "/v1/lanes", body)
            if made is not None:
                self._lanes[str(made["id"])] = str(made["state"])
            return
        lane = self._chance.choice([*self._lanes])
        verbs = ("snapshot", "remove") if self._lanes[lane] == "active" else ("restore", "restore", "reap")
        verb = self._chance.choice(verbs)
        done = self._command(verb, f"/v1/lanes/{lane}/{verb}", {})
        if done is not None:
            self._lanes[lane] = str(done["state"])
        if done is None or self._lanes[lane] == "reaped":
            del self._lanes[lane]

    def _command(self, verb: str, target: str, body: dict[str, Any]) -> dict[str, Any] | None:
        with self._tally.gate:
            self._tally.keys += 1
        key = str(UUID(int=self._chance.getrandbits(128), version=4))
        headers = {"Idempotency-Key": key, "Content-Type": "application/json", "Prefer": "wait=30"}
        answer = self._answer(verb, "POST", target, headers, json.dumps(body).encode())
        document = json.loads(answer.body)
        if answer.status not in (200, 201):
            return None
        with self._tally.gate:
            self._tally.promises.append(Promise(key, verb, answer.status, document))
        return dict(document)

    def _answer(self, kind: str, method: str, target: str, headers: dict[str, str], body: bytes) -> Response:
        """Returns what is answered at last: the same request is sent until somebody has taken it."""
        while True:
            begun = monotonic()
            try:
                answer = self._connection.request(
                    method, target, {"Accept": "application/json", **headers}, body, SILENCE
                )
            except ClientError as error:
                self._connection.close()
                self._tally.count(self._tally.lost, error.code)
                if self._tally.abandoned.is_set():
                    raise
                sleep(PAUSE)
                continue
            if answer.status == 503 and "retry-after" in answer.headers:
                self._tally.count(self._tally.pressed, str(json.loads(answer.body).get("code")))
                sleep(float(answer.headers["retry-after"]))
            elif answer.status == 202:
                self._tally.count(self._tally.pressed, "202")
            elif _is_interrupted(answer):
                self._tally.count(self._tally.lost, "interrupted")
                sleep(PAUSE)
            else:
                self._tally.took(kind, monotonic() - begun)
                if answer.status not in (200, 201):
                    code = json.loads(answer.body).get("code")
                    self._tally.count(self._tally.problems, f"{kind}: {answer.status} {code}")
                return answer


def _is_interrupted(answer: Response) -> bool:
    """Tells whether a service that stopped has left the rest to the next one, for the same key."""
    return answer.status == 409 and b'"interrupted"' in answer.body


def start(count: int, socket: bytes, roots: list[Path], tally: Tally) -> tuple[list[Client], threading.Event]:
    """Starts so many clients, in turn in each repository; returns them, and what stops them."""
    stop = threading.Event()
    clients = [Client(each, socket, roots[each % len(roots)], tally, stop) for each in range(count)]
    for client in clients:
        client.thread.start()
    return clients, stop


def finish(clients: Sequence[Client], stop: threading.Event, seconds: float = 120.0) -> None:
    """Lets every client end what it began."""
    stop.set()
    for client in clients:
        client.thread.join(seconds)
        assert not client.thread.is_alive(), f"{client.thread.name} still waits for an answer"
        if client.failure is not None:
            raise client.failure


READING = 0.6  # the share of what a client does that only reads
