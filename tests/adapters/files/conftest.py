"""Privileges, mounts and limits that these tests arrange and always put back."""

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

NOBODY = 65534

Mount = Callable[[Path, Path], None]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    return root


@pytest.fixture
def unprivileged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Runs the test without root's powers, in tmp_path; use relative paths, those above it may be closed."""
    monkeypatch.chdir(tmp_path)
    if os.geteuid() != 0:
        yield tmp_path
        return
    os.chown(tmp_path, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield tmp_path
    finally:
        os.seteuid(0)


@pytest.fixture
def bind_mount() -> Iterator[Mount]:
    mounted: list[Path] = []

    def mount(source: Path, target: Path) -> None:
        if os.geteuid() != 0:
            pytest.skip("needs root to mount")
        done = subprocess.run(
            ["mount", "--bind", source, target], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"mount is not permitted here: {done.stderr.strip()}")
        mounted.append(target)

    try:
        yield mount
    finally:
        for target in reversed(mounted):
            subprocess.run(["umount", target], check=True)


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (160, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def deep_tree(root: Path) -> Callable[[int], None]:
    """Makes directories named d inside each other, and a file in the innermost; no path can name them all."""

    def make(depth: int) -> None:
        descriptor = os.open(root, os.O_RDONLY)
        for _ in range(depth):
            os.mkdir(b"d", dir_fd=descriptor)
            child = os.open(b"d", os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = child
        os.close(os.open(b"bottom", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=descriptor))
        os.close(descriptor)

    return make


@pytest.fixture
def ten_thousand_files(root: Path) -> None:
    for number in range(10_000):
        folder = root / f"{number // 100:03}"
        if number % 100 == 0:
            folder.mkdir()
        (folder / f"{number:05}").write_bytes(b"%d" % number)
