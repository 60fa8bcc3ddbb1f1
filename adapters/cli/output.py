"""Printing for people: tables, and progress while something takes long."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

WIDE = 500  # columns of a "terminal" that is a pipe: what reads it wraps for itself

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


def say(text: str = "") -> None:
    """Prints a line; what the terminal cannot show is replaced."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding))


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints rows under headings, aligned."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        shown.add_column(heading, overflow="fold")
    for row in rows:
        shown.add_row(*(Text("" if cell is None else legible(str(cell))) for cell in row))
    console = Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)
    console.print(shown)


def legible(text: str) -> str:
    """Returns text without characters that would move the cursor or break the line."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str, str], None]]:
    """Yields a listener that shows what is being done, on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield lambda moment, step: None
        return
    from rich.console import Console

    with Console(stderr=True).status("looking") as status:

        def notice(moment: str, step: str) -> None:
            if moment == "before-effect":
                status.update(WORDS.get(step, step))

        yield notice
