"""How much memory the program takes for a lane: its whole life in a process of its own, step by step.

The peak is the kernel's own, of the whole process; it is set back before each step.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from adapters.config import load
from adapters.wiring import open_yard
from tests.bench.ours import Lane
from tests.bench.scene import Scene, write_large

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
FILES = 100_000
PER_DIRECTORY = 100
STEPS = ("create", "snapshot", "remove", "restore", "remove", "reap", "restore")


def peaks(home: Path, scene: str, size: int | None = None) -> dict[str, float]:
    """Returns the MiB that each step took at most; `size` is of the scene, in files or megabytes."""
    scenery = Scene(home)
    scenery.root.mkdir(parents=True)
    change, usual = SCENES[scene]
    size = size or usual
    _commit(scenery, size if change is _touch_some else 1)
    command = [sys.executable, "-m", "tests.bench.memory", str(home), scene, str(size)]
    ran = subprocess.run(command, cwd=ROOT, env=scenery.environment, capture_output=True, check=False)
    if ran.returncode != 0:
        raise RuntimeError(ran.stderr.decode())
    found: dict[str, float] = json.loads(ran.stdout)
    return {f"{scene}, {step}": peak for step, peak in found.items()}


def _commit(scene: Scene, files: int) -> None:
    """Makes a commit of so many small files, without a checkout."""
    scene.git(scene.root, "init", "-q", "-b", "main")
    subprocess.run(
        ["git", "fast-import", "--quiet"],
        cwd=scene.root,
        env=scene.environment,
        input=b"".join(_stream(files)),
        check=True,
    )
    scene.git(scene.root, "config", "gc.auto", "0")


def _stream(files: int) -> Iterator[bytes]:
    yield b"commit refs/heads/main\ncommitter Ada <ada@example.org> 0 +0000\ndata 3\nall\n"
    for number in range(files):
        data = b"file %d\n" % number
        yield b"M 100644 inline %s\ndata %d\n%s\n" % (_name(number).encode(), len(data), data)


def _name(number: int) -> str:
    return f"directory_{number // PER_DIRECTORY}/file_{number}.txt"


def _touch_some(tree: Path, files: int) -> None:
    for number in range(0, files, max(1, files // 10)):
        (tree / _name(number)).write_text("changed\n")


def _add_files(tree: Path, files: int) -> None:
    for number in range(files):
        path = tree / "new" / _name(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"new {number}\n")


def _add_large(tree: Path, megabytes: int) -> None:
    write_large(tree / "large", megabytes)


SCENES: dict[str, tuple[Callable[[Path, int], None], int]] = {
    "100,000 committed files": (_touch_some, FILES),
    "100,000 new files": (_add_files, FILES),
    "a file of 512 MB": (_add_large, 512),
}


def _set_back() -> None:
    Path("/proc/self/clear_refs").write_text("5")  # proc(5): the peak begins anew


def _peak() -> float:
    """Returns the most MiB of memory that this process had since its peak was set back."""
    status = Path("/proc/self/status").read_text()
    line = next(each for each in status.splitlines() if each.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


async def lived(home: Path, scene: str, size: int) -> dict[str, float]:
    """Returns the peak of each step of a lane's life; of what is done twice, of the last."""
    change, _ = SCENES[scene]
    found, scenery = {}, Scene(home)
    async with open_yard(load(str(home / "state"), scenery.environment)) as (yard, _):
        lane = Lane(yard, scenery.root, "work")
        for number, step in enumerate(STEPS):
            _set_back()
            await getattr(lane, step)()
            name = "restore from a snapshot" if number == len(STEPS) - 1 else step
            found[name] = _peak()
            if step == "create":
                change(lane.path, size)
    return found


if __name__ == "__main__":
    place, name, size = sys.argv[1:]
    sys.stdout.write(json.dumps(trio.run(lived, Path(os.fsdecode(place)), name, int(size))))
