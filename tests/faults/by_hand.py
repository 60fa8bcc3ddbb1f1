"""The same people without a service: each command is a process of the program, which may be killed, too.

A command line has no key to ask again with: who was cut off looks at what has become of his lane.
"""

from __future__ import annotations

import json
import os
from signal import SIGKILL
from time import sleep
from typing import TYPE_CHECKING, Any

from tests.faults.users import Asked, User

if TYPE_CHECKING:
    import random
    import threading

    from tests.faults.starting import Starter
    from tests.faults.users import Ledger
    from tests.soak.house import House
    from tests.soak.load import Tally

PAUSE = 0.02  # seconds until a lock that was held for too long is tried again
FLAGS = ("force", "reap", "delete_branch", "include_ignored")


class ByHand(User):
    """A user of the command line."""

    def __init__(
        self,
        number: int,
        house: House,
        tally: Tally,
        stop: threading.Event,
        chance: random.Random,
        base: dict[str, str],
        start: Starter,
    ) -> None:
        super().__init__(number, house, tally, stop, chance, base)
        self._house, self._start = house, start
        self._log = house.home / f"{self._name}.log"
        self.acknowledged: list[tuple[str, int]] = []  # lane, and the position that it was said to be at

    def command(self, verb: str, target: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Runs a command, again if it was killed; returns what it has printed unless it is a refusal."""
        with self._tally.gate:
            self._tally.keys += 1
        code, said = self._until_over(verb, target, body)
        self.asked.append(Asked("", target, body, 200 if code in DONE else 409, said))
        if code not in DONE:
            self.refused.append(self.asked[-1])
            return None
        if "position" in said:
            self.acknowledged.append((str(said["id"]), int(said["position"])))
        return dict(said) if isinstance(said, dict) else {}

    def _until_over(self, verb: str, target: str, body: dict[str, Any]) -> tuple[int, Any]:
        killed = False
        while True:
            code, said = self.run(*_argv(verb, target, body, self._root))
            if code == -SIGKILL:
                killed = True
                if verb == "create" and (found := self._named(body["name"])) is not None:
                    return 0, found
            elif code == LOCKED:
                sleep(PAUSE)
            elif killed and code == REFUSED and said["code"] == "wrong_state":
                return 0, self.look(target.split("/")[3])  # it was done before it was killed
            else:
                return code, said

    def run(self, *argv: str) -> tuple[int, Any]:
        """Runs the program, and returns its exit code and the document that it has printed."""
        with open(self._log, "wb") as log:
            process = self._start.launch(("--json", *argv), self._house.home, self._house.environment, log)
        code = process.wait(120)
        text = self._log.read_text()
        return code, json.loads(text.splitlines()[-1] if code > 0 else text) if code >= 0 else None

    def look(self, lane: str) -> dict[str, Any]:
        """Returns a lane as it is shown."""
        while (shown := self.run("show", lane))[0] != 0:
            sleep(PAUSE)
        return dict(shown[1])

    def _named(self, name: str) -> dict[str, Any] | None:
        """Returns the lane of that name, if it is there."""
        while (listed := self.run("-C", self._root, "list", "--all"))[0] != 0:
            sleep(PAUSE)
        return next((dict(each) for each in listed[1] if each["name"] == name), None)

    def _require_reaped(self, lane: Ledger, said: dict[str, Any]) -> None:
        """Expects nothing: who was cut off between the two parts of it has asked for the first only."""


class SweeperByHand(ByHand):
    """Somebody who sweeps now and then."""

    def turn(self) -> None:
        """Sweeps, and rests."""
        self.command("sweep", "", {})
        self._stop.wait(self._chance.uniform(0.5, 2.0))


def holder(house: House) -> int | None:
    """Returns the process that says that it has the state directory."""
    place = house.state / "laneyard.lock"
    said = place.read_text().split() if place.exists() else []
    return int(said[0]) if said and os.path.exists(f"/proc/{said[0]}") else None


def _argv(verb: str, target: str, body: dict[str, Any], root: str) -> tuple[str, ...]:
    if verb == "create":
        return ("-C", root, "create", body["name"])
    if verb == "sweep":
        return ("sweep", "--apply")
    _, _, _, lane, word = target.split("/")
    return (word, lane, *(f"--{flag.replace('_', '-')}" for flag in FLAGS if body.get(flag)))


DONE, REFUSED, LOCKED = (0, 3), 1, 4
