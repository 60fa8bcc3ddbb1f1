"""What a person decides: the exits of a review, and the sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.cli import DONE, UNFINISHED, shapes
from adapters.cli.changing import answer, engine, lane, reaped
from adapters.cli.output import clock, legible, say, table
from adapters.cli.scope import scope
from adapters.yard import ending
from domain.errors import WrongState
from domain.paths import display
from domain.states import NeedsReview, Quarantined, name

if TYPE_CHECKING:
    from argparse import Namespace

    from adapters.engine import Request
    from adapters.store.reader import Record
    from adapters.yard.yard import Yard

SHOWN = 20  # paths of a review that are named


def run_review(arguments: Namespace) -> int:
    """Shows what a lane waits for, or takes one of the ways out."""

    async def work(yard: Yard, request: Request) -> int:
        row, repository = lane(yard, arguments)
        if arguments.put_back:
            done = await ending.restore(yard, repository, row, request)
            return answer(yard, arguments, done, f"{row['slug']} is back")
        if arguments.resnapshot:
            done = await ending.resnapshot(yard, row, request)
            return answer(yard, arguments, done, reaped(str(row["slug"]), done))
        if arguments.discard:
            done = await ending.discard(yard, row, request)
            return answer(yard, arguments, done, f"{row['slug']} is discarded")
        return _show_review(yard, arguments, row)

    return engine(arguments, work)


def _show_review(yard: Yard, arguments: Namespace, row: Record) -> int:
    waiting, _ = yard.reader.lane(str(row["id"]))
    if not isinstance(waiting, NeedsReview):
        raise WrongState("reviewed", name(waiting))
    resting = isinstance(waiting.home, Quarantined)
    exits = [each for each in WAYS_OUT if resting or each == "--discard"]
    if arguments.json:
        shape = {"cause": waiting.cause, "reason": waiting.reason, "paths": waiting.paths}
        say(shapes.encoded(shapes.lane(row) | shape | {"count": waiting.count, "exits": exits}))
        return DONE
    say(f"{row['slug']} waits for a person: {waiting.reason} [{waiting.cause}]")
    for path in waiting.paths[:SHOWN]:
        say(f"  {legible(display(path))}")
    if waiting.count > SHOWN:
        say(f"  and {waiting.count - SHOWN} more")
    say("nothing more was deleted; the ways out:")
    for each in exits:
        say(f"  laneyard review {row['slug']} {each:<12}  {WAYS_OUT[each]}")
    return DONE


def run_sweep(arguments: Namespace) -> int:
    """Shows what is due, or does it."""

    async def work(yard: Yard, request: Request) -> int:
        if not arguments.apply:
            return _show_candidates(arguments, ending.candidates(yard, scope(arguments)))
        return _show_swept(arguments, await ending.sweep(yard, scope(arguments), request))

    return engine(arguments, work)


def _show_candidates(arguments: Namespace, found: list[ending.Candidate]) -> int:
    if arguments.json:
        shape = [
            {"lane": each.row["id"], "slug": each.row["slug"], "action": each.action, "until": each.until}
            | {"reason": each.reason}
            for each in found
        ]
        say(shapes.encoded(shape))
        return DONE
    if not found:
        say("nothing to sweep: no lane is in quarantine, and no deletion is unfinished")
        return DONE
    table(("LANE", "WHAT", "WHEN", "WHY"), [_candidate(each) for each in found])
    if any(each.action != "wait" for each in found):
        say("this was a dry run: 'laneyard sweep --apply' does what is due")
    return DONE


def _candidate(each: ending.Candidate) -> tuple[object, ...]:
    what = {"reap": "would be reaped", "retry": "would be tried again"}.get(each.action, "rests")
    when = f"until {clock(each.until)}" if each.until and each.action == "wait" else "now"
    why = f"in quarantine since {clock(str(each.row['since']))}" if each.until else each.reason
    return each.row["slug"], what, when, why


def _show_swept(arguments: Namespace, swept: list[ending.Swept]) -> int:
    troubled = False
    shapes_ = []
    for each in swept:
        problem = each.refused or (each.done.problem if each.done else None)
        troubled = troubled or problem is not None
        state = name(each.done.lane) if each.done else str(each.candidate.row["state"])
        slug = each.candidate.row["slug"]
        shapes_.append({"lane": each.candidate.row["id"], "slug": slug, "state": state, "problem": problem})
        if not arguments.json:
            say(f"{slug} is {state}" + (f": {problem[1]} [{problem[0]}]" if problem else ""))
    if arguments.json:
        say(shapes.encoded(shapes_))
    elif not swept:
        say("nothing was due")
    return UNFINISHED if troubled else DONE


WAYS_OUT = {
    "--put-back": "restore it from the quarantine",
    "--resnapshot": "capture it as it is now, and reap it",
    "--discard": "delete it, with a recorded consent",
}
