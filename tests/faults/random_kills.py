"""The service under load, killed at random moments: `python -m tests.faults.random_kills [--kills N]`.

Each kill is a SIGKILL, in turns of the service alone, which leaves its git behind, and of all that it has
started, as when a machine stops. The load goes on with the next one, on the same repositories and log.
With `--program` there is no service: whichever command has the lock is killed, in turns with all of them.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import threading
from collections import Counter
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from signal import SIGKILL
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from domain.envelope import stream_of
from tests.faults.by_hand import ByHand, SweeperByHand, holder
from tests.faults.remains import remains, unreachable
from tests.faults.starting import starter
from tests.faults.users import IGNORED, Sweeper, User, contents
from tests.soak.checks import complaints
from tests.soak.house import PATIENCE, House, eventually
from tests.soak.load import Tally, finish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.faults.starting import Starter
    from tests.soak.house import Running

MEMORY = Path("/dev/shm")
SPAN = 4  # times what a service takes until it is ready: it is killed within that, from its start on
FIRST = 0.25  # seconds that this is thought to take before it has been seen
CALM = 4  # of so many services, one is let come up: else little might get done
AGAIN = 200  # commands that are sent once more at a check
CODES = {
    "wrong_state",  # a sweep was quicker
    "wrong_checkout",  # git was killed in the middle of a checkout, which was undone
}
CONFIGURATION = 'quarantine.retention = "1s"\nservice.sweep_every = 0.0\nservice.recovery_wait = 5.0\n'


class Trial:
    """One house with its users, killed as often as is asked."""

    def __init__(self, home: Path, start: Starter, seed: int, lanes: int, *, by_hand: bool) -> None:
        self.house = House(home, "ab", launch=start.launch)
        self.house.configure(CONFIGURATION)
        self.start, self.chance = start, random.Random(seed)
        self.tally, self.wrong = Tally(), Counter[str]()
        self.counts: Counter[str] = Counter()
        for root in self.house.roots:
            (root / ".git/info/exclude").write_text(f"/{IGNORED}\n")
        self.by_hand = by_hand
        self.users = [self._user(number, seed, sweeps=number == lanes) for number in range(lanes + 1)]
        self.up = FIRST  # seconds from the start of a service until it is ready, of late

    def _user(self, number: int, seed: int, *, sweeps: bool) -> User:
        root = self.house.roots[number % len(self.house.roots)]
        base = {
            name: each for name, each in contents(root).items() if not name.startswith((".git/", ".laneyard"))
        }
        chance = random.Random(f"{seed} {number}")
        common = (number, self.house, self.tally, threading.Event(), chance, base)
        if self.by_hand:
            return (SweeperByHand if sweeps else ByHand)(*common, self.start)
        return (Sweeper if sweeps else User)(*common)

    def round(self, kills: int) -> None:
        """Lets everybody work while the service is killed so many times, then lets them end what they do."""
        stop = threading.Event()
        for user in self.users:
            user.goes_on(stop)
        try:
            for _ in range(kills):
                self._kill_by_hand() if self.by_hand else self._kill()
            with self._at_work():
                finish(self.users, stop)
        finally:
            stop.set()
            self.tally.abandoned.set()
        self.tally.abandoned.clear()

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Serves, where there is to be a service, until the end of the block."""
        if self.by_hand:
            yield
            return
        with self.house.serving() as running:
            yield
            eventually(lambda: self.house.health()["recovering"] == [])
            self._expect(running.stop() == 0, "a service that was told to stop has not ended well")

    def _kill_by_hand(self) -> None:
        self.counts["kills"] += 1
        sleep(self.chance.uniform(0, SPAN * self.up))
        if self.counts["kills"] % 2 == 0:
            self.counts["git killed along"] += self.start.storm()
            self.counts["with all"] += 1
        elif (pid := holder(self.house)) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, SIGKILL)
                self.counts["alone"] += 1

    def _kill(self) -> None:
        self.counts["kills"] += 1
        span, begun = self.chance.uniform(0, SPAN * self.up), monotonic()
        with self.house.serving(ready=False) as running:
            if self._is_ready(running, PATIENCE if self.counts["kills"] % CALM == 0 else span):
                self.up += (monotonic() - begun - self.up) / 5
                sleep(max(0.0, span - (monotonic() - begun)))
            if (code := running.process.poll()) is not None:
                self.wrong[f"the service has ended with {code}: {running.log_text[-2000:]}"] += 1
            if self.counts["kills"] % 2:
                running.kill()
                self.counts["alone"] += 1
            else:
                self.counts["git killed along"] += self.start.storm()
                self.counts["with all"] += 1
                running.process.wait()

    def _is_ready(self, running: Running, seconds: float) -> bool:
        try:
            running.until("READY=1", seconds)
        except AssertionError:
            self.counts["killed before it was ready"] += 1
            return False
        self.counts["killed at work"] += 1
        return True

    def _expect(self, true: object, words: str) -> None:
        if not true:
            self.wrong[words] += 1

    def check(self) -> None:
        """Holds everything against everything, while nothing runs; then what was answered is asked again."""
        self.start.storm()
        for user in self.users:
            self.wrong.update(islice(user.wrong, 5))
            user.wrong.clear()
        self.wrong.update(self._refused())
        self.wrong.update(self._unwritten())
        answers = sum(len(user.asked) for user in self.users)
        self._expect(answers == self.tally.keys, f"{self.tally.keys} commands, and {answers} answers")
        self.wrong.update(self._lanes())
        self._stand()
        self.wrong.update(complaints(self.house, self.tally.promises))
        self._ask_again()

    def _unwritten(self) -> Iterator[str]:
        """Yields what a command line was told and the log does not know."""
        streams = {each.position: each.stream for each in self.house.events()}
        for user in self.users:
            for lane, position in user.acknowledged if isinstance(user, ByHand) else ():
                if streams.get(position) != stream_of(lane):
                    yield f"{lane} was said to be at {position}, where the log has {streams.get(position)}"

    def _refused(self) -> Iterator[str]:
        """Yields what was refused without a reason that the load gives."""
        for user in self.users:
            while user.refused:
                each = user.refused.pop()
                self.counts[f"refused: {each.document['code']}"] += 1
                if each.document["code"] not in CODES and not _is_of_gc(each.document):
                    yield f"{each.target} {each.body} was refused: {each.document}"

    def _stand(self) -> None:
        """Asks doctor, sweeps, and counts what is left that neither the sweep nor doctor nor verify names."""
        swept = self.house.program("sweep", "--apply")
        self._expect(swept.returncode == 0, f"sweep: {swept.stdout} {swept.stderr}")
        doctor = self.house.program("doctor")
        self._expect(doctor.returncode == 0, f"doctor: {doctor.stdout} {doctor.stderr}")
        verified = self.house.program("verify").stdout
        left = remains(self.house)
        self.counts["left and reported"] += len(left)
        for each in left:
            name = each.split(" ", 1)[1]
            if name not in doctor.stdout + verified:
                self.wrong[f"left about: {each}"] += 1
            else:
                self.counts[f"reported: {each.split()[0]}"] += 1

    def _lanes(self) -> Iterator[str]:
        """Yields the lanes that do not have what was written in them, and the commits that are lost."""
        for user in self.users:
            for lane in user.ledgers:
                if lane.state in ("active", "quarantined"):
                    rows = self.house.lanes()
                    lane.path = Path(str(rows[lane.slug]["path"]))
                    if rows[lane.slug]["state"] == lane.state:
                        yield from lane.missing(lane.path)
        for number, root in enumerate(self.house.roots):
            mine = self.users[number :: len(self.house.roots)]
            made = {commit for user in mine for lane in user.ledgers for commit in lane.commits}
            yield from (
                f"commit {each} is reached by nothing" for each in unreachable(self.house, root, made)
            )

    def _ask_again(self) -> None:
        """Sends some of what was answered once more: the answer is the same, and nothing is done."""
        asked = [(user, each) for user in self.users for each in user.asked if each.status in (200, 201)]
        if self.by_hand:
            return
        with self.house.serving() as running:
            before = len(self.house.events())
            for user, each in self.chance.sample(asked, min(AGAIN, len(asked))):
                _, document = user.send("again", each.key, each.target, each.body)
                same = _told(document) == _told(each.document)
                self._expect(same, f"{each} was answered otherwise: {document}")
                self.counts["asked again"] += 1
            self._expect(len(self.house.events()) == before, "what was asked again was done again")
            for user in self.users:
                user.close()
            running.stop()

    def restore_all(self) -> None:
        """Brings every lane back, and looks for every byte in it."""
        with self._at_work():
            for user in self.users:
                for lane in user.ledgers:
                    if user.settled(lane) in ("quarantined", "reaped"):
                        user.on_lane(lane, "restore", {})
                        self.counts["brought back at the end"] += 1
                    self._expect(lane.state == "active", f"{lane.slug} cannot be brought back: {lane.state}")
                self.wrong.update(islice(user.wrong, 5))
                user.wrong.clear()
                user.close()


