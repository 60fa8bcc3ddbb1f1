"""The commands that change something: they run the engine, under the state directory's lock."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from adapters import config, repositories
from adapters.cli import DONE, REFUSED, UNFINISHED, shapes
from adapters.cli.failures import plain, tell
from adapters.cli.output import count, progress, say
from adapters.cli.scope import here, scope
from adapters.lookup import find_lane
from adapters.wiring import new_request, open_yard
from adapters.yard import create, ending, putting_away
from adapters.yard.yard import Done, known_repository
from domain.errors import NoSuchLane, Refusal
from domain.paths import display, unpack
from domain.states import Active, NeedsReview, Quarantined, Reaped, Reaping, Returning, Undoing, name

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Awaitable, Callable

    from adapters.engine import Request
    from adapters.repositories import Repository
    from adapters.store.reader import Record
    from adapters.yard.yard import Yard
    from domain.events import Mode

    Work = Callable[[Yard, Request], Awaitable[int]]
    Listener = Callable[[str, str], None]

RESIDUAL = ("residual", "what is to be deleted could not be deleted whole")


def engine(arguments: Namespace, work: Work, listener: Listener | None = None) -> int:
    """Opens the yard, tells what could not be driven on, and runs the work in it.

    `listener` hears of every moment between two steps, in place of the terminal.
    """
    settings = config.load(arguments.state_dir)
    _require_beginning(arguments, settings.store)

    async def session() -> int:
        with progress(arguments.json) as shown:
            async with open_yard(settings, notice=listener or shown) as (yard, stopped):
                for lane, error in stopped.items():
                    message = f"lane {lane} could not be driven on: {error}"
                    tell(arguments, "not_recovered", message, {"lane": lane}, UNFINISHED)
                return await work(yard, new_request(settings))

    return trio.run(session)


def _require_beginning(arguments: Namespace, store: bytes) -> None:
    """Refuses what is refused wherever nothing is recorded yet, before a state directory is made for it.

    Raises NotARepository, NoSuchLane.
    """
    try:
        os.lstat(store)
    except FileNotFoundError:
        if arguments.command == "create":
            repositories.find(here(arguments))
        elif getattr(arguments, "lane", None) is not None:
            scope(arguments)
            raise NoSuchLane(arguments.lane) from None


def lane(yard: Yard, arguments: Namespace) -> tuple[Record, Repository]:
    """Returns the row of the lane that is meant, and its repository. Raises NoSuchLane, AmbiguousLane."""
    row = find_lane(yard.reader.lanes(), scope(arguments), arguments.lane)
    repository = known_repository(yard.reader, unpack(str(row["repository"])))
    assert repository is not None
    return row, repository


def answer(yard: Yard, arguments: Namespace, done: Done, sentence: str) -> int:
    """Prints what has become of the lane, and returns the exit code."""
    row = next((row for row in yard.reader.lanes() if row["id"] == done.lane_id), None)
    if row is None:
        return _never_came_to_be(arguments, done)
    stuck = isinstance(done.lane, Undoing | Returning | Reaping) and row["owed"] is None
    problem = done.problem or (RESIDUAL if stuck else None)
    unfinished = stuck or isinstance(done.lane, NeedsReview) or row["owed"] is not None
    if problem is not None:
        code, reason = problem
        details = {"lane": row["id"], "state": row["state"], "reason": reason}
        message = f"{plain(code, reason)}. {_ending(row, stuck=stuck)}"
        return tell(arguments, code, message, details, UNFINISHED if unfinished else REFUSED)
    if arguments.json:
        say(shapes.encoded(shapes.lane(row) | {"warnings": list(done.warnings)}))
    else:
        say(sentence)
        for warning in done.warnings:
            say(f"note: {warning}")
    warned = isinstance(done.lane, Quarantined) and bool(done.warnings)
    return UNFINISHED if unfinished or warned else DONE


def _never_came_to_be(arguments: Namespace, done: Done) -> int:
    """Tells of a lane that has no row: its creation is undone, or what one had left is deleted."""
    if done.problem is None:
        shape = {"id": done.lane_id, "state": name(done.lane), "warnings": []}
        say(shapes.encoded(shape) if arguments.json else "what was left of a failed creation is deleted")
        return DONE
    code, reason = done.problem
    details = {"lane": done.lane_id, "state": name(done.lane), "reason": reason}
    message = f"{plain(code, reason)}. Everything was undone; no worktree, branch or directory is left."
    return tell(arguments, code, message, details, REFUSED)


def _ending(row: Record, *, stuck: bool) -> str:
    if stuck:
        return "What is left is tried again by 'laneyard sweep --apply'."
    if row["state"] == "needs-review":
        return f"Nothing more was deleted; 'laneyard review {row['slug']}' shows the ways out."
    return f"The lane is {row['state']}, as it was before."


def run_create(arguments: Namespace) -> int:
    """Makes a lane and prints its path."""

    async def work(yard: Yard, request: Request) -> int:
        repository = await yard.repository(here(arguments))
        wish = create.Wish(
            name=arguments.name,
            base=arguments.base,
            parent=arguments.parent,
            branch=arguments.branch,
            owner=arguments.owner,
        )
        done = await create.create(yard, repository, wish, request)
        place = getattr(done.lane, "place", None)
        return answer(yard, arguments, done, display(place.path) if place else "")

    return engine(arguments, work)


def run_snapshot(arguments: Namespace) -> int:
    """Captures a lane."""

    async def work(yard: Yard, request: Request) -> int:
        row, _ = lane(yard, arguments)
        done = await putting_away.snapshot(yard, row, request)
        assert isinstance(done.lane, Active | Quarantined | NeedsReview)
        taken = done.lane.record.snapshots[-1]
        size = f"{count(taken.entries, 'entry')}, {count(taken.bytes, 'byte')}"
        return answer(yard, arguments, done, f"snapshot {taken.id} of {row['slug']}: {size}, verified")

    return engine(arguments, work)


def run_remove(arguments: Namespace) -> int:
    """Puts a lane into quarantine, and reaps it if asked to."""
    return engine(arguments, removal(arguments))


def removal(arguments: Namespace) -> Work:
    """Returns the work of `remove`."""

    async def work(yard: Yard, request: Request) -> int:
        row, repository = lane(yard, arguments)
        mode: Mode = "force" if arguments.force else "safe"
        done = await putting_away.remove(
            yard, repository, row, request, mode=mode, delete_branch=arguments.delete_branch
        )
        if arguments.reap and isinstance(done.lane, Quarantined):
            return await _reap_removed(yard, arguments, request)
        edition = getattr(done.lane, "record", None)
        number = edition.edition if edition is not None else 0
        slug = row["slug"]
        sentence = f"{slug} is in quarantine as edition {number}. Bring it back with: laneyard restore {slug}"
        return answer(yard, arguments, done, sentence)

    return work


async def _reap_removed(yard: Yard, arguments: Namespace, request: Request) -> int:
    """Reaps what has just been removed; if that is refused, the lane has moved all the same."""
    row, _ = lane(yard, arguments)
    slug = str(row["slug"])
    try:
        done = await ending.reap(yard, row, request.aside())
    except Refusal as error:
        message = f"{slug} is in quarantine, but was not reaped: {error}"
        return tell(arguments, error.code, message, error.details, UNFINISHED)
    return answer(yard, arguments, done, reaped(slug, done))


def reaped(slug: str, done: Done) -> str:
    """Returns what has become of a lane that was to be reaped."""
    if not isinstance(done.lane, Reaped):
        return f"{slug} is {name(done.lane)}"
    edition = done.lane.record.editions[-1]
    held = "all that it held but what was consented to" if done.warnings else "what it held"
    return (
        f"{slug} is reaped; snapshot {str(edition.snapshot_id)[:8]} has {held}. "
        f"Bring it back with: laneyard restore {slug}"
    )


def run_restore(arguments: Namespace) -> int:
    """Brings a lane back."""

    async def work(yard: Yard, request: Request) -> int:
        row, repository = lane(yard, arguments)
        done = await ending.restore(
            yard, repository, row, request, edition=arguments.edition, snapshot=arguments.snapshot
        )
        place = getattr(done.lane, "place", None)
        where = display(place.path) if place else ""
        return answer(yard, arguments, done, f"{row['slug']} is back at {where}")

    return engine(arguments, work)


def run_reap(arguments: Namespace) -> int:
    """Deletes a quarantined lane."""

    async def work(yard: Yard, request: Request) -> int:
        row, _ = lane(yard, arguments)
        done = await ending.reap(yard, row, request)
        return answer(yard, arguments, done, reaped(str(row["slug"]), done))

    return engine(arguments, work)
