"""The git door: the only place that starts a process.

Whatever the caller's environment or the repository's configuration say, no hook and no file system monitor
runs, no filter where files are only looked at, nothing is fetched unless the caller says so, nobody is asked
for a password, messages are English, an object id means that object and not its replacement, a commit has
the parents that it names, and reading takes no lock and writes nothing.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakSet

import msgspec

from adapters.git.child import Child
from adapters.git.conversation import Conversation
from adapters.git.errors import GitFailed, GitMissing, GitNotStarted, GitOutputUnreadable
from adapters.git.programs import configured, includes, names_programs, neutral

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Container, Iterator, Mapping


# What the user's own git would ask with, show with and fetch from is not for us to use.
PREDICTABLE = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "GIT_EDITOR": ":",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null/none",  # git says nothing where the file cannot be, and warns where it is
}
# Before git 2.39.4 only the second keeps an object that a partial clone lacks from being fetched.
NO_FETCH = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}


class Location(msgspec.Struct, frozen=True):
    """Where a command works: a git directory and, for what looks at files, the tree that belongs to it.

    Without a git directory git finds it from the tree by itself, which is how a user's own git would.
    """

    git_dir: bytes | None
    work_tree: bytes | None = None

    @property
    def place(self) -> bytes:
        """Returns the directory in which the command runs."""
        place = self.git_dir if self.work_tree is None else self.work_tree
        assert place is not None
        return place

    @property
    def options(self) -> tuple[bytes, ...]:
        """Returns the options that keep git from looking for a repository by itself."""
        if self.git_dir is None:
            return ()
        if self.work_tree is None:
            return (b"--git-dir=" + self.git_dir,)
        return b"--git-dir=" + self.git_dir, b"--work-tree=" + self.work_tree


class Ran(msgspec.Struct, frozen=True):
    """A command that ended: its exit code, all of its output, the beginning and end of standard error."""

    code: int
    out: bytes
    err: bytes


class Git:
    """The git program, with the seconds that reading and writing may take and the bytes it may say."""

    def __init__(
        self,
        program: bytes,
        environment: Mapping[str, str],
        *,
        read_timeout: float = 60.0,
        write_timeout: float = 600.0,
        output_limit: int = 64 << 20,
    ) -> None:
        self.started = 0
        self._program = program
        self._write_environment = clean(environment)
        self._read_environment = {**self._write_environment, "GIT_OPTIONAL_LOCKS": "0"}
        self._timeouts = {False: read_timeout, True: write_timeout}
        self._limit = output_limit
        self._version: tuple[int, ...] | None = None
        self._named: dict[bytes, set[bytes]] = {}

    def retune(self, program: bytes, *, read_timeout: float, write_timeout: float) -> None:
        """Uses another program and other times for what is started from now on."""
        if program != self._program:
            self._program, self._version = program, None
        self._timeouts = {False: read_timeout, True: write_timeout}

    async def run(
        self,
        *arguments: bytes,
        repository: Location,
        stdin: bytes | None = None,
        write: bool = False,
        fetch: bool = False,
        index: bytes | None = None,
        timeout: float | None = None,
        allow: Container[int] = (0,),
    ) -> Ran:
        """Runs one command to its end; with `fetch` it may get what a partial clone has not got yet.

        With an `index` that file, and its lock, is used in place of the worktree's own.
        Raises GitFailed for a code not allowed, or another GitError.
        """
        extra = await self._neutral(repository, write) | ({} if fetch else NO_FETCH)
        if index is not None:
            extra["GIT_INDEX_FILE"] = os.fsdecode(index)
        child = self._start(arguments, repository, write, stdin is not None, extra)
        async with child:
            if stdin is not None:
                child.feed(stdin)
                child.complete_input()
            code = await child.until_ended(self._seconds(timeout, write))
        ran = Ran(code, bytes(child.out), bytes(child.err))
        if code not in allow:
            raise GitFailed(arguments, code, ran.err)
        return ran

    @asynccontextmanager
    async def converse(
        self,
        *arguments: bytes,
        repository: Location,
        write: bool = False,
        timeout: float | None = None,
    ) -> AsyncIterator[Conversation]:
        """Opens a command for questions and answers; leaving the block early ends its whole group."""
        extra = await self._neutral(repository, write) | NO_FETCH
        async with self._start(arguments, repository, write, True, extra) as child:
            yield Conversation(child, arguments, self._seconds(timeout, write))

    async def version(self) -> tuple[int, ...]:
        """Returns git's version as numbers, asked once; raises GitOutputUnreadable for anything else."""
        if self._version is None:
            async with self._start((b"version",), None, False, False) as child:
                code = await child.until_ended(self._timeouts[False])
            if code != 0:
                raise GitFailed((b"version",), code, bytes(child.err))
            self._version = parse_version(bytes(child.out))
        return self._version

    async def _neutral(self, repository: Location, write: bool) -> dict[str, str]:
        """Returns what takes their programs from filters, where files are looked at, and from hooks.

        Git has no option for all filters nor, since 2.54, for all hooks: each is named. A file that a filter
        would have cleaned then looks modified, which is the safe mistake.
        """
        looks = repository.git_dir is not None and repository.work_tree is not None
        if not (looks or write):
            return {}
        text = configured(self._program, self._write_environment, repository.git_dir)
        if text is not None and not names_programs(text):
            return {}
        if text is None or includes(text):  # what git reads then depends on more than these files
            return neutral(await self._names(repository), filters=looks)
        if text not in self._named:
            self._named = {text: await self._names(repository)}
        return neutral(self._named[text], filters=looks)

    async def _names(self, repository: Location) -> set[bytes]:
        arguments = (b"config", b"--null", b"--name-only", b"--get-regexp", rb"^(filter|hook)\.")
        async with self._start(arguments, repository, False, False) as child:
            code = await child.until_ended(self._timeouts[False])
        if code not in (0, 1):  # 1: there are none
            raise GitFailed(arguments, code, bytes(child.err))
        return set(bytes(child.out).split(b"\0")[:-1])

    def _start(
        self,
        arguments: tuple[bytes, ...],
        repository: Location | None,
        write: bool,
        talks: bool,
        extra: Mapping[str, str] = NO_FETCH,
    ) -> Child:
        options = repository.options if repository else ()
        place = repository.place if repository else b"/"
        command = (self._program, *ALWAYS, *(WRITING if write else ()), *options, *arguments)
        # Not in a thread: the start holds the interpreter's lock until the child executes, wherever it is.
        try:
            process = subprocess.Popen(
                command,
                cwd=place,
                env={**(self._write_environment if write else self._read_environment), **extra},
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                pass_fds=_HELD.get() if write else (),
            )
        except OSError as error:
            kind = GitMissing if error.filename == self._program else GitNotStarted
            raise kind(arguments, error) from error
        self.started += 1
        with _GATE:
            _STARTED.add(process)
        try:
            return Child(process, arguments, self._limit)
        except BaseException:
            abandon(process)
            raise

    @contextmanager
    def holding(self, descriptor: int) -> Iterator[None]:
        """Lets what writes until the end of the block, in this task, keep a lock's descriptor open as well.

        A git that outlives us goes on writing: whoever comes after us must not get the lock before it ends.
        """
        token = _HELD.set((*_HELD.get(), descriptor))
        try:
            yield
        finally:
            _HELD.reset(token)

    def _seconds(self, timeout: float | None, write: bool) -> float:
        return self._timeouts[write] if timeout is None else timeout


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment without what could redirect git, and with what makes it predictable."""
    foreign = ("GIT_", "SSH_ASKPASS")
    kept = {name: value for name, value in environment.items() if not name.startswith(foreign)}
    return kept | PREDICTABLE


def parse_version(output: bytes) -> tuple[int, ...]:
    """Returns the numbers of `git version`; raises GitOutputUnreadable."""
    found = re.match(rb"git version (\d+(?:\.\d+)+)", output)
    if found is None:
        raise GitOutputUnreadable("git version", output)
    return tuple(int(number) for number in found[1].split(b"."))


def abandon(process: subprocess.Popen[bytes]) -> None:
    """Ends a process group that cannot be watched, and collects its leader."""
    with process, suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def abandon_all() -> None:
    """Ends every process group that this process has started and not seen the end of: it is about to exit.

    Nothing of what they were to do has been written down, so the next start does it again.
    """
    with _GATE:
        running = [each for each in _STARTED if each.returncode is None]
    for process in running:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


_HELD: ContextVar[tuple[int, ...]] = ContextVar("held", default=())  # locks of this task
_GATE = Lock()  # over what was started: each repository of a service has a thread of its own
_STARTED: WeakSet[subprocess.Popen[bytes]] = WeakSet()

# Hooks and monitors are programs of the repository's owner, and need not be ours.
ALWAYS = (b"-c", b"core.hooksPath=/dev/null", b"-c", b"core.fsmonitor=false")
# What we report as written must survive a power cut; housekeeping is not for us to start behind a command.
WRITING = (b"-c", b"core.fsync=all", b"-c", b"gc.auto=0", b"-c", b"maintenance.auto=false")
