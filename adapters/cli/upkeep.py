"""Integrity and projections."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from adapters import config
from adapters.api.answers import Answer, encoded
from adapters.api.documents import Rebuilt
from adapters.cli import DONE, UNFINISHED, UNUSABLE
from adapters.cli.output import count, legible, say
from adapters.cli.telling import told
from adapters.clock import now
from adapters.ownership import own_state_dir
from adapters.reality import differences
from adapters.store import verify, views
from adapters.store.connection import connect
from adapters.store.errors import StoreMissing
from adapters.store.journal import Journal
from adapters.store.reader import Reader
from adapters.wiring import git_door

if TYPE_CHECKING:
    from argparse import Namespace

    from adapters.config import Settings
    from adapters.reality import Difference


NEWER = ": update Laneyard"  # how a finding ends that is no damage, but of a newer program


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
        if all(each.message.endswith(NEWER) for each in findings):
            say("that is no damage, so do not restore an older copy: what is known of the log is in order")
        else:
            say(
                "if only tables are named, 'laneyard rebuild' makes them anew; else restore a copy of the log"
            )
        return
    say(f"the log is in order: {count(checked, 'event')}, the chain holds, every table is what the log says")
    for difference in world:
        say(f"world: {legible(difference.what)}")
    if world:
        say(f"git or the disk is NOT as the log says: {count(len(world), 'difference')}")
    else:
        say("git and the disk are as the log says")


def rebuild(arguments: Namespace) -> int:
    """Makes every table anew from the log, under the state directory's lock."""
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
