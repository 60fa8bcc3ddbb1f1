"""A house of repositories with a real service in a process of its own, and what it is asked."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from signal import Signals
from time import monotonic, sleep
from typing import IO, TYPE_CHECKING, Any, Protocol

from adapters.client.connection import Connection
from adapters.store.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from adapters.client.connection import Response

    Launch = Callable[[Sequence[str], Path, Mapping[str, str], IO[bytes]], "Process"]

ROOT = Path(__file__).parents[2]
START = "import sys; sys.path.insert(0, {root!r}); from adapters.cli import main; sys.exit(main())"
PROGRAM = (sys.executable, "-I", "-c", START.format(root=str(ROOT)))
# Whoever has started it may be killed: then it ends, too.
HOLDING = """
for place in "$HOUSE"/hold-*; do
    name=${place##*/hold-}
    word=$(cat "$place" 2>/dev/null)
    case "$PWD/ $*" in *"$HOUSE/$name/"*"$word"*)
        : >"$HOUSE/held-$name"
        while [ -e "$place" ] && kill -0 $PPID 2>/dev/null; do sleep 0.02; done
        kill -0 $PPID 2>/dev/null || exit 1
    esac
done
"""
PATIENCE = 60.0  # seconds for whatever comes at once on a machine that has nothing else to do


class Process(Protocol):
    """What is asked of a child process."""

    pid: int

    def poll(self) -> int | None:
        """Returns the exit code, negative for a signal, or None while it runs."""

    def wait(self, timeout: float = ...) -> int:
        """Waits for the end and returns the exit code."""

    def send_signal(self, number: int) -> None:
        """Sends a signal."""

    def kill(self) -> None:
        """Kills it."""


class House:
    """Repositories `a`, `b`, … with a few files each, beside one state directory."""

    def __init__(
        self, home: Path, repositories: str = "a", git: str = "git", launch: Launch | None = None
    ) -> None:
        """`launch` starts the service otherwise than as a new process of Python."""
        self.home, self.git_program, self.launch = home, git, launch or started
        self.state = home / "state"
        self.socket = os.fsencode(self.state / "laneyard.sock")
        self.store = os.fsencode(self.state / "journal.db")
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Ada",
            "GIT_AUTHOR_EMAIL": "ada@example.org",
            "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.org",
            "LANEYARD_STATE_DIR": str(self.state),
        }
        self.roots = [self._repository(name) for name in repositories]

    def _repository(self, name: str) -> Path:
        root = self.home / name
        root.mkdir()
        self.git(root, "init", "-q", "-b", "main")
        for number in range(8):
            (root / f"file-{number}").write_text(f"{name} {number}\n" * 20)
        self.git(root, "add", ".")
        self.git(root, "commit", "-q", "-m", "first")
        return root

    def git(self, place: Path, *arguments: str) -> str:
        """Runs the plain git program, as a user would."""
        ran = subprocess.run(
            ["git", *arguments], cwd=place, env=self.environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, (arguments, ran.stderr)
        return ran.stdout

    def configure(self, text: str) -> None:
        """Writes the configuration file, whole at once."""
        self.state.mkdir(mode=0o700, exist_ok=True)
        fresh = self.state / "config.toml.new"
        fresh.write_text(text)
        fresh.replace(self.state / "config.toml")

    def wrapper(self, script: str) -> str:
        """Makes a program that may do something else before it is git; returns its path."""
        program = self.home / "wrapped-git"
        program.write_text(f'#!/bin/sh\nHOUSE="{self.home}"\n{script}\nexec git "$@"\n')
        program.chmod(0o755)
        return str(program)

    def holding(self) -> str:
        """Makes a git that waits in a repository, say `a`, for as long as there is a file `hold-a`."""
        return self.wrapper(HOLDING)

    def hold(self, *names: str, word: str = "") -> None:
        """Keeps git waiting in these repositories, perhaps only where a word is among its arguments."""
        for name in names:
            (self.home / f"held-{name}").unlink(missing_ok=True)
            (self.home / f"hold-{name}").write_text(word)

    def until_held(self, *names: str) -> None:
        """Waits until a git waits in each of these repositories, since it was told to."""
        for name in names:
            eventually((self.home / f"held-{name}").exists)

    def release(self, *names: str) -> None:
        """Lets git go on in these repositories."""
        for name in names:
            (self.home / f"hold-{name}").unlink()

    def program(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs the program to its end."""
        return subprocess.run(
            [*PROGRAM, *arguments],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=10 * PATIENCE,  # `verify` reads every snapshot back
        )

    @contextmanager
    def serving(self, *arguments: str, ready: bool = True) -> Iterator[Running]:
        """Starts the service; at the end it is killed if it still runs."""
        running = Running(self, arguments)
        try:
            if ready:
                running.until("READY=1")
            yield running
        finally:
            running.close()

    def ask(
        self, method: str, target: str, body: object = None, key: str = "", wait: int = 30, **headers: str
    ) -> Response:
        """Asks the service once, over a connection of its own."""
        fields = {"Accept": "application/json", "Prefer": f"wait={wait}", **headers}
        data = b"" if body is None else json.dumps(body).encode()
        fields |= {"Content-Type": "application/json"} if data else {}
        fields |= {"Idempotency-Key": key} if key else {}
        with Connection(self.socket) as connection:
            return connection.request(method, target, fields, data, PATIENCE)

    def create(self, name: str, root: Path | None = None, key: str = "") -> dict[str, Any]:
        """Makes a lane and returns it as it was answered."""
        answer = self.ask("POST", "/v1/lanes", {"repository": str(root or self.roots[0]), "name": name}, key)
        assert answer.status == 201, answer.body
        return dict(document(answer))

    def health(self) -> dict[str, Any]:
        """Returns what the service says of itself."""
        return dict(document(self.ask("GET", "/v1/health")))

    def events(self) -> list[Any]:
        """Returns the whole log."""
        with Reader(self.store) as reader:
            return list(reader.events())

    def lanes(self) -> dict[str, dict[str, Any]]:
        """Returns the rows of the lanes table by slug."""
        with Reader(self.store) as reader:
            return {str(row["slug"]): dict(row) for row in reader.lanes()}

    def lanes_of(self, key: str) -> list[dict[str, Any]]:
        """Returns the rows of one repository's lanes."""
        with Reader(self.store) as reader:
            return [dict(row) for row in reader.lanes() if row["repository"] == key]


