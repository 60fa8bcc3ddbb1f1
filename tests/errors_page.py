"""The tables of docs/errors.md, from the code that they are about."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

import adapters.cli.serving  # noqa: F401 (what it imports defines every refusal)
from adapters.api.problems import CODES, OTHERWISE, SYSTEM, UNUSABLES
from adapters.ownership import StateLocked
from domain.errors import Refusal
from domain.review import CAUSES, DETAILS, EXITS

if TYPE_CHECKING:
    from collections.abc import Iterator


def refusals() -> Iterator[str]:
    """Yields every refusal."""
    yield from ("| code | HTTP | what it means | what changes it | details |", "|---|---|---|---|---|")
    waiting, rows = [Refusal], set()
    while waiting:
        refusal = waiting.pop()
        waiting += refusal.__subclasses__()
        if "code" in vars(refusal) and refusal is not Refusal:
            names = ", ".join(f"`{field.name}`" for field in dataclasses.fields(refusal)) or "-"
            what = f"{refusal.status} | {refusal.__doc__} | {refusal.remedy or '-'}"
            rows.add(f"| `{refusal.code}` | {what} | {names} |")
    yield from sorted(rows)


def unusable() -> Iterator[str]:
    """Yields what makes the store or the service unusable."""
    yield from ("| code | exit | HTTP | what it means | what to do |", "|---|---|---|---|---|")
    told = {(code, CODES[outcome], status, why, todo) for _, code, status, outcome, why, todo in UNUSABLES}
    for number, (code, todo) in SYSTEM.items():
        status = 507 if code == "disk_full" else 503
        told |= {(code, 4, status, f"The system: {os.strerror(number)}.", todo)}
    told |= {(OTHERWISE[0], 4, 503, "The system: any other error.", OTHERWISE[1])}
    told |= {(StateLocked.code, 4, 503, str(StateLocked.__doc__), "Try again when it has finished.")}
    yield from (f"| `{row[0]}` | {' | '.join(map(str, row[1:]))} |" for row in sorted(told))


def reviews() -> Iterator[tuple[str, str, list[str]]]:
    """Yields what leads to a review and out of it: name, head and rows of each table."""
    yield (
        "causes",
        "cause | what was found | what mends it",
        [f"`{k}` | {a} | {b}" for k, (a, b) in CAUSES.items()],
    )
    yield (
        "details",
        "detail | cause | what it means",
        sorted(f"`{k}` | {a} | {b}" for k, (a, b) in DETAILS.items()),
    )
    yield (
        "exits",
        "way out | what it does | when it is there",
        [f"{k} | {a} | {b}" for k, (a, b) in EXITS.items()],
    )


def rewritten(page: str) -> str:
    """Returns the page with its tables made anew."""
    tables = {each.__name__: list(each()) for each in (refusals, unusable)}
    for name, head, rows in reviews():
        tables[name] = [f"| {head} |", "|---|---|---|", *(f"| {row} |" for row in rows)]
    for name, lines in tables.items():
        before, start, rest = page.partition(f"<!-- generated: {name} -->\n")
        page = before + start + "\n".join([*lines, "<!-- end -->"]) + rest.partition("<!-- end -->")[2]
    return page
