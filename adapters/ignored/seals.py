"""What says that a tool has made a directory, or a file of bytecode: looked at, not concluded from a name."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from adapters.ignored.classes import CACHE, HEADER, is_bytecode, source_name
from domain.paths import display, pack

if TYPE_CHECKING:
    from adapters.ignored.classes import Rules

SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"  # https://bford.info/cachedir/
LOCKS = ("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb")
ENVIRONMENT = b"pyvenv.cfg"
# What venv, virtualenv, uv and the installers put right into a virtual environment.
PARTS = frozenset(
    (
        *(b"bin", b"Scripts", b"lib", b"lib64", b"Lib", b"include", b"Include", b"share", b"etc", b"man"),
        *(ENVIRONMENT, b".gitignore", b"CACHEDIR.TAG", b".lock"),
    )
)


class Seal(NamedTuple):
    """The evidence that a tool has made all of a directory; or `doubt`, where something speaks against it."""

    why: str | None = None
    doubt: str | None = None


def seal(root: bytes, path: bytes, rules: Rules) -> Seal:
    """Returns what says that a tool has made all that is in the directory. Raises OSError."""
    place = os.path.join(root, path)
    if is_file(os.path.join(place, ENVIRONMENT)):
        doubt = _no_environment(place, path, rules)
        return Seal(None, doubt) if doubt else Seal(ENVIRONMENT.decode())
    if _head(os.path.join(place, b"CACHEDIR.TAG"), len(SIGNATURE)) == SIGNATURE:
        return Seal("CACHEDIR.TAG")
    if os.path.basename(path) == b"node_modules":
        beside = os.path.dirname(place)
        lock = next((name for name in LOCKS if is_file(os.path.join(beside, name.encode()))), None)
        return Seal() if lock is None else Seal(f"node_modules beside {lock}")
    return Seal()


def _no_environment(place: bytes, path: bytes, rules: Rules) -> str | None:
    """Returns what keeps a directory from being a virtual environment and nothing else.

    What is precious by its name is told by itself anyway.
    """
    names = set(os.listdir(place))
    strange = (each for each in sorted(names - PARTS) if rules.precious_by_name(path + b"/" + each) is None)
    if (other := next(strange, None)) is not None:
        return f"pyvenv.cfg, and no part of a virtual environment: {display(pack(path + b'/' + other))}"
    programs = next((each for each in (b"bin", b"Scripts") if each in names), None)
    if programs is None or not any(
        each.startswith(b"python") for each in _listed(os.path.join(place, programs))
    ):
        return "pyvenv.cfg without a python"
    return None if {b"lib", b"Lib"} & names else "pyvenv.cfg without packages"


def _listed(place: bytes) -> list[bytes]:
    try:
        return os.listdir(place)
    except NotADirectoryError:
        return []


def bytecode_of_a_source(root: bytes, path: bytes) -> bool:
    """Tells whether a file of a cache is bytecode of a source that is there. Raises OSError."""
    directory, name = os.path.split(path)
    source = source_name(name) if os.path.basename(directory) == CACHE else None
    if source is None or not is_file(os.path.join(root, os.path.dirname(directory), source)):
        return False
    return is_bytecode(_head(os.path.join(root, path), HEADER))


def is_file(place: bytes) -> bool:
    """Tells whether a regular file is there. Raises OSError where that cannot be seen."""
    try:
        return stat.S_ISREG(os.lstat(place).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _head(place: bytes, most: int) -> bytes:
    """Returns how a regular file begins; nothing of what is none."""
    if not is_file(place):
        return b""
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, most)
    finally:
        os.close(descriptor)
