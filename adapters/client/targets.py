"""What is asked for: paths and words as they stand in a request's first line.

`pack` of `domain.paths` and `quote` of `urllib.parse` do the same, and import `re`;
the tests hold them equal.
"""

from __future__ import annotations

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")


def packed(path: bytes) -> str:
    """Returns the text form of a path, in which bytes that are not UTF-8 and the percent sign are `%XX`."""
    text = path.replace(b"%", b"%25").decode("utf-8", "surrogateescape")
    return "".join(f"%{ord(c) - 0xDC00:02X}" if "\udc80" <= c <= "\udcff" else c for c in text)


def quoted(text: str) -> str:
    """Returns text for a part of a target: everything but plain characters is `%XX`."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in text.encode("utf-8"))


def target(path: str, **query: str | None) -> str:
    """Returns a target; parts of the query that are None are left out."""
    given = "&".join(f"{name}={quoted(value)}" for name, value in query.items() if value is not None)
    return f"{path}?{given}" if given else path
