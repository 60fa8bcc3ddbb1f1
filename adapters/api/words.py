"""How single things are put into words for people. It needs nothing but the standard library."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unicodedata import east_asian_width

if TYPE_CHECKING:
    from collections.abc import Sequence

MANY = 5  # things that are named before they are only counted


def legible(text: str) -> str:
    """Returns text without characters that would move the cursor or break the line."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def clock(time: str) -> str:
    """Returns a time of the log, to the second, as people read it."""
    return f"{time[:19].replace('T', ' ')} UTC"


def columns(text: str) -> int:
    """Returns how many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


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
