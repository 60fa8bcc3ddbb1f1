"""From what went wrong to an exit code and words: one object on standard error under `--json`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from adapters.cli import REFUSED, UNUSABLE
from adapters.files.errors import FilesError
from adapters.git.errors import GitError, GitMissing
from adapters.store.codec import StoreNewer, StoreUnreadable
from adapters.store.connection import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreMissing,
    StoreReadOnly,
    StoreTooNew,
)
from domain.errors import Refusal

if TYPE_CHECKING:
    from argparse import Namespace

_STORE: tuple[tuple[type[StoreError], str, str], ...] = (
    (StoreFull, "disk_full", "Free some space; nothing was written down, and nothing more was done."),
    (StoreReadOnly, "read_only", "Make the state directory writable, or use another with --state-dir."),
    (StoreTooNew, "journal_too_new", "Update Laneyard; nothing was touched."),
    (StoreNewer, "journal_too_new", "Update Laneyard; nothing was touched."),
    (StoreCorrupt, "journal_corrupt", "Restore the log from a backup; nothing was touched."),
    (StoreUnreadable, "journal_corrupt", "'laneyard verify' names every such event; nothing was touched."),
    (StoreBusy, "store_busy", "Another program holds the log; try again."),
    (StoreMissing, "no_store", "Nothing has been recorded here yet."),
    (StoreError, "store_failed", ""),
)


def guarded(arguments: Namespace) -> int:
    """Runs the command; whatever is refused or cannot be done is told, and becomes an exit code."""
    from adapters.cli.dispatch import run
    from adapters.wiring import StateLocked

    try:
        return run(arguments)
    except Refusal as error:
        return tell(arguments, error.code, str(error), error.details, REFUSED)
    except StateLocked as error:
        return tell(arguments, error.code, str(error), error.details, UNUSABLE)
    except StoreError as error:
        code, remedy = next((code, more) for kind, code, more in _STORE if isinstance(error, kind))
        return tell(arguments, code, f"the log cannot be used: {error}. {remedy}".strip(), {}, UNUSABLE)
    except GitMissing as error:
        return tell(arguments, "git_missing", f"{error}. Install git, or set git.program.", {}, UNUSABLE)
    except (GitError, FilesError) as error:
        return tell(
            arguments, "git_failed" if isinstance(error, GitError) else "io_failed", str(error), {}, REFUSED
        )
    except OSError as error:
        return tell(arguments, "io_failed", str(error), {}, UNUSABLE)


def tell(arguments: Namespace, code: str, message: str, details: dict[str, object], exit_code: int) -> int:
    """Prints an error and returns the exit code."""
    message = message.encode("utf-8", "replace").decode()
    message = message[:1].upper() + message[1:]
    if arguments.json:
        shown = {"code": code, "message": message, "details": details}
        sys.stderr.write(msgspec.json.encode(shown, enc_hook=str).decode() + "\n")
    else:
        sys.stderr.write(f"laneyard: {message} [{code}]\n")
    return exit_code
