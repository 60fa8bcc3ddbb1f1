"""Whether everything is in order to work. It looks for itself, also where a service runs."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any

import trio
from eventsourcing.persistence import PersistenceError

from adapters import config
from adapters.api.answers import encoded
from adapters.api.problems import system_words
from adapters.cli import DONE, UNFINISHED
from adapters.cli.output import count, legible, say
from adapters.client.connection import Connection
from adapters.client.wire import ClientError, NoService
from adapters.config import place
from adapters.files.errors import LockHeld
from adapters.files.oslock import OsLock
from adapters.git.errors import GitError
from adapters.snapshots.unfinished import left_about
from adapters.store.connection import sqlite_version
from adapters.store.errors import StoreMissing
from adapters.store.reader import Reader
from adapters.wiring import git_door
from domain.paths import display, pack, unpack

if TYPE_CHECKING:
    from argparse import Namespace

    from adapters.config import Settings

ROOM = 64 << 20  # bytes: below it a snapshot or a backup may not fit any more
GIT_NEEDED = (2, 36)  # `core.fsync`; an older one takes no heed of it, and our refs may not be on the disk
NAMED = 100  # unfinished files
PATIENCE = 5.0  # seconds of silence after which a service is said not to answer


def run_doctor(arguments: Namespace) -> int:
    """Checks whether everything is in order to work."""
    settings = config.load(arguments.state_dir)
    checks = [*_state_checks(settings), *_git_checks(settings), *_store_checks(settings)]
    if arguments.json:
        say(encoded(checks).decode())
    else:
        for each in checks:
            say(f"{'ok ' if each['ok'] else 'BAD'}  {each['check']:<16} {legible(each['message'])}")
        wrong = sum(not each["ok"] for each in checks)
        say(f"{count(wrong, 'check')} failed" if wrong else "everything is in order to work")
    return DONE if all(each["ok"] for each in checks) else UNFINISHED


def _unfinished_checks(common: bytes) -> list[dict[str, Any]]:
    """Names what a killed git has left: harmless, and nobody's to delete who cannot know that it is over."""
    found = left_about(common)
    if not found:
        return []
    named = ", ".join(display(pack(path)) for path in found[:NAMED])
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    whose = "of a git that runs or was killed; what is no lock 'git gc' deletes, within two weeks"
    return [_check("unfinished", True, f"{count(len(found), 'entry')} {whose}: {named}{more}")]


def _check(name: str, ok: bool, message: str) -> dict[str, Any]:
    return {"check": name, "ok": ok, "message": message}


def _state_checks(settings: Settings) -> list[dict[str, Any]]:
    path = os.fsdecode(settings.state_dir)
    if not os.path.isdir(settings.state_dir):
        return [_check("state directory", True, f"{path} does not exist yet; the first command makes it")]
    mode = stat.S_IMODE(os.stat(settings.state_dir).st_mode)
    free = os.statvfs(settings.state_dir)
    room = free.f_bavail * free.f_frsize
    private = "" if mode & 0o077 == 0 else "; others may look into it: chmod 0700"
    return [
        _check("state directory", not private, f"{path}, mode {mode:04o}{private}"),
        _check("free space", room > ROOM, f"{room >> 20} MiB where the log is ({ROOM >> 20} MiB is little)"),
        *_lock_checks(settings),
    ]


def _lock_checks(settings: Settings) -> list[dict[str, Any]]:
    """Looks without waiting: a lock that is held is in order, and whose it is matters."""
    from adapters.processes import holder

    held = False
    try:
        with OsLock(os.path.join(settings.state_dir, b"laneyard.lock")).acquire(0):
            lock = _check("lock", True, "free")
    except LockHeld as error:
        who = holder(error.holder) or "a process that has not said who it is"
        held, lock = True, _check("lock", True, f"held by {who}")
    except OSError as error:
        lock = _check("lock", False, system_words(error))
    return [lock, _service_check(os.path.join(settings.state_dir, place.SOCKET), held=held)]


def _service_check(path: bytes, *, held: bool) -> dict[str, Any]:
    """Asks whoever serves. That nobody answers is wrong only where somebody holds the lock meanwhile."""
    if not os.path.lexists(path):
        return _check("service", True, "not running")
    try:
        with Connection(path) as connection:
            answer = connection.request("GET", "/v1/health", timeout=PATIENCE)
        health = json.loads(answer.body)
        told = f"answers, pid {health['pid']}, {health['status']}, position {health['position']}"
    except NoService as error:
        return _check("service", not held, f"not running, although a socket is there: {error}")
    except ClientError as error:
        return _check("service", False, str(error))
    except (ValueError, KeyError, TypeError):
        return _check("service", False, f"what answers at {os.fsdecode(path)} is no service of ours")
    return _check("service", True, told)


def _git_checks(settings: Settings) -> list[dict[str, Any]]:
    try:
        version = trio.run(git_door(settings).version)
    except GitError as error:
        return [_check("git", False, str(error))]
    shown = ".".join(str(part) for part in version)
    return [_check("git", version >= GIT_NEEDED, f"{shown} (2.36 or newer is needed)")]


def _store_checks(settings: Settings) -> list[dict[str, Any]]:
    checks = [_check("sqlite", True, sqlite_version())]
    try:
        with Reader(settings.store) as reader:
            head, owed = reader.head(), reader.open_journals()
            told = f"{count(head.position, 'event')}, head {head.hash.hex()[:16]}"
            checks.append(_check("log", True, told))
            steps = ", ".join(f"{row['stream']} owes {row['step']}" for row in owed)
            told = f"{steps}; the next command that changes something goes on with it" if owed else "none"
            checks.append(_check("open journals", not owed, told))
            for row in reader.repositories():
                there = os.path.isdir(unpack(str(row["common"])))
                where = display(str(row["root"]))
                checks.append(_check("repository", there, where if there else f"{where} is not there"))
                checks += _unfinished_checks(unpack(str(row["common"]))) if there else []
    except StoreMissing:
        checks.append(_check("log", True, "nothing has been recorded yet"))
    except PersistenceError as error:
        checks.append(_check("log", False, str(error)))
    return checks
