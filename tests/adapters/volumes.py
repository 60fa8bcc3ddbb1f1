"""Small file systems of a test's own, to fill and to make read-only."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def volume(path: Path, megabytes: int = 4) -> Iterator[Path]:
    """Mounts an empty file system in memory; skips where that is not allowed."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    path.mkdir()
    done = mount("-t", "tmpfs", "-o", f"size={megabytes}m", "laneyard-test", path)
    if done.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Makes a volume read-only for a while."""
    make_read_only(path)
    try:
        yield
    finally:
        done = mount("-o", "remount,rw", path)
        assert done.returncode == 0, done.stderr


def make_read_only(path: Path) -> None:
    done = mount("-o", "remount,ro", path)
    assert done.returncode == 0, done.stderr


def fill(path: Path, leave: int = 0) -> Path:
    """Takes the space that is left, but for some bytes, by a file that is returned."""
    ballast = path / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            while _is_written(file.fileno(), bytes(size)):
                continue
        file.truncate(max(0, file.seek(0, os.SEEK_END) - leave))
    return ballast


def _is_written(descriptor: int, data: bytes) -> bool:
    try:
        return os.write(descriptor, data) == len(data)
    except OSError:
        return False


def mount(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
