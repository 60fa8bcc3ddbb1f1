"""A model of what a disk holds for certain: built from a directory and the calls that then changed it.

Nothing counts as durable that was not asked for: the bytes of a file after its fsync, the names in a
directory after the fsync of that directory, everything after a syncfs. Real file systems keep more than that.
"""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, NamedTuple

from adapters.files.identity import identify
from tests.faults.syscalls import descriptor_of, strings_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from domain.evidence import Identity
    from tests.faults.syscalls import Call


class Said(NamedTuple):
    """What an object holds: bytes or a link's target, permissions, the time if one was set; or names."""

    data: bytes = b""
    mode: int = 0
    time: str = ""
    names: tuple[tuple[bytes, Node], ...] = ()


class Node:
    """A file, link or directory: as it is seen, and as it is certainly on the disk."""

    def __init__(self, kind: str, mode: int, data: bytes = b"", identity: Identity | None = None) -> None:
        self.kind = kind
        self.mode = mode
        self.data = data
        self.time = ""
        self.names: dict[bytes, Node] = {}
        self.identity = identity
        self.kept = Said(data if kind == "link" else b"", mode)

    def said(self) -> Said:
        """Returns what is seen now."""
        return Said(self.data, self.mode, self.time, tuple(sorted(self.names.items(), key=lambda e: e[0])))

    @property
    def durable(self) -> bool:
        """Tells whether what is seen is on the disk, but for what the entries of a directory hold."""
        return self.kept == self.said()


