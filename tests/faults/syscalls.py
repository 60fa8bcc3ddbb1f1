"""What a process and all that it starts ask the system to do with files, as strace sees it."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.sagas.crashes import in_a_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TRACED = (
    *("open", "openat", "openat2", "creat", "lseek", "read", "write", "pwrite64", "writev", "pwritev"),
    *("truncate", "ftruncate", "fallocate", "copy_file_range", "sendfile", "splice", "ioctl"),
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "link", "linkat"),
    *("symlink", "symlinkat", "mknod", "mknodat", "chmod", "fchmod", "fchmodat", "utimensat", "setxattr"),
    *("lsetxattr", "fsetxattr", "fsync", "fdatasync", "syncfs", "sync", "sync_file_range"),
    *("chdir", "fchdir", "clone", "clone3", "fork", "vfork"),
)
PR_SET_PTRACER = 0x59616D61
ANYBODY = ctypes.c_ulong(-1)


class Call(NamedTuple):
    """A call that succeeded: `begun` is the line at which it began, and `ended` that at which it returned."""

    thread: int
    name: str
    arguments: list[str]
    result: str
    begun: int
    ended: int


def record(trace: Path, work: Callable[[], object]) -> int:
    """Runs the work in a process of its own under strace, and returns how it ended; skips where it cannot."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    reading, writing = os.pipe()

    def traced() -> None:
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANYBODY, 0, 0, 0)
        command = [strace, "-f", "-y", "-xx", "-s", str(1 << 26), "-o", str(trace), "-p", str(os.getpid())]
        command += ["-e", "trace=" + ",".join(f"?{name}" for name in TRACED), "-e", "signal=none"]
        tracer = subprocess.Popen(command, stderr=subprocess.PIPE, pass_fds=(writing,))
        os.close(writing)
        assert tracer.stderr is not None
        if b"attached" not in tracer.stderr.readline():
            os._exit(UNTRACED)
        work()

    code = in_a_process(traced)
    os.close(writing)
    with os.fdopen(reading) as end:
        end.read()  # strace has the other end for as long as it writes
    if code == UNTRACED:
        pytest.skip("strace may not attach to a process here")
    return code


def calls(trace: Path) -> Iterator[Call]:
    """Yields the calls that succeeded, in the order in which they returned; raises ValueError."""
    open_halves: dict[int, tuple[str, int]] = {}
    with trace.open(encoding="ascii") as lines:
        for number, line in enumerate(lines):
            thread, _, text = line.rstrip("\n").partition(" ")
            text, begun, who = text.lstrip(), number, int(thread)
            if text.endswith(" <unfinished ...>"):
                open_halves[who] = text.removesuffix(" <unfinished ...>"), number
                continue
            if resumed := RESUMED.match(text):
                first, begun = open_halves.pop(who)
                text = first + text[resumed.end() :]
            if text.startswith(("+++", "---")):
                continue
            found = LINE.fullmatch(text)
            if found is None:
                raise ValueError(f"line {number + 1}: {text[:200]}")
            if not found["result"].startswith(("-1", "?")):
                arguments = _split(found["arguments"])
                yield Call(who, found["name"], arguments, found["result"], begun, number)


def _split(text: str) -> list[str]:
    """Returns the arguments: strings are in hexadecimal, so that no comma is theirs."""
    found, depth, start = [], 0, 0
    for at in SIGNS.finditer(text):
        sign = at.group()
        if sign == ", " and depth == 0:
            found.append(text[start : at.start()])
            start = at.end()
        elif sign != ", ":
            depth += 1 if sign in "{[(" else -1
    return [*found, text[start:]]


def text_of(argument: str) -> bytes:
    """Returns the bytes of a string, or of the path of a descriptor."""
    found = STRING.search(argument)
    if found is None:
        raise ValueError(argument[:200])
    return bytes.fromhex(found[1].replace("\\x", ""))


def strings_of(argument: str) -> bytes:
    """Returns the bytes of all strings, one after the other."""
    return bytes.fromhex("".join(STRING.findall(argument)).replace("\\x", ""))


def descriptor_of(argument: str) -> int:
    """Returns the number of a descriptor."""
    return int(argument.partition("<")[0])


UNTRACED = 78
LINE = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>.*)")
RESUMED = re.compile(r"<\.\.\. \w+ resumed>")
STRING = re.compile(r'["<]((?:\\x[0-9a-f]{2})*)[">]')
SIGNS = re.compile(r", |[{}\[\]()]")
