"""What two looks at a lane differ in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.roundtrip.looking import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.roundtrip.looking import Look

MISSING = "(none)"


class Difference(NamedTuple):
    """One thing that is not as it was; the aspect is what the table of fidelity names."""

    aspect: str
    name: bytes
    before: object
    after: object

    def __str__(self) -> str:
        return f"{self.aspect} {self.name!r}: {_short(self.before)} -> {_short(self.after)}"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) < 300 else text[:300] + "…"


def differences(before: Look, after: Look) -> list[Difference]:
    """Returns everything that differs, in the order of the aspects and the names."""
    found = [each for aspect in before for each in _of(aspect, before[aspect], after[aspect])]
    return sorted(found, key=lambda each: each.aspect)


def _of(aspect: str, before: dict[bytes, object], after: dict[bytes, object]) -> Iterator[Difference]:
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield Difference(_told(aspect, "missing"), name, before[name], MISSING)
        elif name not in before:
            yield Difference(_told(aspect, "unexpected"), name, MISSING, after[name])
        elif before[name] != after[name]:
            yield from _changed(aspect, name, before[name], after[name])


def _told(aspect: str, what: str) -> str:
    return what if aspect == "tree" or what == "times" else aspect


FIELDS = {"kind": "bytes", "mode": "permissions", "data": "bytes", "mtime": "times", "xattrs": "attributes"}


def _changed(aspect: str, name: bytes, before: object, after: object) -> Iterator[Difference]:
    if not isinstance(before, Entry) or not isinstance(after, Entry):
        yield Difference(aspect, name, before, after)
        return
    for field, told in FIELDS.items():
        one, other = getattr(before, field), getattr(after, field)
        if one != other:
            yield Difference(_told(aspect, told), name, f"{field} {one!r}", f"{field} {other!r}")
