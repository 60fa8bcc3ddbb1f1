"""`laneyard replay`: a service is asked where one runs, else this process reads the log. Nothing is done."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from adapters.cli import DONE, asking, thin
from adapters.cli.output import flush, say
from adapters.client.connection import Response
from adapters.client.targets import quoted, target

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from adapters.cli.asking import Service
    from adapters.store.reader import Reader
    from projections.replay import Step

OK = 200


def run_replay(arguments: Namespace) -> int:
    """Prints what each event has made of a lane, or what a recovery would do next.

    Raises a Refusal, StoreError, and Misused where nobody could press a key.
    """
    if arguments.step:
        _require_terminal()
    # Whoever is stepped through takes his time, and a service would not wait for him.
    code = None if arguments.step else asking.over(arguments, _asked)
    return _read(arguments) if code is None else code


def _require_terminal() -> None:
    """Raises Misused where nobody could press a key."""
    if not all(each is not None and each.isatty() for each in (sys.stdin, sys.stdout)):
        from adapters.cli.parser import Misused

        raise Misused("--step needs a terminal to read from and to print to", "usage: laneyard replay LANE")


def _asked(service: Service) -> int:
    arguments = service.arguments
    lane = service.resolve(arguments.lane, undone=True)
    if isinstance(lane, int):
        return lane
    to = None if arguments.to is None else str(arguments.to)
    address = f"/v1/lanes/{quoted(lane)}"
    if arguments.dry_drive:
        return service.tell(service.get(f"{address}/dry-drive", to=to))
    media = asking.NDJSON if arguments.json else asking.TEXT
    headers = {"Accept": media, "Laneyard-Client": service.client}
    incoming = service.connection.stream("GET", target(f"{address}/replay", to=to), headers)
    if incoming.status != OK:
        return service.tell(Response(incoming.status, incoming.headers, b"".join(incoming)))
    for lines in _whole_lines(iter(incoming)):
        thin.write(lines)
    flush()
    return DONE


def _whole_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yields pieces that end where a line does."""
    rest = b""
    for piece in pieces:
        lines, end, rest = (rest + piece).rpartition(b"\n")
        yield lines + end


def _read(arguments: Namespace) -> int:
    """Does the same from the log itself."""
    from adapters.api import replaying, resolve
    from adapters.cli.reading import open_reader
    from adapters.cli.scope import scope
    from adapters.cli.telling import told
    from adapters.cli.whereabouts import near
    from domain.errors import NoSuchLane

    reader = open_reader(arguments)
    if reader is None:
        scope(arguments)
        raise NoSuchLane(arguments.lane)
    with reader:
        lane = resolve.find(reader, arguments.lane, scope(arguments), near(), undone=True).id
        if arguments.dry_drive:
            return told(arguments, replaying.dry_drive(reader, lane, arguments.to))
        end = replaying.last(reader, lane, arguments.to)[1].position
        if arguments.step:
            return _step(arguments, reader, lane, end)
        for step in replaying.steps(reader, lane, end):
            _print(arguments, step)
    return DONE


def _print(arguments: Namespace, step: Step) -> None:
    from adapters.api import replaying

    told = replaying.step_json(step).decode() if arguments.json else replaying.step_text(step)
    say(told.removesuffix("\n"))


def _step(arguments: Namespace, reader: Reader, lane: str, end: int) -> int:
    """Prints a step at a time, and asks after each where to go on."""
    from adapters.api import replaying

    wanted: int | None = 0
    while wanted is not None:
        start, wanted = wanted, None
        for step in replaying.steps(reader, lane, end):
            position = step.event.position
            if position < start:
                continue
            _print(arguments, step)
            said = _ask(position)
            if said is None:
                return DONE
            if said <= position:  # back: a state is known only from the beginning
                wanted = said
                break
            start = said
    return DONE


def _ask(position: int) -> int | None:
    """Returns the position from which on to show the next event, or None to end."""
    while True:
        flush()
        try:
            said = input("Enter or n: next, a position: there, q: end > ").strip()
        except EOFError:
            return None
        if said in ("", "n"):
            return position + 1
        if said == "q":
            return None
        if said.isascii() and said.isdigit() and len(said) < 17:
            return int(said)