def _is_of_gc(document: dict[str, Any]) -> bool:
    """Tells whether something was refused because git, in a user's gc, had a lane locked at that moment."""
    named = document["details"].get("obstacles", ())
    return document["code"] == "cannot_hold" and all(each.startswith("git-lock") for each in named)


def _told(document: object) -> object:
    """Returns of an answer what the log says; what was seen of a lane is seen anew."""
    if not isinstance(document, dict):
        return document
    return {
        name: document.get(name) for name in ("id", "slug", "state", "position", "path", "edition", "branch")
    }


def trial(
    home: Path,
    kills: int,
    seed: int,
    lanes: int,
    every: int,
    tell: Callable[[str], None] = lambda line: None,
    *,
    by_hand: bool = False,
) -> tuple[Counter[str], Counter[str]]:
    """Returns counts of what was done, and what was wrong how often; it is checked after so many kills."""
    with starter() as start:
        tried, begun, told = Trial(home, start, seed, lanes, by_hand=by_hand), monotonic(), set[str]()
        while (left := kills - tried.counts["kills"]) > 0:
            tried.round(min(left, every))
            tried.check()
            done = f"{tried.counts['kills']} kills, {monotonic() - begun:.0f} s"
            tell(f"{done}, {tried.tally.keys} commands, {sum(tried.wrong.values())} wrong")
            for what in tried.wrong.keys() - told:
                tell(f"WRONG: {what}")
            told |= tried.wrong.keys()
        tried.restore_all()
        tried.check()
        counts = tried.counts
        counts["commands"] = tried.tally.keys
        counts["acknowledged"] = sum(each.status < 300 for user in tried.users for each in user.asked)
        counts["connections lost"] = tried.tally.lost["service_lost"]
        counts["events"] = len(tried.house.events())
        counts["lanes"] = sum(len(user.ledgers) for user in tried.users)
        counts["files accounted for"] = sum(len(lane.files) for user in tried.users for lane in user.ledgers)
        counts["commits accounted for"] = sum(
            len(lane.commits) for user in tried.users for lane in user.ledgers
        )
    return counts, tried.wrong


def main(argv: Sequence[str] | None = None) -> int:
    """Runs it, prints what was met, and returns 0 only if nothing was wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.random_kills", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--kills", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--lanes", type=int, default=16, metavar="N", help="that are worked in at once")
    parser.add_argument("--every", type=int, default=100, metavar="N", help="kills between two checks")
    parser.add_argument("--program", action="store_true", help="the command line, without a service")
    parser.add_argument("--service", action="store_false", dest="program", help="the service (the default)")
    parser.add_argument("--dir", default=str(MEMORY) if MEMORY.is_dir() else None)
    parser.add_argument("--keep", action="store_true", help="leave everything where it is")
    given = parser.parse_args(argv)
    place = Path(tempfile.mkdtemp(prefix="laneyard-kills-", dir=given.dir))
    try:
        counts, wrong = trial(
            place, given.kills, given.seed, given.lanes, given.every, _say, by_hand=given.program
        )
    finally:
        if not given.keep:
            shutil.rmtree(place)
    for what, count in counts.items():
        _say(f"{count:8,} {what}")
    for what, count in wrong.most_common(40):
        _say(f"WRONG {count} times: {what}")
    _say(f"{len(wrong)} things are wrong" if wrong else "all is well")
    return 1 if wrong else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
