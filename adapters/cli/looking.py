"""The commands that only look: a service is asked where one runs, else this process reads the log itself."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from adapters.cli import DONE, asking, thin
from adapters.cli.output import flush
from adapters.client.targets import target
from adapters.client.wire import Lost, NoService, Silent

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from adapters.cli.asking import Service

PAGE = "1000"  # events of a page
OK = 200
ENDLESS = 1e6  # seconds: a log to which nothing is written is no service that has died


def run_list(arguments: Namespace) -> int:
    """Prints the lanes, now or as of a position."""

    def work(service: Service) -> int:
        at = None if arguments.at is None else str(arguments.at)
        gone = "true" if arguments.all else None
        return service.tell(service.get("/v1/lanes", at=at, all=gone, observe="now", **service.scope))

    code = asking.over(arguments, work)
    if code is None:
        from adapters.cli import reading

        return reading.run_list(arguments)
    return code


def run_show(arguments: Namespace) -> int:
    """Prints everything about a lane."""
    code = asking.show(arguments)
    if code is None:
        from adapters.cli import showing

        return showing.run_show(arguments)
    return code


def run_diff(arguments: Namespace) -> int:
    """Prints which lanes differ between two positions, and in what."""
    span = {"from": str(arguments.before), "to": str(arguments.after)}
    code = asking.over(arguments, lambda service: service.tell(service.get("/v1/diff", **span)))
    if code is None:
        from adapters.cli import reading

        return reading.run_diff(arguments)
    return code


def run_log(arguments: Namespace) -> int:
    """Prints the audit log, and with `--follow` goes on with what comes."""
    code = asking.over(arguments, _log)
    if code is None:
        from adapters.cli import reading

        return reading.run_log(arguments)
    return code


def _log(service: Service) -> int:
    """Prints the pages of the log, then follows it if asked to."""
    arguments = service.arguments
    lane = service.resolve(arguments.lane, undone=True) if arguments.lane is not None else None
    if isinstance(lane, int):
        return lane
    if lane is not None:  # this very lane, also where this process has to go on by itself
        arguments.lane, arguments.repository = lane, None
    media = asking.NDJSON if arguments.json else asking.TEXT
    wanted = {"lane": lane, "type": arguments.type}
    after = str(max(0, arguments.after))
    address: str | None = target("/v1/events", after=after, limit=PAGE, **wanted)
    while address is not None:
        page = service.get(address, accept=media)
        if page.status >= 400:
            return service.tell(page)
        thin.write(page.body)
        flush()
        address = _next(page.headers.get("link", ""))
        arguments.after = int(page.headers.get("laneyard-position", arguments.after))
    return _follow(service, media, wanted) if arguments.follow else DONE


def _next(link: str) -> str | None:
    """Returns where a page says that the next one is (RFC 8288)."""
    place, _, relation = link.partition(">")
    return place.removeprefix("<") if 'rel="next"' in relation else None


def _follow(service: Service, media: str, wanted: dict[str, str | None]) -> int:
    """Prints what comes; where the service ends, this process follows the log itself from there."""
    arguments = service.arguments
    address = target("/v1/events/stream", after=str(arguments.after), **wanted)
    headers = {"Accept": media, "Laneyard-Client": service.client}
    with suppress(Lost, NoService, Silent):
        answer = service.connection.stream("GET", address, headers, silence=ENDLESS)
        for line in _lines(iter(answer)) if answer.status == OK else ():
            thin.write(line)
            flush()
            arguments.after = _position(line) or arguments.after
    from adapters.cli import reading

    return reading.run_log(arguments)


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yields whole lines that say something."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line + b"\n" for line in lines if line)


def _position(line: bytes) -> int | None:
    """Returns the position that a line of the log begins with, as JSON or as people read it."""
    digits = line.removeprefix(b'{"position":').lstrip().partition(b",")[0].split()[:1]
    return int(digits[0]) if digits and digits[0].isdigit() else None
