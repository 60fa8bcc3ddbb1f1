"""Old shapes to new: from a raw dict to a raw dict, one step at a time, before anything is decoded.

An upcaster is never edited once it has been released. What is unknown or newer than this program is refused.
"""

from collections.abc import Callable
from typing import Any

from domain.events import BY_TAG

Raw = dict[str, Any]


class UnknownFact(Exception):
    """The log holds a fact that this program does not know."""

    def __init__(self, tag: str, why: str | None = None) -> None:
        self.tag, self.why = tag, why or f"the log holds a fact of an unknown type: {tag!r}"
        super().__init__(f"{self.why}: update Laneyard")


class NewerFact(UnknownFact):
    """The log holds a fact in a shape newer than this program."""

    def __init__(self, tag: str, known: str) -> None:
        super().__init__(tag, f"the log holds {tag!r}, and this program knows no newer than {known!r}")


def _removal_planned_3(raw: Raw) -> Raw:
    """A plan of format 3 recorded no mode, snapshot, or provisioned files: it was a strict safe removal."""
    return raw | {
        "mode": "safe",
        "snapshot_id": None,
        "snapshot_ref": None,
        "snapshot_commit": None,
        "snapshot_tree": None,
        "provisioned_ignored": [],
        "consent": None,
        "evidence": None,
        "delete_branch": False,
    }


def _snapshot_planned_1(raw: Raw) -> Raw:
    """Until then no ignored file was ever captured."""
    return raw | {"apart": []}


def _lane_snapshotted_1(raw: Raw) -> Raw:
    """Until then no snapshot held an ignored file."""
    taken = raw.get("snapshot")
    return raw | {"snapshot": taken | {"ignored": []}} if isinstance(taken, dict) else raw


def _snapshot_applied_1(raw: Raw) -> Raw:
    """Until then a restore set nothing that it could fail to set and go on."""
    return raw | {"differences": []}


UPCASTERS: dict[str, tuple[str, Callable[[Raw], Raw]]] = {
    "removal.planned@3": ("removal.planned@4", _removal_planned_3),
    "snapshot.planned@1": ("snapshot.planned@2", _snapshot_planned_1),
    "lane.snapshotted@1": ("lane.snapshotted@2", _lane_snapshotted_1),
    "restore.applied@1": ("restore.applied@2", _snapshot_applied_1),
}

_CURRENT = {tag.rpartition("@")[0]: tag for tag in BY_TAG}


def upcast(tag: str, raw: Raw) -> tuple[str, Raw]:
    """Returns the current tag and shape of a fact.

    Raises:
        NewerFact: the tag's number is higher than this program knows.
        UnknownFact: nothing is known of the tag.
    """
    while tag not in BY_TAG:
        if tag not in UPCASTERS:
            raise refusal(tag)
        tag, convert = UPCASTERS[tag]
        raw = convert(raw)
    return tag, raw


def refusal(tag: str) -> UnknownFact:
    """Returns why a tag cannot be read."""
    name, _, number = tag.rpartition("@")
    known = _CURRENT.get(name)
    if known is not None and number.isdecimal() and int(number) > int(known.rpartition("@")[2]):
        return NewerFact(tag, known)
    return UnknownFact(tag)
