"""Printing for people: tables, and progress while something takes long."""

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
    encoding = sys.stdout.encoding or "utf-8"
    print(line.encode(encoding, "replace").decode(encoding))


def hush() -> None:
    """Takes the progress off the terminal, so that it neither mixes with an answer nor wraps it."""
    while _shown:
        _shown.pop().stop()


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints rows under headings, aligned, without trailing blanks or escape codes."""
    say(text.table(headings, rows))


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
                status.update(STEPS.get(step, step))

        try:
            yield notice
        finally:
            hush()
