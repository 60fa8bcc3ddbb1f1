"""Class 5: ignored files, those that can be made again, those that cannot, and those nobody knows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.roundtrip.scene import Spot, move

if TYPE_CHECKING:
    from collections.abc import Iterator


def _ignoring(spot: Spot, *patterns: bytes) -> None:
    spot.write(b".gitignore", b"\n".join(patterns) + b"\n")
    spot.write(b"tracked")


@move(5)
def ignored_on_request(spot: Spot) -> Iterator[None]:
    """Ignored files, captured on request: files, a directory, a link, permissions"""
    _ignoring(spot, b"*.ign", b"scratch/")
    yield
    spot.scene.includes = True
    spot.write(b"a.ign", mode=0o600)
    spot.write(b"scratch/deep/er", b"\0\r\n")
    spot.write(b"scratch/tool", mode=0o755)
    spot.link(b"scratch/link", b"../tracked")
    spot.link(b"link.ign", b"/nowhere")
    spot.directory(b"scratch/empty")


@move(5)
def ignored_shapes(spot: Spot) -> Iterator[None]:
    """Ignored files of every shape, captured on request: hard links, times, modes, names, a big one"""
    _ignoring(spot, b"*.ign", b"scratch/")
    yield
    spot.scene.includes = True
    spot.write(b"scratch/one", mode=0o4711)
    os.link(spot.at(b"scratch/one"), spot.at(b"scratch/two"))
    os.link(spot.at(b"scratch/one"), spot.at(b"untracked"))
    spot.write(b"scratch/new\nline \xff")
    spot.write(b"scratch/big", b"line\n" * 2_000_000)
    spot.directory(b"scratch/empty/er")
    for name in (b"scratch/one", b"scratch/empty/er", b"scratch/empty", b"scratch"):
        os.utime(spot.at(name), ns=(-1, spot.rng.randrange(10**18)))
    os.chmod(spot.at(b"scratch/empty/er"), 0o500)


@move(5)
def ignored_among_tracked(spot: Spot) -> Iterator[None]:
    """Ignored files in a directory with tracked and untracked ones, all of them on request"""
    _ignoring(spot, b"dir/*", b"!dir/kept")
    spot.write(b"dir/kept")
    spot.write(b"dir/forced")
    yield
    spot.scene.includes = True
    spot.write(b"dir/forced", b"changed\n")
    spot.write(b"dir/ignored")
    spot.write(b"dir/deeper/ignored")
    spot.write(b"beside")


@move(5)
def precious_on_request(spot: Spot) -> Iterator[None]:
    """Ignored secrets and databases, captured on request"""
    _ignoring(spot, b".env", b"*.key", b"*.sqlite3")
    yield
    spot.scene.includes = True
    for name in (b".env", b"server.key", b"data.sqlite3"):
        spot.write(name, mode=0o600)


@move(5, holds="unknown_ignored")
def ignored_not_asked_for(spot: Spot) -> Iterator[None]:
    """Ignored files that nobody asked to capture"""
    _ignoring(spot, b"*.ign")
    yield
    spot.write(b"a.ign")


@move(5, holds="unknown_ignored")
def precious_not_asked_for(spot: Spot) -> Iterator[None]:
    """An ignored `.env` that nobody asked to capture"""
    _ignoring(spot, b".env")
    yield
    spot.write(b".env")


@move(5)
def ignored_by_exclude(spot: Spot) -> None:
    """A file that `info/exclude` ignores, captured on request"""
    spot.scene.includes = True
    with open(os.path.join(spot.world.common, b"info/exclude"), "ab") as file:
        file.write(b"/" + spot.rel(b"hidden") + b"\n")
    spot.write(b"hidden")


@move(5)
def cache_directory(spot: Spot) -> Iterator[None]:
    """A cache with its `CACHEDIR.TAG`, let go and named in the log"""
    _ignoring(spot, b"cache/")
    yield
    spot.write(b"cache/CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55\n")
    spot.write(b"cache/some/thing")
    spot.scene.lost.add(spot.rel(b"cache"))


@move(5)
def virtual_environment(spot: Spot) -> Iterator[None]:
    """A virtual environment with its `pyvenv.cfg`, let go and named in the log"""
    _ignoring(spot, b"venv/")
    yield
    spot.write(b"venv/pyvenv.cfg", b"home = /usr/bin\nversion = 3.11\n")
    spot.write(b"venv/bin/python3")
    spot.write(b"venv/lib/thing.py")
    spot.scene.lost.add(spot.rel(b"venv"))


@move(5)
def node_modules(spot: Spot) -> Iterator[None]:
    """`node_modules` beside its lock file, let go and named in the log"""
    _ignoring(spot, b"node_modules/")
    spot.write(b"package-lock.json", b"{}\n")
    yield
    spot.write(b"node_modules/left-pad/index.js")
    spot.scene.lost.add(spot.rel(b"node_modules"))


@move(5)
def bytecode(spot: Spot) -> Iterator[None]:
    """`__pycache__` with the bytecode of sources that are there, let go and named in the log"""
    _ignoring(spot, b"__pycache__/")
    spot.write(b"module.py", b"pass\n")
    yield
    spot.write(b"__pycache__/module.cpython-311.pyc", b"\xa7\r\r\n" + bytes(12))
    spot.scene.lost.add(spot.rel(b"__pycache__"))


@move(5, holds="unknown_ignored")
def repository_in_cache(spot: Spot) -> Iterator[None]:
    """A cache with its `CACHEDIR.TAG` and somebody's repository in it, not asked for"""
    _ignoring(spot, b"cache/")
    yield
    spot.write(b"cache/CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55\n")
    spot.git_in(spot.at(b"cache"), "init", "-q", "clone")
    spot.write(b"cache/clone/work")


@move(5)
def bytecode_without_source(spot: Spot) -> Iterator[None]:
    """`__pycache__` whose source is not there, captured on request"""
    _ignoring(spot, b"__pycache__/")
    yield
    spot.scene.includes = True
    spot.write(b"__pycache__/gone.cpython-311.pyc", b"\xa7\r\r\n")


@move(5)
def false_cache(spot: Spot) -> Iterator[None]:
    """A directory called a cache, without the evidence, captured on request"""
    _ignoring(spot, b".cache/", b"node_modules/")
    yield
    spot.scene.includes = True
    spot.write(b".cache/CACHEDIR.TAG", b"Signature: something else\n")
    spot.write(b"node_modules/written/by-hand.js")