class Disk:
    """The tree below one directory; `begin` and `end` bring in one call after another."""

    def __init__(self, place: bytes) -> None:
        self.place = place
        self.root = _load(place, {})
        self._umask = _umask()
        self._open: dict[tuple[int, int], Node] = {}
        self._at: dict[tuple[int, Node], int] = {}
        self._appends: set[tuple[int, Node]] = set()
        self._here: dict[int, bytes] = {}
        self._parents: dict[int, int] = {}
        self._program: dict[int, int] = {}  # which threads share their descriptors

    # Looking ----------------------------------------------------------------------------------------------

    def find(self, path: bytes, *, durable: bool = False) -> Node | None:
        """Returns what is seen at a path, or what is durable under its name."""
        node: Node | None = self.root
        for name in self._names(path):
            if node is not None:
                node = (dict(node.kept.names) if durable else node.names).get(name)
        return node

    def below(self, path: bytes) -> Iterator[tuple[bytes, Node]]:
        """Yields what is seen in a directory."""
        node = self.find(path)
        for name, each in (node.names if node else {}).items():
            yield os.path.join(path, name), each

    def walk(self) -> Iterator[tuple[bytes, Node]]:
        """Yields everything that is seen, the place itself first."""
        return _walk(self.root, self.place)

    def risks(self) -> Iterator[tuple[bytes, str]]:
        """Yields every path that would not be after a power cut as it is seen, and why."""
        return _risks(self.root, self.place)

    def unsafe(self, path: bytes) -> list[str]:
        """Returns why a path, with everything below it, would not be after a power cut as it is seen."""
        risks = ((where, why) for where, why in self.risks() if concerns(where, why, path))
        return [f"{os.fsdecode(where)}: {why}" for where, why in risks]

    def about(self, call: Call) -> bytes:
        """Returns the path of the descriptor that a call is about, or nothing."""
        first = call.arguments[0]
        return text_of(first) if DESCRIPTOR.match(first) and not first.endswith("(deleted)") else b""

    def named(self, call: Call, at: int) -> bytes:
        """Returns the path that an argument names, relative to the descriptor before it if there is one."""
        path, before = text_of(call.arguments[at]), call.arguments[at - 1] if at else ""
        here = text_of(before) if before.endswith(">") else self._place_of(call.thread)
        return os.path.normpath(os.path.join(here, path))

    def _names(self, path: bytes) -> list[bytes]:
        assert self._is_ours(path), path
        return [name for name in path[len(self.place) :].split(b"/") if name]

    def _is_ours(self, path: bytes) -> bool:
        return path == self.place or path.startswith(self.place + b"/")

    # Following --------------------------------------------------------------------------------------------

    def starts(self, call: Call) -> None:
        """Lets what is started be where it is started, and share descriptors if it is a thread."""
        started = int(call.result.split()[0])
        self._parents[started] = call.thread
        if "CLONE_THREAD" in "".join(call.arguments):
            self._program[started] = self._program.get(call.thread, call.thread)

    def begin(self, call: Call) -> dict[Node, Said]:
        """Returns what a sync that begins now will have made durable when it returns."""
        if call.name in ("fsync", "fdatasync"):
            node = self._node(call)
            return {node: node.said()} if node else {}
        return {node: node.said() for node in _all(self.root)} if call.name in ("syncfs", "sync") else {}

    def end(self, call: Call, synced: dict[Node, Said]) -> None:
        """Takes a call that has returned; raises NotImplementedError for one that nobody has made so far."""
        for node, said in synced.items():
            node.kept = said
        if call.name not in PASSED:
            follow = getattr(self, "_" + ALIKE.get(call.name, call.name), None)
            if follow is None:
                raise NotImplementedError(call.name)
            follow(call)

    def _place_of(self, thread: int) -> bytes:
        while thread not in self._here and thread in self._parents:
            thread = self._parents[thread]
        return self._here.get(thread, b"/")

    def _key(self, call: Call, descriptor: int) -> tuple[int, int]:
        return self._program.get(call.thread, call.thread), descriptor

    def _node(self, call: Call, at: int = 0) -> Node | None:
        """Returns what a descriptor is of, or an argument names, if it is below our place."""
        argument = call.arguments[at]
        if argument.startswith('"'):
            path = self.named(call, at)
            if path.startswith(OPENED):
                return self._open.get(self._key(call, int(path.removeprefix(OPENED))))
        elif argument.endswith("(deleted)"):
            return self._open.get(self._key(call, descriptor_of(argument)))
        elif DESCRIPTOR.match(argument):
            path = text_of(argument)
        else:
            return None  # a pipe, a socket
        return self.find(path) if self._is_ours(path) else None

    def _spot(self, call: Call, at: int) -> tuple[dict[bytes, Node], bytes]:
        """Returns the names among which an argument's last name is, or is to be."""
        path = self.named(call, at)
        head, name = os.path.split(path)
        if not self._is_ours(head):
            return {}, name
        parent = self.find(head)
        assert parent is not None, path
        return parent.names, name

    def _chdir(self, call: Call) -> None:
        self._here[call.thread] = self.named(call, 0)

    def _fchdir(self, call: Call) -> None:
        self._here[call.thread] = text_of(call.arguments[0])

    def _openat(self, call: Call) -> None:
        path = text_of(call.result)
        if not self._is_ours(path) or path.endswith(UNKEPT):
            return
        flags = call.arguments[2]
        node = None if "O_TMPFILE" in flags else self.find(path)
        if "O_TMPFILE" in flags:  # it has no name yet
            node = self._made("file", call.arguments[3])
        elif node is None:
            assert "O_CREAT" in flags, path
            parent = self.find(os.path.dirname(path))
            assert parent is not None, path
            node = parent.names[os.path.basename(path)] = self._made("file", call.arguments[3])
        elif "O_TRUNC" in flags:
            node.data = b""
        key = self._key(call, descriptor_of(call.result))
        self._open[key] = node
        self._at[key[0], node] = 0
        (self._appends.add if "O_APPEND" in flags else self._appends.discard)((key[0], node))

    def _made(self, kind: str, mode: str) -> Node:
        return Node(kind, int(mode.rpartition("|")[2], 8) & ~self._umask)

    def _lseek(self, call: Call) -> None:
        node = self._node(call)
        if node:
            self._at[self._key(call, 0)[0], node] = int(call.result)

    def _read(self, call: Call) -> None:
        node = self._node(call)
        if node:
            key = (self._key(call, 0)[0], node)
            self._at[key] = self._at.get(key, 0) + int(call.result)

    def _write(self, call: Call) -> None:
        node = self._node(call)
        if node is None:
            return
        count, key = int(call.result), (self._key(call, 0)[0], node)
        if call.name.startswith("p"):
            _put(node, strings_of(call.arguments[1])[:count], int(call.arguments[3]))
            return
        at = len(node.data) if key in self._appends else self._at.get(key, 0)
        _put(node, strings_of(call.arguments[1])[:count], at)
        self._at[key] = at + count

    def _truncate(self, call: Call) -> None:
        node = self._node(call)
        if node:
            size = int(call.arguments[1])
            node.data = node.data[:size].ljust(size, b"\0")

    def _fallocate(self, call: Call) -> None:
        node, end = self._node(call), int(call.arguments[2]) + int(call.arguments[3])
        assert call.arguments[1] == "0", call.arguments
        if node:
            node.data = node.data.ljust(end, b"\0")

    def _mkdir(self, call: Call) -> None:
        at = 0 if call.name == "mkdir" else 1
        names, name = self._spot(call, at)
        names[name] = self._made("directory", call.arguments[at + 1])

    def _mknod(self, call: Call) -> None:
        at = 0 if call.name == "mknod" else 1
        names, name = self._spot(call, at)
        names[name] = self._made("file", call.arguments[at + 1])

    def _symlink(self, call: Call) -> None:
        names, name = self._spot(call, len(call.arguments) - 1)
        names[name] = Node("link", 0o777, text_of(call.arguments[0]))

    def _link(self, call: Call) -> None:
        first, second = (0, 1) if call.name == "link" else (1, 3)
        node, (names, name) = self._node(call, first), self._spot(call, second)
        assert node is not None, call
        names[name] = node

    def _unlink(self, call: Call) -> None:
        names, name = self._spot(call, 1 if call.name == "unlinkat" else 0)
        names.pop(name, None)

    def _rename(self, call: Call) -> None:
        first, second = (0, 1) if call.name == "rename" else (1, 3)
        assert "EXCHANGE" not in call.arguments[-1]
        names, name = self._spot(call, first)
        others, other = self._spot(call, second)
        if names:
            others[other] = names.pop(name)

    def _chmod(self, call: Call) -> None:
        at = 1 if call.name == "fchmodat" else 0
        node = self._node(call, at)
        if node:
            node.mode = int(call.arguments[at + 1], 8)

    def _utimensat(self, call: Call) -> None:
        node = self._node(call, 0 if call.arguments[1] == "NULL" else 1)
        if node:
            node.time = call.arguments[2]


