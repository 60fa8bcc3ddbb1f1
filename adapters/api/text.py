"""Tables and labelled lines as text. It needs nothing but the standard library, so that it loads at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.api.words import columns, legible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STEPS = {  # what is being done, by the effect that does it
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


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Returns rows under headings, aligned, without trailing blanks or escape codes."""
    cells = [tuple(headings), *(tuple(map(cell, row)) for row in rows)]
    widths = [max(map(columns, column)) for column in zip(*cells, strict=True)]
    return "\n".join(_aligned(row, widths) for row in cells)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True))
    return "  ".join(padded).rstrip()


def cell(value: object) -> str:
    """Returns a value as it stands in a table: a dash for none."""
    return "-" if value is None else legible(str(value))


def labelled(label: str, value: object) -> Iterator[str]:
    """Yields a line with a label and a value, if there is one."""
    if value is not None:
        yield f"  {label:<10} {legible(str(value))}"
