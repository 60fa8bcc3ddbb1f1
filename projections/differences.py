"""What an event has changed in a lane, field by field, under names that stay the same from state to state."""

from collections.abc import Iterable, Iterator

import msgspec

from domain.evidence import Ignored, Obstacle, Place, Snapshot
from domain.restore import resting
from domain.states import Edition, Lane, Leaving, Nowhere, Reaped, Returning
from projections.lanes import where

Value = str | int | bool | tuple[str, ...] | None

_ABOVE = ("home", "of", "path")  # told as what they are: the state beneath, and where the lane is
_SAME = ("lane", "repository")  # of a record: the same in all of a life


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One field: what it was and is; or, where it only grew, what was `added`. Paths are packed.

    `gone` says that the state after has no such field: it is over with what it was part of.
    """

    field: str
    before: Value = None
    after: Value = None
    added: tuple[str, ...] = ()
    gone: bool = False


def changes(before: Lane, after: Lane) -> tuple[Change, ...]:
    """Returns what differs, in the order of the fields; what has gone comes last."""
    old, new = _fields(before), _fields(after)
    changed = (_change(name, old.get(name), value) for name, value in new.items() if name in old or value)
    gone = (
        Change(field=name, before=_shown(value), gone=True)
        for name, value in old.items()
        if name not in new and value
    )
    return (*filter(None, changed), *gone)


def _change(name: str, before: object, after: object) -> Change | None:
    if before is after or before == after:
        return None
    if isinstance(after, tuple) and after and _grew(before, after):
        more = after[len(before) if isinstance(before, tuple) else 0 :]
        return Change(field=name, added=tuple(map(_item, more)))
    return Change(field=name, before=_shown(before), after=_shown(after))


def _grew(before: object, after: tuple[object, ...]) -> bool:
    return before is None or (isinstance(before, tuple) and after[: len(before)] == before)


def _fields(lane: Lane) -> dict[str, object]:
    """Returns everything that is true of a lane; beneath a journal that is open, also of where it began."""
    if isinstance(lane, Nowhere):
        return {}
    beneath = getattr(lane, "home", None) or getattr(lane, "of", None)
    found = _fields(beneath) if beneath is not None else {}
    place = _place(lane)
    found["path"] = None if isinstance(lane, Reaped) else where(lane)  # its last place is in its editions
    if place is not None:
        found |= {"registration": place.admin, "directory": _directory(place)}
    return found | dict(_flat(lane, ""))


def _place(lane: Lane) -> Place | None:
    """Returns which directory the lane's tree is, as far as it is known."""
    match lane:
        case Leaving(plan=plan):
            return plan.place
        case Returning(place=None, home=home) if not isinstance(home, Reaped):
            return resting(home)
        case _:
            doomed = getattr(lane, "demolition", None)
            found = getattr(lane, "place", None) or getattr(doomed, "place", None)
            return found if isinstance(found, Place) else None


def _directory(place: Place) -> str:
    identity = place.identity
    born = "" if identity.born_ns is None else f", born {identity.born_ns}"
    return f"inode {identity.inode} of device {identity.device}{born}"


def _flat(part: msgspec.Struct, prefix: str) -> Iterator[tuple[str, object]]:
    for name in part.__struct_fields__:
        value = getattr(part, name)
        if name == "record":
            yield from ((each, kept) for each, kept in _flat(value, "") if each not in _SAME)
        elif (name in _ABOVE and not prefix) or name == "place":
            continue
        elif isinstance(value, Place):
            yield prefix + name, value.path
        elif isinstance(value, msgspec.Struct) and not isinstance(value, Snapshot):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _shown(value: object) -> Value:
    match value:
        case None | bool() | int() | str():
            return value
        case tuple():
            return tuple(map(_item, value))
        case _:
            return _item(value)


def _item(value: object) -> str:
    """Returns one of several things by what it is known by."""
    match value:
        case Snapshot(id=known):
            return known
        case Edition(number=number, snapshot_id=kept):
            return f"{number} ({'without a snapshot' if kept is None else f'snapshot {kept}'})"
        case Ignored(path=path):
            return path
        case Obstacle(kind=kind, path=path):
            return f"{kind} {path}"
        case Iterable() if not isinstance(value, str):
            return " ".join(map(str, value))
        case _:
            return str(value)
