"""Printing for people: lines, tables, errors, and progress while something takes long."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from adapters.api import text
from adapters.api.text import STEPS
from adapters.api.words import clock as clock
from adapters.api.words import count as count
from adapters.api.words import legible as legible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.status import Status

_shown: list[Status] = []  # the progress on the terminal's last line: whoever prints takes it away first


def say(line: str = "") -> None:
    """Prints a line, or several; what the terminal cannot show is replaced."""
    hush()
    if sys.stdout is not None:  # None where it was closed before the program began
        encoding = sys.stdout.encoding or "utf-8"
        print(line.encode(encoding, "replace").decode(encoding))


def write_error(text: str) -> None:
    """Prints an error as it is, where there is a place for it."""
    if sys.stderr is not None:
        sys.stderr.write(text)


def flush() -> None:
    """Sends off what was printed, as long as it can still be told that this failed. Raises OSError."""
    if sys.stdout is not None:
        sys.stdout.flush()


def hush() -> None:
    """Takes the progress off the terminal, so that it neither mixes with an answer nor wraps it."""
    while _shown:
        _shown.pop().stop()


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints rows under headings, aligned, without trailing blanks or escape codes."""
    say(text.table(headings, rows))


@contextmanager
def progress(quiet: bool, first: str = "looking") -> Iterator[Callable[[str, str], None]]:
    """Yields a listener that shows what is being done, on a terminal only."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda moment, step: None
        return
    from rich.console import Console

    with Console(stderr=True).status(first) as status:
        _shown.append(status)

        def notice(moment: str, step: str) -> None:
            if moment == "before-effect" and _shown:
                status.update(STEPS.get(step, step))

        try:
            yield notice
        finally:
            hush()