def _load(place: bytes, known: dict[int, Node]) -> Node:
    """Returns the tree that is there now, all of it durable."""
    status = os.lstat(place)
    if status.st_nlink > 1 and status.st_ino in known:
        return known[status.st_ino]
    mode, data, kind = stat.S_IMODE(status.st_mode), b"", "file"
    if stat.S_ISDIR(status.st_mode):
        kind = "directory"
    elif stat.S_ISLNK(status.st_mode):
        kind, data = "link", os.readlink(place)
    elif stat.S_ISREG(status.st_mode):
        with open(place, "rb") as file:
            data = file.read()
    node = known[status.st_ino] = Node(kind, mode, data, identify(place))
    if kind == "directory":
        names = [name for name in os.listdir(place) if not name.endswith(UNKEPT)]
        node.names = {name: _load(os.path.join(place, name), known) for name in names}
    node.time = f"{status.st_mtime_ns}"
    node.kept = node.said()
    return node


def _walk(node: Node, path: bytes) -> Iterator[tuple[bytes, Node]]:
    yield path, node
    for name, below in node.names.items():
        yield from _walk(below, os.path.join(path, name))


def _all(root: Node) -> Iterator[Node]:
    return (node for _, node in _walk(root, b""))


def _risks(node: Node, path: bytes) -> Iterator[tuple[bytes, str]]:
    if node.kept[:3] != node.said()[:3]:
        yield path, HELD
    now, kept = node.names, dict(node.kept.names)
    for name in sorted({*now, *kept}):
        where = os.path.join(path, name)
        if now.get(name) is not kept.get(name):
            yield where, f"its {'name' if name in now else 'removal'} is not durable"
        if name in now:
            yield from _risks(now[name], where)


def concerns(risk: bytes, why: str, path: bytes) -> bool:
    """Tells whether a risk is one of the path: of itself, of what is below, of a name above."""
    below = risk == path or risk.startswith(path + b"/")
    return below or (path.startswith(risk + b"/") and why != HELD)


def _put(node: Node, data: bytes, at: int) -> None:
    old = node.data.ljust(at, b"\0")
    node.data = old[:at] + data + old[at + len(data) :]


def _umask() -> int:
    with open("/proc/self/status", encoding="ascii") as lines:
        return int(next(line for line in lines if line.startswith("Umask:")).split()[1], 8)


OPENED = b"/proc/self/fd/"
UNKEPT = (b"-shm",)  # SQLite maps it, and makes it anew
HELD = "what it holds is not durable"
DESCRIPTOR = re.compile(r"\d+<\\x2f")
STARTS = ("clone", "clone3", "fork", "vfork")
PASSED = ("fsync", "fdatasync", "syncfs", "sync", "ioctl", *STARTS)
ALIKE = {
    **{"openat2": "openat", "pwrite64": "write", "writev": "write", "ftruncate": "truncate"},
    **{"renameat": "rename", "renameat2": "rename", "unlinkat": "unlink", "rmdir": "unlink"},
    **{"mkdirat": "mkdir", "mknodat": "mknod", "symlinkat": "symlink", "linkat": "link"},
    **{"fchmod": "chmod", "fchmodat": "chmod"},
}
