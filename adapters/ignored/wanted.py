"""Which ignored files a request asks to keep, and by which rules the lane is looked at for that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapters.config import repository_configuration
from adapters.config.ignored import capture_limit, rules
from adapters.ignored.patterns import MOST, Pattern
from domain.errors import Refusal
from domain.evidence import Unknown
from domain.paths import unpack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adapters.config import Configuration
    from adapters.ignored.classes import Rules
    from domain.evidence import Ignored, Seen

Include = bool | tuple[str, ...]  # nothing, everything that is not rebuildable, or what patterns name


@dataclass(eq=False)
class IgnoredTooLarge(Refusal):
    """The ignored files that are asked for are more than a snapshot may be asked to hold."""

    size: int
    limit: int
    file: str
    code = "ignored_too_large"
    text = "the ignored files that are asked for have {size} bytes; the limit in {file} is {limit}."
    remedy = "Name fewer with --include-ignored=PATTERN, or raise ignored.capture_limit in that file."


@dataclass(eq=False)
class InvalidPattern(Refusal):
    """What was given with `--include-ignored` is no pattern that names something."""

    pattern: str
    why: str
    code = "invalid_pattern"
    text = "{pattern!r} cannot be used: {why}."
    remedy = "Patterns are those of a .gitignore; docs/configuration.md says which."
    status = 422


@dataclass(eq=False)
class NoSuchIgnored(Refusal):
    """A pattern of `--include-ignored` names nothing that is ignored in the lane."""

    pattern: str
    code = "no_such_ignored"
    text = "no ignored file in the lane is meant by {pattern!r}."
    remedy = "'laneyard show LANE --json' lists what is ignored; patterns are those of a .gitignore."
    status = 404


def checked(patterns: Sequence[str]) -> tuple[str, ...]:
    """Returns the patterns of a request. Raises InvalidPattern."""
    if len(patterns) > MOST:
        raise InvalidPattern(patterns[MOST][:100], f"it comes after {MOST} others")
    for text in patterns:
        try:
            negated = Pattern(text).negated
        except ValueError as error:
            raise InvalidPattern(text[:100], str(error)) from error
        if negated:
            raise InvalidPattern(text[:100], "it names nothing, it takes back")
    return tuple(patterns)


class Wanted:
    """What one request asks for in one repository, given its main checkout."""

    def __init__(self, configuration: Configuration, root: bytes, include: Include = False) -> None:
        self._configuration = configuration
        self._root = root
        self._include = include

    def rules(self) -> Rules:
        """Returns the rules by which ignored paths are classed. Raises InvalidConfiguration, OSError."""
        own = repository_configuration(self._root).ignored
        return rules(self._configuration.ignored, own, self._root, self._include)

    def chosen(self, seen: Seen) -> tuple[str, ...]:
        """Returns the ignored paths that a snapshot is to hold. Raises IgnoredTooLarge, NoSuchIgnored."""
        if not self._include or isinstance(seen.ignored, Unknown):
            return ()
        taken = tuple(self._taken(seen.ignored))
        size = sum(each.bytes for each in taken)
        own = repository_configuration(self._root).ignored
        limit, file = capture_limit(self._configuration.ignored, own)
        if size > limit:
            raise IgnoredTooLarge(size, limit, file)
        return tuple(each.path for each in taken)

    def _taken(self, ignored: tuple[Ignored, ...]) -> Iterator[Ignored]:
        if isinstance(self._include, bool):
            return (each for each in ignored if each.kind != "rebuildable")
        patterns = [Pattern(text) for text in self._include]
        for pattern in patterns:
            if not any(_means(pattern, each) for each in ignored):
                raise NoSuchIgnored(pattern.text)
        return (each for each in ignored if any(_means(pattern, each) for pattern in patterns))


def _means(pattern: Pattern, ignored: Ignored) -> bool:
    # Only a directory has entries below it: an empty one is not told.
    return pattern.matches(unpack(ignored.path), directory=ignored.entries > 1)
