"""What can go wrong between us and git, one type for each thing that a caller would treat differently."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

TOLD = 4096  # bytes of standard error that travel with an exception; fits a log line and an event


class GitError(Exception):
    """Any failure to get an answer from git or from its files; what git did before it is unknown."""


class GitCallError(GitError):
    """A call of git that gave no answer; carries its arguments."""

    def __init__(self, arguments: Sequence[bytes], message: str) -> None:
        self.arguments = tuple(arguments)
        super().__init__(f"{spelled(self.arguments)}: {message}")


class GitFailed(GitCallError):
    """Git ended with a code that the caller did not allow; a negative code is the signal that ended it."""

    def __init__(self, arguments: Sequence[bytes], code: int, err: bytes) -> None:
        self.code = code
        self.err = shortened(err, TOLD)
        super().__init__(arguments, f"{ending(code)}{reason(self.err)}")

    def says(self, text: bytes | str) -> bool:
        """Returns whether git's standard error, as far as it was kept, contains the text."""
        return (text.encode() if isinstance(text, str) else text) in self.err


class GitTimedOut(GitCallError):
    """Git had not answered in the time given, and its whole process group was ended."""

    def __init__(self, arguments: Sequence[bytes], seconds: float) -> None:
        self.seconds = seconds
        super().__init__(arguments, f"no answer within {seconds:g} seconds")


class GitTalksTooMuch(GitCallError):
    """Git wrote more than the limit of bytes, and its whole process group was ended."""

    def __init__(self, arguments: Sequence[bytes], limit: int) -> None:
        self.limit = limit
        super().__init__(arguments, f"more than {limit} bytes of output")


class GitStatusLost(GitCallError):
    """Git ended, but somebody else collected its exit status."""

    def __init__(self, arguments: Sequence[bytes]) -> None:
        super().__init__(arguments, "the exit status was lost (is SIGCHLD ignored?)")


class GitNotStarted(GitCallError):
    """No process was started: the directory to run in, or what a process needs, is not there."""

    def __init__(self, arguments: Sequence[bytes], error: OSError) -> None:
        self.errno = error.errno
        super().__init__(arguments, f"not started: {error}")


class GitMissing(GitNotStarted):
    """The git program is not there or cannot be executed."""


class GitOutputUnreadable(GitError):
    """Git's output does not have the documented form; names the record."""

    def __init__(self, what: str, record: bytes) -> None:
        self.what = what
        self.record = record[:TOLD]
        super().__init__(f"{what}: cannot read {readable(record[:200])!r}")


class IndexUnreadable(GitError):
    """An index file that is damaged or of a form unknown to us."""


class RegistrationUnreadable(GitError):
    """A worktree's registration, or the repository around it, that cannot be read or makes no sense."""

    def __init__(self, path: bytes, why: str) -> None:
        self.path = path
        self.why = why
        super().__init__(f"{readable(path)}: {why}")


class ForeignLock(GitError):
    """The worktree is locked for a reason that is not ours."""

    def __init__(self, reason: bytes) -> None:
        self.reason = reason
        super().__init__(f"locked: {readable(reason) or 'no reason given'}")


def shortened(data: bytes, limit: int) -> bytes:
    """Returns the data, or its first and last part where it is longer than the limit in bytes."""
    if len(data) <= limit:
        return data
    half = (limit - len(CUT)) // 2
    return data[:half] + CUT + data[-half:]


def readable(data: bytes) -> str:
    """Returns the bytes as text for people."""
    return data.decode("utf-8", "backslashreplace")


def spelled(arguments: Sequence[bytes]) -> str:
    """Returns the call as people write it, cut after a line's worth."""
    line = readable(b" ".join((b"git", *arguments)))
    return line if len(line) <= 200 else line[:200] + "…"


def ending(code: int) -> str:
    """Returns how a process ended, in words."""
    if code >= 0:
        return f"ended with {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


def reason(err: bytes) -> str:
    """Returns what git calls fatal, else the last line of standard error, after a colon; or nothing."""
    lines = [line for line in err.split(b"\n") if line.strip()]
    fatal = [line for line in lines if line.startswith(b"fatal: ")]  # fast-import says more after it
    told = (fatal or lines)[-1:]
    return f": {readable(told[0])}" if told else ""


CUT = b"\n[...]\n"
