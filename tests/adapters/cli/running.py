"""A service as a child process: started, told to read its configuration again, and ended."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[3]
START = "import sys; sys.path.insert(0, {root!r}); from adapters.cli import main; sys.exit(main())"
PROGRAM = (sys.executable, "-I", "-c", START.format(root=str(ROOT)))
PATIENCE = 30  # seconds


class Running:
    """The real `laneyard serve`. Ready as soon as it is made: it says so as to a service manager."""

    def __init__(
        self, state: Path, home: Path, environment: Mapping[str, str], under: tuple[str, ...] = ()
    ) -> None:
        self.log = home / "service.log"
        self.tolerated: set[str] = set()  # the messages of errors that belong to the test
        self._heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._heard.bind(b"\0laneyard-test-%d-%d" % (os.getpid(), self._heard.fileno()))
        name = "@" + self._heard.getsockname()[1:].decode()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*under, *PROGRAM, "--state-dir", state, "serve"],
                cwd=home,
                env={**environment, "NOTIFY_SOCKET": name},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        self._await("READY=1")

    @property
    def pid(self) -> int:
        return self.process.pid

    def reload(self) -> None:
        """Has the configuration read again."""
        self.process.send_signal(signal.SIGHUP)
        self._await("READY=1")

    def kill(self) -> None:
        """Ends it as a crash would."""
        self.process.kill()
        self.process.wait(PATIENCE)
        self._heard.close()

    def stop(self) -> int:
        """Asks it to end and returns its exit code."""
        self.process.terminate()
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self._heard.close()

    def end(self) -> None:
        """Ends it, if it runs; it must end well, and have written of no error."""
        assert self.process.returncode is not None or self.stop() == 0
        assert [each for each in self.lines() if each["message"] not in self.tolerated] == []

    def lines(self, *levels: str) -> list[Any]:
        """Returns what it has said, each line a JSON object, at these levels: errors, if none is named."""
        said = [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]
        return [each for each in said if each["level"] in (levels or ("error", "critical"))]

    def _await(self, word: str) -> None:
        """Waits until it says the word; fails where it has ended instead."""
        ended = os.pidfd_open(self.process.pid)
        try:
            while True:
                ready, _, _ = select.select([self._heard.fileno(), ended], [], [], PATIENCE)
                if self._heard.fileno() not in ready:
                    self.process.kill()
                    raise AssertionError(f"no {word} from the service:\n{self.log.read_text()}")
                if word in self._heard.recv(1 << 12).decode().splitlines():
                    return
        finally:
            os.close(ended)
