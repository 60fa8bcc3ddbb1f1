"""From what went wrong to a problem: a stable code, words, the evidence, and whether anything has changed."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import msgspec
from eventsourcing.persistence import PersistenceError

from adapters.api.answers import NotReached
from adapters.api.bodies import misfit
from adapters.api.documents import Problem
from adapters.api.words import legible
from adapters.files.errors import FilesError, Halfway
from adapters.git.errors import GitError, GitFailed, GitMissing, GitTimedOut
from adapters.ownership import StateLocked
from adapters.store.codec import StoreNewer, StoreUnreadable
from adapters.store.errors import StoreBusy, StoreCorrupt, StoreFull, StoreMissing, StoreReadOnly, StoreTooNew
from adapters.yard.putting_away import ReapRefused
from domain.errors import Refusal

if TYPE_CHECKING:
    from adapters.api.documents import Outcome

PAGE = "https://laneyard.invalid/errors#"  # a name, not a place: `docs/errors.md` is the page
WRITABLE = "Make the state directory writable, or use another with --state-dir."
CANNOT: Outcome = "unavailable"
CODES: dict[Outcome, int] = {"done": 0, "refused": 1, "unfinished": 3, "unavailable": 4}  # of the exit
# What cannot be used: the exception, its code, the HTTP status, the outcome, what it means, and what to do.
# The first that fits counts.
UNUSABLES: tuple[tuple[type[Exception], str, int, Outcome, str, str], ...] = (
    (StoreFull, "disk_full", 507, CANNOT, "The log's disk is full.", "Free some space and try again."),
    (StoreReadOnly, "read_only", 503, CANNOT, "The log cannot be written.", WRITABLE),
    (StoreTooNew, "journal_too_new", 503, CANNOT, "A newer program has written the log.", "Update Laneyard."),
    (
        StoreNewer,
        "journal_too_new",
        503,
        CANNOT,
        "A newer program has written to the log.",
        "Update Laneyard.",
    ),
    (
        StoreCorrupt,
        "journal_corrupt",
        503,
        CANNOT,
        "The file is no log, or is damaged.",
        "Restore a copy of the log.",
    ),
    (
        StoreUnreadable,
        "journal_corrupt",
        503,
        CANNOT,
        "An event is damaged.",
        "'laneyard verify' names each; restore a copy of the log.",
    ),
    (
        StoreBusy,
        "store_busy",
        503,
        CANNOT,
        "Another program holds the log.",
        "Try again when it has finished.",
    ),
    (
        StoreMissing,
        "no_store",
        503,
        CANNOT,
        "There is no log yet.",
        "Nothing has been recorded here so far.",
    ),
    (
        PersistenceError,
        "store_failed",
        503,
        CANNOT,
        "SQLite has answered something else.",
        "'laneyard verify' says what is wrong with the log.",
    ),
    (
        GitMissing,
        "git_missing",
        503,
        CANNOT,
        "The git program is not there or cannot be executed.",
        "Install git, or set git.program in config.toml.",
    ),
    (
        GitTimedOut,
        "git_timed_out",
        504,
        "refused",
        "Git had not answered in the time given.",
        "See git.read_timeout and git.write_timeout in config.toml.",
    ),
    (
        GitError,
        "git_failed",
        502,
        "refused",
        "Git has given no answer, or one that cannot be read.",
        "Mend what git complains of and try again.",
    ),
    (
        Halfway,
        "stopped_halfway",
        503,
        "unfinished",
        "Something was begun that could be neither finished nor undone.",
        "The next command goes on with it once the cause is mended.",
    ),
    (
        FilesError,
        "io_failed",
        409,
        "refused",
        "A file or lock is not as it must be.",
        "Look at what is there.",
    ),
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


def problem(error: Exception) -> Problem | None:
    """Returns what an error means to whoever asked, or None for one that only a bug explains."""
    match error:
        case Refusal():
            return _refused(error)
        case msgspec.ValidationError():  # of what was said: who reads anything else tells it in his own way
            return _refused(misfit(error))
        case ReapRefused(refusal=refusal):
            return made(refusal.code, str(error), refusal.details, "unfinished", 409)
        case NotReached():
            return made(error.code, error.message, error.details, error.outcome, 409)
        case StateLocked():
            return _locked(error)
        case PersistenceError() | GitError() | FilesError():
            return _unusable(error)
        case OSError():
            code, remedy = SYSTEM.get(error.errno or 0, OTHERWISE)
            status = 507 if code == "disk_full" else 503
            return made(code, f"{system_words(error)}. {remedy}", {}, CANNOT, status)
        case _:
            return None


def made(code: str, message: str, details: dict[str, object], outcome: Outcome, status: int) -> Problem:
    """Returns a problem whose words and evidence can be encoded, whatever bytes they came from."""
    evidence = encodable(details)
    assert isinstance(evidence, dict)
    return Problem(
        type=PAGE + code,
        title=code.replace("_", " "),
        status=status,
        detail=begun(message, details),
        code=code,
        outcome=outcome,
        details=evidence,
    )


def begun(message: str, details: dict[str, object]) -> str:
    """Returns a message as one line, with a capital, unless what it begins with is a name or a path."""
    named = any(isinstance(each, str) and each and message.startswith(each) for each in details.values())
    return legible(text(message if named else message[:1].upper() + message[1:]))


def _refused(error: Refusal) -> Problem:
    """Tells a refusal; what a capture met is told as a user meets it, and word by word in the details."""
    reason, message = error.details.get("reason"), str(error)
    if isinstance(reason, str):
        message = message.replace(reason, plain(error.code, reason))
    outcome: Outcome = CANNOT if error.status == 500 else "refused"
    return made(error.code, message, error.details, outcome, error.status)


def plain(code: str, reason: str) -> str:
    """Returns the reason why something was not done, as a user meets it."""
    return FULL if code == "disk_full" else reason


def _unusable(error: PersistenceError | GitError | FilesError) -> Problem:
    """Tells what cannot be used, and what to do, once."""
    row = next(row for row in UNUSABLES if isinstance(error, row[0]))
    _, code, status, outcome, meaning, remedy = row
    reason = str(error).rstrip(".")
    if isinstance(error, StoreMissing):
        reason = f"{meaning.rstrip('.')} at {reason}"
    elif isinstance(error, PersistenceError):
        reason = f"the log cannot be used: {reason}"
    elif isinstance(error, GitFailed) and _is_full(error):
        return made("disk_full", f"{FULL}.", {"reason": reason}, outcome, 507)
    said = remedy.rstrip(".").casefold() in reason.casefold()
    return made(code, f"{reason}." if said else f"{reason}. {remedy}", {}, outcome, status)


def _is_full(error: GitFailed) -> bool:
    """Tells whether git ran out of space; the performers know how it says so."""
    from adapters.performer.world import not_done  # starts slowly, and is seldom needed here

    return not_done("", error).code == "disk_full"


def system_words(error: OSError) -> str:
    """Returns an error of the system with the path that it is about, without Python's ornaments."""
    if error.filename is None:
        return error.strerror or str(error)
    return f"{os.fsdecode(error.filename)}: {error.strerror}"


def _locked(error: StateLocked) -> Problem:
    """Names the process that uses the state directory."""
    from adapters.processes import holder

    who = holder(error.holder)
    named = str(who) if who else "a process that has not said who it is"
    path = error.details["path"]
    message = f"the state directory {path} is in use by {named}. Try again when it has finished."
    return made(error.code, message, {"path": path, "holder": msgspec.to_builtins(who)}, CANNOT, 503)


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