def document(answer: Response) -> Any:  # noqa: ANN401
    """Returns the JSON of an answer."""
    return json.loads(answer.body)


def eventually(true: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Waits until something is so."""
    end = monotonic() + seconds
    while not true():
        assert monotonic() < end, f"not so within {seconds} s"
        sleep(0.01)


def started(argv: Sequence[str], place: Path, environment: Mapping[str, str], log: IO[bytes]) -> Process:
    """Runs the program in a new process of Python; its output goes to the log."""
    return subprocess.Popen(
        [*PROGRAM, *argv], cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
    )


class Running:
    """A service as a child process; it tells us how it is as it would tell systemd."""

    def __init__(self, house: House, arguments: tuple[str, ...] = ()) -> None:
        self.told: list[str] = []
        self._place = house.home / f"notify-{monotonic():.6f}"
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notify.bind(str(self._place))
        self._log = house.home / "service.log"
        with open(self._log, "ab") as log:
            self._from = log.tell()
            argv = arguments if "serve" in arguments else (*arguments, "serve")
            environment = {**house.environment, "NOTIFY_SOCKET": str(self._place)}
            self.process = house.launch(argv, house.home, environment, log)

    def until(self, word: str, seconds: float = PATIENCE) -> None:
        """Waits until the service has told this, since the last call."""
        end = monotonic() + seconds
        while word not in self.told:
            self._notify.settimeout(max(end - monotonic(), 0.001))
            try:
                self.told += self._notify.recv(4096).decode().splitlines()
            except TimeoutError:
                raise AssertionError(f"no {word} within {seconds} s: {self.told}\n{self.log_text}") from None
        self.told = self.told[self.told.index(word) + 1 :]

    @property
    def log_text(self) -> str:
        """Returns what this service has logged."""
        with open(self._log, "rb") as log:
            log.seek(self._from)
            return log.read().decode()

    def tell(self, number: Signals) -> None:
        """Sends a signal."""
        self.process.send_signal(number)

    def ended(self, seconds: float = PATIENCE) -> int:
        """Waits for the end and returns the exit code, negative for a signal."""
        return self.process.wait(seconds)

    def stop(self, number: Signals = Signals.SIGTERM) -> int:
        """Sends a signal and returns the exit code."""
        self.tell(number)
        return self.ended()

    def kill(self) -> None:
        """Kills the service, as the system would for want of memory."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """Ends what is left."""
        if self.process.poll() is None:
            self.kill()
        self._notify.close()
        self._place.unlink(missing_ok=True)
