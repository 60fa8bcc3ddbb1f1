"""Lanes as they are answered: one, or all of them, now or as of an earlier position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import asdict

from adapters.api.answers import Answer
from adapters.api.documents import ChangedLane, Lane, ObservedText
from adapters.api.observed import IgnoredPath, ObservedIgnored, ObservedObstacles, ObservedPaths
from adapters.api.text import table
from adapters.lookup import GONE
from adapters.store.reader import records
from domain import review
from domain.errors import NoSuchPosition
from domain.evidence import Unknown
from domain.formats import LaneBlocked
from domain.naming import short_branch
from domain.paths import display, is_text
from projections import lanes as lanes_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from msgspec import UnsetType

    from adapters.api.documents import Outcome
    from adapters.glances import Glance
    from adapters.store.reader import Reader, Record
    from domain.evidence import Seen

CHANGED = "*"  # after a value that has changed since it was recorded
RECORDED = (
    *("id", "slug", "name", "state", "kind", "branch", "head", "base_ref", "base_commit", "parent", "owner"),
    *("edition", "created_at", "position", "repository", "version"),
)


def lane_document(row: Record, *, glance: Glance | None = None, seen: Seen | None = None) -> Lane:
    """Returns a lane of the table, with what was observed just now, if anything was."""
    return Lane(**lane_fields(row, glance=glance, seen=seen))


def changed_document(row: Record, warnings: Sequence[str], outcome: Outcome) -> ChangedLane:
    """Returns a lane after a command, with what is worth a note."""
    return ChangedLane(**lane_fields(row), warnings=tuple(warnings), outcome=outcome)


def lane_fields(row: Record, *, glance: Glance | None = None, seen: Seen | None = None) -> dict[str, Any]:
    """Returns the fields that every document of a lane begins with."""
    fields: dict[str, Any] = {name: row[name] for name in RECORDED}
    fields |= _path(row["path"])
    if row["blocked"] is not None:
        fields["blocked"] = row["blocked"]
    if row["detail"] is not None:
        fields |= {"cause": review.cause(str(row["detail"])), "detail": row["detail"]}
    if glance is not None:
        fields |= {"present": glance.present, "branch_now": glance.branch_now, "head_now": glance.head_now}
    return fields if seen is None else fields | _observed(seen)


def _path(packed: object) -> dict[str, str | None]:
    """Returns a path to read and, where it is not UTF-8, percent-encoded beside it."""
    if packed is None:
        return {"path": None}
    shape: dict[str, str | None] = {"path": display(str(packed))}
    return shape if is_text(str(packed)) else shape | {"path_encoded": str(packed)}


def _observed(seen: Seen) -> dict[str, object]:
    """Returns what an inspector saw, each value with its time or why it is unknown."""

    def each(kind: Callable[..., object], value: object) -> object:
        return kind(unknown=value.why) if isinstance(value, Unknown) else kind(value=value, at=seen.at)

    return {
        "branch_now": each(ObservedText, seen.branch),
        "head_now": each(ObservedText, seen.head),
        "locked_now": each(ObservedText, seen.locked),
        "changed_now": each(ObservedPaths, seen.changed),
        "untracked_now": each(ObservedPaths, seen.untracked),
        "ignored_now": each(ObservedIgnored, _ignored(seen)),
        "obstacles_now": each(ObservedObstacles, seen.obstacles),
    }


def _ignored(seen: Seen) -> tuple[IgnoredPath, ...] | Unknown:
    if isinstance(seen.ignored, Unknown):
        return seen.ignored
    return tuple(IgnoredPath(**asdict(each)) for each in seen.ignored)


def lanes_at(reader: Reader, position: int) -> list[Record]:
    """Returns the lanes table as it was at a position of the log. Raises NoSuchPosition."""
    last = reader.head().position
    if not 0 <= position <= last:
        raise NoSuchPosition(position, last)
    return records(lanes_table.TABLE, reader.fold(position).table(lanes_table.TABLE))


def chosen(rows: Iterable[Record], key: str | None, *, include_gone: bool) -> list[Record]:
    """Returns the lanes of one repository or of all, in the order of their creation."""
    found = [
        row
        for row in rows
        if (key is None or row["repository"] == key) and (include_gone or row["state"] not in GONE)
    ]
    return sorted(found, key=lambda row: (str(row["created_at"]), str(row["id"])))


def list_lanes(
    rows: Iterable[Record], glances: Mapping[str, Glance] | None, key: str | None, include_gone: bool
) -> Answer:
    """Returns the lanes of one repository or of all, with what was seen of each by its id."""
    seen = glances or {}
    documents = [
        lane_document(row, glance=seen.get(str(row["id"])))
        for row in chosen(rows, key, include_gone=include_gone)
    ]
    return Answer(document=documents, text=lambda: _listed(documents))


def _listed(lanes: Sequence[Lane]) -> str:
    if not lanes:
        return "no lanes; 'laneyard create NAME' makes one"
    rows = [_cells(lane) for lane in lanes]
    text = table(("LANE", "STATE", "BRANCH", "HEAD", "EDITION", "PATH"), rows)
    if any(cell.endswith(CHANGED) for _, _, branch, head, *_ in rows for cell in (branch, head)):
        text += f"\n{CHANGED} as it is now; 'laneyard list --json' has what was recorded beside it"
    blocked = (str(LaneBlocked(each.slug, each.blocked)) for each in lanes if each.blocked)
    waiting = (_waits(each.slug, each.cause) for each in lanes if each.cause)
    return "\n".join((text, *blocked, *waiting))


def _waits(slug: str, cause: review.Cause) -> str:
    """Returns why a lane waits for a person, in a line."""
    return f"{slug} needs review: {review.CAUSES[cause][0]}; see 'laneyard review {slug}' [{cause}]"


def _cells(lane: Lane) -> tuple[str, ...]:
    branch, moved = _current(lane.state, lane.branch, lane.branch_now)
    head, grown = _current(lane.state, lane.head, lane.head_now)
    shown = "(detached)" if branch is None and moved else short_branch(branch) or "-"
    edition, path = str(lane.edition or "-"), lane.path or "-"
    return lane.slug, lane.state, shown + moved, (head or "-")[:12] + grown, edition, path


def _current(state: str, recorded: str | None, now: ObservedText | UnsetType) -> tuple[str | None, str]:
    """Returns what is to be shown, and a mark where that is not what was last recorded.

    Only of a lane that is worked in: one that was put away is meant to have left its branch.
    """
    if state != "active" or now is UNSET or now.value is UNSET or now.value == recorded:
        return recorded, ""
    return now.value, CHANGED
