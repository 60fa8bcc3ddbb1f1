"""One running child process: its three pipes, its end, and the end of its whole process group.

Everything is driven by the caller's task on one epoll set. Trio's own process support spends a thread on
the start and a task on each pipe, which is a noticeable part of what a short git command costs.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Protocol, Self

import trio

from adapters.git.errors import CUT, GitStatusLost, GitTalksTooMuch, GitTimedOut

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType


class Process(Protocol):
    """What is needed of a process just started as the leader of its own group, with unbuffered pipes."""

    pid: int
    returncode: int | None
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None


class Ends:
    """The first and the last bytes of a stream of any length."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._head = b""
        self._tail = b""
        self._cut = False

    def add(self, data: bytes) -> None:
        """Takes the next bytes of the stream."""
        room = self._kept - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > self._kept:
            self._cut = True
            self._tail = self._tail[-self._kept :]

    def __bytes__(self) -> bytes:
        return self._head + (CUT if self._cut else b"") + self._tail


class Child:
    """A child process that does not outlive its `async with` block; its output gathers in `out` and `err`."""

    def __init__(self, process: Process, arguments: Sequence[bytes], limit: int) -> None:
        self.out = bytearray()
        self.err = Ends(KEPT)
        self.code: int | None = None
        self._chunk = CHUNK
        self._process = process
        self._arguments = arguments
        self._limit = limit
        self._input = memoryview(b"")
        self._input_complete = False
        self._ready: dict[int, Callable[[], None]] = {}
        self._epoll = select.epoll()
        self._end = self._watch_end(process.pid)
        self._watch(process.stdout, self._read_out)
        self._watch(process.stderr, self._read_err)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)

    @property
    def pid(self) -> int:
        """Returns the process's id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Returns whether the process has ended, and all that it wrote has been read."""
        return self.code is not None

    @property
    def hears(self) -> bool:
        """Returns whether standard input is still open at both ends."""
        return self._process.stdin is not None and not self._process.stdin.closed

    @property
    def speaks(self) -> bool:
        """Returns whether more output may come."""
        return self._process.stdout is not None and not self._process.stdout.closed

    @property
    def fed(self) -> bool:
        """Returns whether nothing waits to be written."""
        return not self._input

    def widen(self) -> None:
        """Makes room for much output at once, so that the process and we need not take turns so often."""
        if self.speaks:
            assert self._process.stdout is not None
            with suppress(OSError):  # a user may have too many such pipes, and a small one is only slower
                fcntl.fcntl(self._process.stdout.fileno(), fcntl.F_SETPIPE_SZ, WIDE)
            self._chunk = WIDE

    def expect(self, count: int) -> None:
        """Makes room for an answer of known length: what is asked for is no flood."""
        self._limit = max(self._limit, count + self._chunk)

    def feed(self, data: bytes) -> None:
        """Puts the bytes in the queue for standard input; they are written while `until` waits."""
        if not self.hears:
            return
        if self._input:
            data = bytes(self._input) + data
        elif data:
            self._watch(self._process.stdin, self._write, select.EPOLLOUT)
        self._input = memoryview(data)

    def complete_input(self) -> None:
        """Closes standard input once all that was fed is written."""
        self._input_complete = True
        if self.fed:
            self._drop(self._process.stdin)

    async def until(self, enough: Callable[[], bool], seconds: float) -> None:
        """Moves bytes until there is enough or the process has ended; raises GitTimedOut, GitTalksTooMuch."""
        await trio.lowlevel.checkpoint_if_cancelled()
        with trio.move_on_after(seconds) as scope:
            while not (self.ended or enough()):
                await self._turn()
        if scope.cancelled_caught:
            raise GitTimedOut(self._arguments, seconds)

    async def until_ended(self, seconds: float) -> int:
        """Moves bytes until the process has ended, and returns its exit code, negative for a signal."""
        await self.until(lambda: False, seconds)
        assert self.code is not None
        return self.code

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self.ended:
                with trio.CancelScope(shield=True):
                    await self._kill()
        finally:
            self._close()

    async def _turn(self) -> None:
        await trio.lowlevel.wait_readable(self._epoll)
        for descriptor, _ in self._epoll.poll(0):
            # One handler may have closed the pipe of another that was ready in the same turn.
            if handle := self._ready.get(descriptor):
                handle()

    def _read_out(self) -> None:
        self.out += self._read(self._process.stdout, self._chunk)
        if len(self.out) > self._limit:
            raise GitTalksTooMuch(self._arguments, self._limit)

    def _read_err(self) -> None:
        self.err.add(self._read(self._process.stderr, CHUNK))

    def _read(self, pipe: IO[bytes] | None, most: int) -> bytes:
        assert pipe is not None
        try:
            data = os.read(pipe.fileno(), most)
        except BlockingIOError:
            return b""
        if not data:
            self._drop(pipe)
        return data

    def _write(self) -> None:
        assert self._process.stdin is not None
        try:
            self._input = self._input[os.write(self._process.stdin.fileno(), self._input[:CHUNK]) :]
        except BrokenPipeError:  # the child stopped listening: its exit code says whether that is an error
            self._input, self._input_complete = memoryview(b""), True
        if self.fed:
            self._unwatch(self._process.stdin)
            if self._input_complete:
                self._drop(self._process.stdin)

    def _finish(self) -> None:
        self._collect()
        # Whatever the process wrote is in the pipes by now, and one read each takes it. Waiting for the end
        # of the streams instead would wait for a daemon that git may have left behind with our pipes.
        for pipe, read in ((self._process.stdout, self._read_out), (self._process.stderr, self._read_err)):
            if pipe is not None and not pipe.closed:
                read()

    def _collect(self) -> None:
        # Popen.wait() answers 0 when the status was lost, which would turn a failure into a success.
        try:
            found = os.waitid(os.P_PIDFD, self._end, os.WEXITED | os.WNOWAIT)
            if found is not None and found.si_code != os.CLD_EXITED:
                # Somebody has killed it, and what it had started goes on writing. As long as it is not
                # collected, its group's number is nobody else's.
                self._signal(signal.SIGKILL)
            ended = os.waitid(os.P_PIDFD, self._end, os.WEXITED)
        except ChildProcessError:
            self._process.returncode = self.code = LOST
            raise GitStatusLost(self._arguments) from None
        assert ended is not None
        status = ended.si_status
        self._process.returncode = self.code = status if ended.si_code == os.CLD_EXITED else -status

    async def _kill(self) -> None:
        self._signal(signal.SIGTERM)
        with trio.move_on_after(PATIENCE):
            await trio.lowlevel.wait_readable(self._end)
        # Not collected yet, so that neither its number nor its group's can be another's; and the rest of
        # the group may have ignored what its leader heeded.
        self._signal(signal.SIGKILL)
        await trio.lowlevel.wait_readable(self._end)
        self._collect()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _watch_end(self, pid: int) -> int:
        try:
            end = os.pidfd_open(pid)
        except ProcessLookupError:
            raise GitStatusLost(self._arguments) from None
        self._epoll.register(end, select.EPOLLIN)
        self._ready[end] = self._finish
        return end

    def _watch(self, pipe: IO[bytes] | None, handle: Callable[[], None], event: int = select.EPOLLIN) -> None:
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
        self._epoll.register(pipe, event)
        self._ready[pipe.fileno()] = handle

    def _unwatch(self, pipe: IO[bytes] | None) -> None:
        if pipe is not None and pipe.fileno() in self._ready:
            del self._ready[pipe.fileno()]
            self._epoll.unregister(pipe)

    def _drop(self, pipe: IO[bytes] | None) -> None:
        if pipe is not None and not pipe.closed:
            self._unwatch(pipe)
            pipe.close()

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            self._drop(pipe)
        self._epoll.close()
        os.close(self._end)


CHUNK = 1 << 16  # what a pipe holds
WIDE = 1 << 20  # what it can be made to hold by anybody
KEPT = 32 << 10  # bytes of standard error, at each end
PATIENCE = 1.0  # seconds between the polite end and the forced one
LOST = 1 << 16  # no exit code can be this
