"""People at work in lanes, who note what they wrote where, and look for every byte of it afterwards."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import threading
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

import msgspec

from tests.soak.load import Client, Promise

if TYPE_CHECKING:
    import random

    from tests.soak.house import House
    from tests.soak.load import Tally

PATIENCE = 60.0  # seconds until a lane that somebody else is at has come to rest
RESTING = ("active", "quarantined", "reaped", "needs_review", "failed")
IGNORED = "notes.secret"  # as .git/info/exclude of each repository says
REAPED = "remove and reap"
STEPS = 3  # things that are done in a lane between two commands, at most


class Asked(msgspec.Struct, frozen=True):
    """A command that was sent, and its answer."""

    key: str
    target: str
    body: dict[str, Any]
    status: int
    document: Any


class Ledger:
    """One lane as its user knows it: what he wrote, and how git had it when it was put away."""

    def __init__(self, said: dict[str, Any], files: dict[str, str]) -> None:
        self.id, self.slug = str(said["id"]), str(said["slug"])
        self.state = str(said["state"])
        self.path = Path(str(said["path"]))
        self.files = files  # by path: the SHA-256 of what is there
        self.commits: set[str] = set()
        self.index = ""  # as it was when it was put away

    def missing(self, place: Path) -> list[str]:
        """Returns what is not at the place as it was written, in words."""
        found = contents(place)
        wrong = [f"{self.slug}: {name} is not as it was written" for name in _differing(self.files, found)]
        if self.index and (now := index_of(place)) != self.index:
            wrong.append(f"{self.slug}: the index was {self.index!r} and is {now!r}")
        return wrong


def _differing(ours: dict[str, str], found: dict[str, str]) -> list[str]:
    return sorted(name for name in ours.keys() | found.keys() if ours.get(name) != found.get(name))


def contents(place: Path) -> dict[str, str]:
    """Returns the SHA-256 of every file in a lane, by its path."""
    found = {}
    for folder, _, names in os.walk(place):
        for name in names:
            path = Path(folder, name)
            if (inner := path.relative_to(place).as_posix()) != ".git":
                found[inner] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def index_of(place: Path) -> str:
    """Returns what is staged in a lane, as git says."""
    return _git(place, "ls-files", "--stage")


def _git(place: Path, *arguments: str) -> str:
    ran = subprocess.run(
        ["git", *arguments], cwd=place, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, (arguments, ran.stderr)
    return ran.stdout


ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{what}": said
        for who in ("AUTHOR", "COMMITTER")
        for what, said in (("NAME", "Eve"), ("EMAIL", "eve@example.org"))
    },
}


class User(Client):
    """A client with one lane at a time, in which it works; `kept` are those that it has left reaped."""

    def __init__(
        self,
        number: int,
        house: House,
        tally: Tally,
        stop: threading.Event,
        chance: random.Random,
        base: dict[str, str],
    ) -> None:
        super().__init__(number, house.socket, house.roots[number % len(house.roots)], tally, stop)
        self._chance = chance
        self._base = base
        self.lane: Ledger | None = None
        self.kept: list[Ledger] = []
        self.asked: list[Asked] = []
        self.refused: list[Asked] = []
        self.wrong: list[str] = []

    @property
    def ledgers(self) -> list[Ledger]:
        """Returns all lanes that it has ever had."""
        return [*self.kept, *([self.lane] if self.lane else [])]

    def goes_on(self, stop: threading.Event) -> None:
        """Works in a new thread until that is set."""
        self._stop, self.failure = stop, None
        self.thread = threading.Thread(target=self._run, name=self._name)
        self.thread.start()

    def turn(self) -> None:
        """Does one thing."""
        lane = self.lane
        if lane is None:
            self._create()
        elif lane.state == "active":
            for _ in range(self._chance.randrange(STEPS + 1)):
                self._work(lane)
            self._put_away(lane)
        elif lane.state == "reaped" and self._chance.random() < 0.3:
            self.kept.append(lane)
            self.lane = None
        else:
            verbs = (
                ("restore", "restore", "reap", "snapshot") if lane.state == "quarantined" else ("restore",)
            )
            self.on_lane(lane, self._chance.choice(verbs), {})

    def _create(self) -> None:
        self._made += 1
        body = {"repository": self._root, "name": f"{self._name}-{self._made}"}
        said = self.command("create", "/v1/lanes", body)
        if said is not None:
            self.lane = Ledger(said, dict(self._base))
            self.wrong += self.lane.missing(self.lane.path)

    def _work(self, lane: Ledger) -> None:
        """Writes a file, and leaves it, stages it, or commits everything that is staged."""
        name = self._chance.choice(("file-0", "new", "deep/er/file", IGNORED, f"made-{len(lane.commits)}"))
        data = f"{self._name} {self._chance.getrandbits(64):x}\n".encode() * self._chance.randrange(1, 400)
        path = lane.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        lane.files[name] = hashlib.sha256(data).hexdigest()
        what = self._chance.choice(("leave", "stage", "commit"))
        if name == IGNORED or what == "leave":
            return
        _git(lane.path, "add", "--", name)
        if what == "commit":
            _git(lane.path, "commit", "-q", "-m", name)
            lane.commits.add(_git(lane.path, "rev-parse", "HEAD").strip())

    def _put_away(self, lane: Ledger) -> None:
        lane.index = index_of(lane.path)
        include = {"include_ignored": True} if IGNORED in lane.files else {}
        how = self._chance.choice(("snapshot", "safe", "safe", "force", "branch", "reap"))
        if how == "snapshot":
            self.on_lane(lane, "snapshot", include)
            return
        more = {"force": {"force": True}, "branch": {"delete_branch": True}, "reap": {"reap": True}}
        self.on_lane(lane, "remove", include | more.get(how, {}))

    def on_lane(self, lane: Ledger, verb: str, body: dict[str, Any]) -> None:
        """Sends a command on a lane and looks at what it has led to."""
        kind = REAPED if body.get("reap") else verb
        said = self.command(kind, f"/v1/lanes/{lane.id}/{verb}", body)
        lane.state = str(said["state"]) if said is not None else self.settled(lane)
        if said is not None and "path" in said:
            lane.path = Path(str(said["path"]))
        if kind == REAPED and said is not None:
            self._require_reaped(lane, said)
        if lane.state == "active":  # in quarantine, a sweep may delete what it is compared with
            self.wrong += [f"after {kind}: {each}" for each in lane.missing(lane.path)]

    def _require_reaped(self, lane: Ledger, said: dict[str, Any]) -> None:
        """Takes note of a lane that rests still: the second part of a command was forgotten."""
        if self.settled(lane) == "quarantined":
            self.wrong.append(f"{lane.slug} was to be reaped, and {said} is the answer")

    def look(self, lane: str) -> dict[str, Any]:
        """Returns a lane as it is shown."""
        answer = self._answer("show", "GET", f"/v1/lanes/{quote(lane)}", {}, b"")
        return dict(json.loads(answer.body))

    def settled(self, lane: Ledger) -> str:
        """Returns the state of a lane, which somebody else may have changed, once it is at rest."""
        end = monotonic() + PATIENCE
        while True:
            said = self.look(lane.id)
            if said["state"] in RESTING or monotonic() > end:
                lane.path, lane.state = Path(str(said["path"])), str(said["state"])
                return lane.state
            sleep(0.02)

    def command(self, verb: str, target: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Sends a command until it is answered; returns the answer unless it is a refusal."""
        with self._tally.gate:
            self._tally.keys += 1
        key = str(UUID(int=self._chance.getrandbits(128), version=4))
        status, document = self.send(verb, key, target, body)
        self.asked.append(Asked(key, target, body, status, document))
        if status not in (200, 201):
            self.refused.append(self.asked[-1])
            return None
        if verb == "sweep":
            return {}
        if verb == REAPED and document["state"] == "quarantined":
            verb = "remove"  # a sweep was quicker with the rest, as `on_lane` makes sure
        with self._tally.gate:
            self._tally.promises.append(Promise(key, verb, status, document))
        return dict(document)

    def send(self, verb: str, key: str, target: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Returns status and document of what is answered at last."""
        headers = {"Idempotency-Key": key, "Content-Type": "application/json", "Prefer": "wait=30"}
        answer = self._answer(verb, "POST", target, headers, json.dumps(body).encode())
        return answer.status, json.loads(answer.body)


class Sweeper(User):
    """Somebody who sweeps now and then, whosever lanes they are."""

    def turn(self) -> None:
        """Sweeps, and rests."""
        self.command("sweep", "/v1/sweeps", {})
        self._stop.wait(self._chance.uniform(0.2, 1.0))
