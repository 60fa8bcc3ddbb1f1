"""Integrity, projections and health."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

import trio
from eventsourcing.persistence import PersistenceError

from adapters import config
from adapters.api.answers import Answer, encoded
from adapters.api.documents import Rebuilt
from adapters.api.problems import system_words
from adapters.cli import DONE, UNFINISHED, UNUSABLE, asking
from adapters.cli.output import count, legible, say
from adapters.cli.telling import told
from adapters.clock import now
from adapters.files.errors import LockHeld
from adapters.files.oslock import OsLock
from adapters.git.errors import GitError
from adapters.ownership import own_state_dir
from adapters.reality import differences
from adapters.store import verify, views
from adapters.store.connection import connect, sqlite_version
from adapters.store.errors import StoreMissing
from adapters.store.journal import Journal
from adapters.store.reader import Reader
from adapters.wiring import git_door
from domain.paths import display, unpack

if TYPE_CHECKING:
    from argparse import Namespace

    from adapters.config import Settings
    from adapters.reality import Difference

ROOM = 64 << 20  # bytes: below it a snapshot or a backup may not fit any more
GIT_NEEDED = (2, 36)  # `core.fsync`; an older one takes no heed of it, and our refs may not be on the disk


def run_verify(arguments: Namespace) -> int:
    """Checks the log and its tables; then, apart, what the disk says differs. The exit code tells which."""
    settings = config.load(arguments.state_dir)
    connection = connect(settings.store, read_only=True)
    try:
        findings = list(verify.verify(connection))
        checked = connection.execute("SELECT count(*) FROM event").get
    finally:
        connection.close()
    world = [] if findings else trio.run(_world, settings)
    if arguments.json:
        shape = {"events": checked, "log": findings, "world": world}
        say(encoded(shape).decode())
    else:
        _print_findings(int(checked), findings, world)
    if findings:
        return UNUSABLE
    return UNFINISHED if world else DONE


async def _world(settings: Settings) -> list[Difference]:
    with Reader(settings.store) as reader:
        return [each async for each in differences(git_door(settings), reader, settings.state_dir)]


def _print_findings(checked: int, findings: list[verify.Finding], world: list[Difference]) -> None:
    for each in findings:
        where = f" at position {each.position}" if each.position else ""
        say(f"log: {each.check}{where}: {each.message}")
    if findings:
        say(f"the log is NOT in order: {count(len(findings), 'finding')} in {count(checked, 'event')}")
        say("where only tables are named, 'laneyard rebuild' makes them anew; else restore a copy of the log")
        return
    say(f"the log is in order: {count(checked, 'event')}, the chain holds, every table is what the log says")
    for difference in world:
        say(f"world: {legible(difference.what)}")
    if world:
        say(f"git or the disk is NOT as the log says: {count(len(world), 'difference')}")
    else:
        say("git and the disk are as the log says")


def run_rebuild(arguments: Namespace) -> int:
    """Makes every table anew from the log: by the service where one runs."""
    code = asking.over(arguments, lambda service: service.tell(service.post("/v1/rebuild", {})))
    if code is not None:
        return code
    settings = config.load(arguments.state_dir)
    lock = own_state_dir(settings)
    try:
        if not os.path.exists(settings.store):
            raise StoreMissing(os.fsdecode(settings.store))
        journal = Journal(settings.store, now)
        try:
            journal.maintain(views.rebuild).result()
        finally:
            journal.close()
    finally:
        lock.release()
    answer = Answer(document=Rebuilt(), text="every table is made anew from the log")
    return told(arguments, answer)


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
        _lock_check(settings),
    ]


def _lock_check(settings: Settings) -> dict[str, Any]:
    """Looks without waiting: a lock that is held is in order, and whose it is matters."""
    from adapters.processes import holder

    try:
        with OsLock(os.path.join(settings.state_dir, b"laneyard.lock")).acquire(0):
            return _check("lock", True, "free")
    except LockHeld as error:
        who = holder(error.holder) or "a process that has not said who it is"
        return _check("lock", True, f"held by {who}")
    except OSError as error:
        return _check("lock", False, system_words(error))


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
    except StoreMissing:
        checks.append(_check("log", True, "nothing has been recorded yet"))
    except PersistenceError as error:
        checks.append(_check("log", False, str(error)))
    return checks
