"""Patterns as in a `.gitignore` at the lane's root, over paths of bytes.

As in gitignore(5): without a slash before its end a pattern matches at any depth, with one from the root; a
slash at the end matches only directories; what is matched is matched with all below it; the last pattern
that matches counts, and `!` takes back. Unlike git's, a comment or an empty pattern is refused, and what is
below a directory can be taken back. Matching takes time linear in the path for each `*`.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # as in `typing`: the command line checks patterns before anything slow is imported
if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 1024  # characters of a pattern
MOST = 1000  # patterns in one list
DEEP = 3  # `**` in one pattern: each may have to be tried at every depth
NOTHING = re.compile(rb"(?!)")
STARS = 16  # `*` in one name, for the same reason


class Pattern:
    """One pattern. Raises ValueError for text that is none."""

    __slots__ = ("negated", "regex", "text")

    def __init__(self, text: str, *, flags: int = 0) -> None:
        self.text = text
        self.negated = text.startswith("!")
        self.regex = re.compile(_regex(text.removeprefix("!")), re.DOTALL | flags)

    def matches(self, path: bytes, *, directory: bool) -> bool:
        """Tells whether a path relative to the lane, or a directory that leads to it, is meant."""
        return self.regex.fullmatch(path + b"/" if directory else path) is not None


class Patterns:
    """A list of patterns, in which the last that matches counts. Raises ValueError."""

    __slots__ = ("_any", "_patterns")

    def __init__(self, texts: Iterable[str] = (), *, flags: int = 0) -> None:
        self._patterns = tuple(Pattern(text, flags=flags) for text in reversed(tuple(texts)))
        if len(self._patterns) > MOST:
            raise ValueError(f"{len(self._patterns)} patterns are more than {MOST}")
        every = b"|".join(each.regex.pattern for each in self._patterns)  # most paths are meant by none
        self._any = re.compile(every, re.DOTALL | flags) if every else NOTHING

    def __bool__(self) -> bool:
        return bool(self._patterns)

    @property
    def takes_back(self) -> bool:
        """Tells whether any of them does."""
        return any(each.negated for each in self._patterns)

    def last(self, path: bytes, *, directory: bool) -> Pattern | None:
        """Returns the pattern that counts for a path, which may be one that takes back."""
        if self._any.fullmatch(path + b"/" if directory else path) is None:
            return None
        return next(each for each in self._patterns if each.matches(path, directory=directory))

    def match(self, path: bytes, *, directory: bool) -> Pattern | None:
        """Returns the pattern that a path is meant by, if it is."""
        found = self.last(path, directory=directory)
        return None if found is None or found.negated else found


def _regex(text: str) -> bytes:
    if not text.strip("/") or len(text) > LONGEST or "\0" in text or text.startswith("#"):
        raise ValueError(f"{text[:40]!r} is no pattern")
    pattern = text.encode("utf-8", "surrogateescape")
    body = pattern.rstrip(b"/")
    below = rb"/.*" if pattern.endswith(b"/") else rb"(?:/.*)?"
    parts = body.lstrip(b"/").split(b"/")
    if parts.count(b"**") > DEEP:
        raise ValueError(f"{text[:40]!r} has `**` more than {DEEP} times")
    if b"/" not in body:
        parts = [b"**", *parts]
    try:
        return _joined(parts) + below
    except ValueError as error:
        raise ValueError(f"{text[:40]!r} is no pattern: {error}") from error


def _joined(parts: list[bytes]) -> bytes:
    *leading, last = parts
    begin = b"".join(rb"(?:.*/)?" if each == b"**" else _name(each) + b"/" for each in leading)
    return begin + (rb"[^/].*" if last == b"**" else _name(last))


TOKEN = re.compile(
    rb"\\(?P<escaped>.)|(?P<stars>\*+)|(?P<any>\?)|\[(?P<set>[!^]?\]?[^\]]*)\]|(?P<plain>.)", re.DOTALL
)


def _name(name: bytes) -> bytes:
    """Returns what matches one component; a `*` before the last is content with the first place that fits."""
    chunks = [b""]
    for token in TOKEN.finditer(name):
        if token["stars"]:
            if token["stars"] != b"*":
                raise ValueError("it has `**` within a name")
            chunks.append(b"")
        elif token["any"]:
            chunks[-1] += rb"[^/]"
        elif token["set"] is not None:
            chunks[-1] += _set(name, token["set"])
        else:
            chunks[-1] += re.escape(_literal(name, token))
    if len(chunks) > STARS:
        raise ValueError("it has too many `*`")
    first, *rest = chunks
    if not rest:
        return first
    middle = b"".join(rb"(?>[^/]*?" + chunk + b")" for chunk in rest[:-1] if chunk)
    return rb"(?=[^/])" + first + middle + rb"[^/]*" + rest[-1]


def _literal(name: bytes, token: re.Match[bytes]) -> bytes:
    if token["plain"] in (b"\\", b"["):
        raise ValueError("it breaks off")
    return token["escaped"] or token["plain"]


def _set(name: bytes, inside: bytes) -> bytes:
    negated = inside[:1] in (b"!", b"^")
    members = inside[negated:]
    if not members or b"[" in members or b"\\" in members:
        raise ValueError("it has a set of characters that is not understood")
    escaped = members.replace(b"^", b"\\^").replace(b"]", b"\\]").replace(b"&", b"\\&").replace(b"~", b"\\~")
    escaped = escaped.replace(b"||", b"|")
    try:
        re.compile(b"[" + escaped + b"]")
    except re.error as error:
        raise ValueError("it has a set of characters that is not understood") from error
    return (rb"(?!/)[^" if negated else rb"(?!/)[") + escaped + b"]"
