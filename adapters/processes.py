"""The process inventory: who is behind a process number that a lock file names. The only user of psutil."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import msgspec
import psutil  # type: ignore[import-untyped]

SAME = 0.02  # seconds by which two readings of one start time may differ: two clock ticks


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a lock. `started` and `command` are known only while the very process is alive."""

    pid: int
    program: str
    alive: bool
    started: str | None = None
    command: str | None = None

    def __str__(self) -> str:
        if not self.alive:
            return f"process {self.pid} ({self.program}), which this machine does not show any more"
        return f"process {self.pid}, running since {self.started}: {self.command}"


def holder(note: str) -> Holder | None:
    """Returns who wrote the note `pid start-time program` into a lock file, or None for any other text."""
    pid, _, rest = note.partition(" ")
    ticks, _, program = rest.partition(" ")
    if not (pid.isdecimal() and ticks.isdecimal()):
        return None
    try:
        return _alive(psutil.Process(int(pid)), int(ticks), program)
    except psutil.Error:
        return Holder(pid=int(pid), program=program, alive=False)


def _alive(process: psutil.Process, ticks: int, program: str) -> Holder:
    """Returns the process, unless its number has gone to another one since."""
    began = process.create_time()
    noted = psutil.boot_time() + ticks / os.sysconf("SC_CLK_TCK")
    if abs(began - noted) > SAME:
        return Holder(pid=process.pid, program=program, alive=False)
    return Holder(
        pid=process.pid,
        program=program,
        alive=True,
        started=datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        command=" ".join(process.cmdline()) or program,
    )
