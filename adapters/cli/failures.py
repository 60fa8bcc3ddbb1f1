"""From what went wrong to an exit code and words: one object on standard error under `--json`."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec
from eventsourcing.persistence import PersistenceError

from adapters.cli import REFUSED, UNUSABLE
from adapters.cli.output import hush
from adapters.files.errors import FilesError
from adapters.git.errors import GitError, GitFailed, GitMissing, GitTimedOut
from adapters.ownership import StateLocked
from adapters.store.codec import StoreNewer, StoreUnreadable
from adapters.store.errors import StoreBusy, StoreCorrupt, StoreFull, StoreMissing, StoreReadOnly, StoreTooNew
from domain.errors import Refusal

if TYPE_CHECKING:
    from argparse import Namespace

WRITABLE = "Make the state directory writable, or use another with --state-dir."
# What cannot be used: the exception, its code, the exit code, what it means, and what to do. The first
# that fits counts.
UNUSABLES: tuple[tuple[type[Exception], str, int, str, str], ...] = (
    (StoreFull, "disk_full", UNUSABLE, "The log's disk is full.", "Free some space and try again."),
    (StoreReadOnly, "read_only", UNUSABLE, "The log cannot be written.", WRITABLE),
    (StoreTooNew, "journal_too_new", UNUSABLE, "A newer program has written the log.", "Update Laneyard."),
    (StoreNewer, "journal_too_new", UNUSABLE, "A newer program has written to the log.", "Update Laneyard."),
    (
        StoreCorrupt,
        "journal_corrupt",
        UNUSABLE,
        "The file is no log, or is damaged.",
        "Restore a copy of the log.",
    ),
    (
        StoreUnreadable,
        "journal_corrupt",
        UNUSABLE,
        "An event is damaged.",
        "'laneyard verify' names each; restore a copy of the log.",
    ),
    (StoreBusy, "store_busy", UNUSABLE, "Another program holds the log.", "Try again when it has finished."),
    (StoreMissing, "no_store", UNUSABLE, "There is no log yet.", "Nothing has been recorded here so far."),
    (
        PersistenceError,
        "store_failed",
        UNUSABLE,
        "SQLite has answered something else.",
        "'laneyard verify' says what is wrong with the log.",
    ),
    (
        GitMissing,
        "git_missing",
        UNUSABLE,
        "The git program is not there or cannot be executed.",
        "Install git, or set git.program in config.toml.",
    ),
    (
        GitTimedOut,
        "git_timed_out",
        REFUSED,
        "Git had not answered in the time given.",
        "See git.read_timeout and git.write_timeout in config.toml.",
    ),
    (
        GitError,
        "git_failed",
        REFUSED,
        "Git has given no answer, or one that cannot be read.",
        "Mend what git complains of and try again.",
    ),
    (FilesError, "io_failed", REFUSED, "A file or lock is not as it must be.", "Look at what is there."),
)
# What the system answers where no performer has begun.
SYSTEM: dict[int, tuple[str, str]] = {
    errno.ENOSPC: ("disk_full", "Free some space and try again."),
    errno.EDQUOT: ("disk_full", "Your quota is used up: free some space and try again."),
    errno.EROFS: ("read_only", WRITABLE),
    errno.EACCES: ("read_only", WRITABLE),
    errno.EPERM: ("read_only", WRITABLE),
}
OTHERWISE = ("io_failed", "Look at what is there; --state-dir names another state directory.")
# What a recorded reason means to a user, where that is more than the words of git or of the system.
FULL = "the disk is full; free some space and try again"


def guarded(arguments: Namespace) -> int:
    """Runs the command; whatever is refused or cannot be done is told, and becomes an exit code."""
    from adapters.cli.dispatch import run

    try:
        return run(arguments)
    except Refusal as error:
        return _refused(arguments, error)
    except StateLocked as error:
        return _locked(arguments, error)
    except (PersistenceError, GitError, FilesError) as error:
        return _unusable(arguments, error)
    except BrokenPipeError:
        raise  # not the world's answer: whoever read our output has gone
    except OSError as error:
        code, remedy = SYSTEM.get(error.errno or 0, OTHERWISE)
        return tell(arguments, code, f"{system_words(error)}. {remedy}", {}, UNUSABLE)


def _refused(arguments: Namespace, error: Refusal) -> int:
    """Tells a refusal; what a capture met is told as a user meets it, and word by word in the details."""
    reason, message = error.details.get("reason"), str(error)
    if isinstance(reason, str):
        message = message.replace(reason, plain(error.code, reason))
    return tell(arguments, error.code, message, error.details, REFUSED)


def plain(code: str, reason: str) -> str:
    """Returns the reason why something was not done, as a user meets it."""
    return FULL if code == "disk_full" else reason


def _unusable(arguments: Namespace, error: PersistenceError | GitError | FilesError) -> int:
    """Tells what cannot be used, and what to do, once."""
    _, code, exit_code, meaning, remedy = next(row for row in UNUSABLES if isinstance(error, row[0]))
    reason = str(error).rstrip(".")
    if isinstance(error, StoreMissing):
        reason = f"{meaning.rstrip('.')} at {reason}"
    elif isinstance(error, PersistenceError):
        reason = f"the log cannot be used: {reason}"
    elif isinstance(error, GitFailed) and _is_full(error):
        return tell(arguments, "disk_full", f"{FULL}.", {"reason": reason}, exit_code)
    said = remedy.rstrip(".").casefold() in reason.casefold()
    return tell(arguments, code, f"{reason}." if said else f"{reason}. {remedy}", {}, exit_code)


def _is_full(error: GitFailed) -> bool:
    """Tells whether git ran out of space; the performers know how it says so."""
    from adapters.performer.world import not_done  # starts slowly, and is seldom needed here

    return not_done("", error).code == "disk_full"


def system_words(error: OSError) -> str:
    """Returns an error of the system with the path that it is about, without Python's ornaments."""
    if error.filename is None:
        return error.strerror or str(error)
    return f"{os.fsdecode(error.filename)}: {error.strerror}"


def _locked(arguments: Namespace, error: StateLocked) -> int:
    """Names the process that uses the state directory."""
    from adapters.processes import holder

    who = holder(error.holder)
    named = str(who) if who else "a process that has not said who it is"
    path = error.details["path"]
    message = f"the state directory {path} is in use by {named}. Try again when it has finished."
    details = {"path": path, "holder": msgspec.to_builtins(who)}
    return tell(arguments, error.code, message, details, UNUSABLE)


def tell(arguments: Namespace, code: str, message: str, details: dict[str, Any], exit_code: int) -> int:
    """Prints an error and returns the exit code."""
    hush()
    message = text(message[:1].upper() + message[1:])
    if arguments.json:
        shown = {"code": code, "message": message, "details": encodable(details)}
        sys.stderr.write(msgspec.json.encode(shown).decode() + "\n")
    else:
        sys.stderr.write(f"laneyard: {message} [{code}]\n")
    return exit_code


def encodable(value: object) -> object:
    """Returns a value of the evidence as JSON can hold it: file names and arguments may be any bytes."""
    match value:
        case dict():
            return {text(str(name)): encodable(each) for name, each in value.items()}
        case list() | tuple():
            return [encodable(each) for each in value]
        case None | bool() | int() | float():
            return value
        case _:
            return text(str(value))


def text(words: str) -> str:
    """Returns words in which what is not UTF-8 is replaced."""
    return words.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
