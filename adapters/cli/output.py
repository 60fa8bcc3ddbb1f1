"""Printing for people: tables, and progress while something takes long."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.status import Status

WORDS = {
    "Checkout": "checking out",
    "Unlock": "unlocking",
    "Lock": "locking",
    "Move": "moving",
    "FreeBranch": "freeing the branch",
    "DropBranch": "deleting the branch",
    "Rejoin": "joining the branch",
    "Capture": "taking a snapshot",
    "Apply": "applying the snapshot",
    "Explain": "explaining every entry",
    "Destroy": "deleting",
    "Deregister": "deregistering",
}
MANY = 5  # things that are named before they are only counted


_shown: list[Status] = []  # the progress on the terminal's last line: whoever prints takes it away first


def say(text: str = "") -> None:
    """Prints a line; what the terminal cannot show is replaced."""
    hush()
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding))


def hush() -> None:
    """Takes the progress off the terminal, so that it neither mixes with an answer nor wraps it."""
    while _shown:
        _shown.pop().stop()


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints rows under headings, aligned, without trailing blanks or escape codes."""
    cells = [
        tuple(headings),
        *(tuple("-" if cell is None else legible(str(cell)) for cell in row) for row in rows),
    ]
    widths = [max(columns(cell) for cell in column) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = (cell + " " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True))
        say("  ".join(padded).rstrip())


def columns(text: str) -> int:
    """Returns how many columns of a terminal the text takes."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def legible(text: str) -> str:
    """Returns text without characters that would move the cursor or break the line."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def count(number: int, thing: str) -> str:
    """Returns a number of things: `1 entry`, `2 entries`."""
    if number != 1:
        thing = f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}s"
    return f"{number} {thing}"


def several(names: Sequence[str]) -> str:
    """Returns the first of several names and how many more there are; `none` for none."""
    if not names:
        return "none"
    more = f" and {len(names) - MANY} more" if len(names) > MANY else ""
    return f"{len(names)}: {', '.join(names[:MANY])}{more}"


def clock(time: str) -> str:
    """Returns a time of the log, to the second, as people read it."""
    return f"{time[:19].replace('T', ' ')} UTC"


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str, str], None]]:
    """Yields a listener that shows what is being done, on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield lambda moment, step: None
        return
    from rich.console import Console

    with Console(stderr=True).status("looking") as status:
        _shown.append(status)

        def notice(moment: str, step: str) -> None:
            if moment == "before-effect" and _shown:
                status.update(WORDS.get(step, step))

        try:
            yield notice
        finally:
            hush()
