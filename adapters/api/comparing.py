"""What differs between two positions of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.api.answers import Answer
from adapters.api.documents import ChangedFields, Diff
from adapters.api.lanes import lanes_at
from adapters.api.text import cell
from projections import lanes as lanes_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adapters.store.reader import Reader, Record

COMPARED = tuple(each for each in lanes_table.TABLE.names if each not in ("position", "version"))
NOBODY: Record = dict.fromkeys(COMPARED)


def diff(reader: Reader, before: int, after: int) -> Answer:
    """Returns which lanes differ between two positions, and in what. Raises NoSuchPosition."""
    return compared(before, after, *(lanes_at(reader, position) for position in (before, after)))


def compared(before: int, after: int, earlier: list[Record], later: list[Record]) -> Answer:
    """Returns which lanes differ between the tables of two positions, and in what."""
    old, new = _by_id(earlier), _by_id(later)
    changes = [_change(lane, old.get(lane), new.get(lane)) for lane in sorted({*old, *new})]
    changes = [each for each in changes if each.changed]
    document = Diff(before=before, after=after, lanes=tuple(changes))
    return Answer(document=document, text="\n".join(_lines(changes)))


def _by_id(rows: list[Record]) -> dict[str, Record]:
    return {str(row["id"]): row for row in rows}


def _change(lane: str, before: Record | None, after: Record | None) -> ChangedFields:
    old, new = before or NOBODY, after or NOBODY
    changed = {name: (old[name], new[name]) for name in COMPARED if old[name] != new[name]}
    return ChangedFields(id=lane, slug=str(new["slug"] or old["slug"]), changed=changed)


def _lines(changes: Sequence[ChangedFields]) -> Iterator[str]:
    if not changes:
        yield "no lane differs"
    for each in changes:
        yield each.slug
        for field, (old, new) in each.changed.items():
            yield f"  {field.replace('_', ' '):<12} {cell(old)} -> {cell(new)}"
