"""`--include-ignored [=PATTERN]`: stands alone for all, or is said once for each pattern."""

import argparse
from collections.abc import Sequence
from typing import Any

INCLUDED = "--include-ignored"
ALL = "\0"  # its value where it stands alone: what no word of a command line can be


def attached(given: Sequence[str]) -> list[str]:
    """Returns the words with a value for a bare `--include-ignored`: what follows it is no pattern."""
    end = given.index("--") if "--" in given else len(given)
    return [f"{each}={ALL}" if each == INCLUDED and at < end else each for at, each in enumerate(given)]


class _Included(argparse.Action):
    """Collects patterns, or remembers that all is meant."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,  # noqa: ANN401 (as theirs)
        option_string: str | None = None,
    ) -> None:
        """Raises Misused where both are said."""
        before = getattr(namespace, self.dest)
        if before is not None and (before is True) != (values == ALL):
            parser.error(f"{INCLUDED} stands alone or with patterns, not both")
        setattr(namespace, self.dest, True if values == ALL else [*(before or ()), values])


def _pattern(text: str) -> str:
    """Returns a pattern, or what stands for all."""
    from adapters.ignored.patterns import Pattern

    if text == ALL:
        return text
    if any("\ud800" <= each <= "\udfff" for each in text):
        raise argparse.ArgumentTypeError("a PATTERN is text: write ? for other bytes")
    try:
        if Pattern(text).negated:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} names nothing, it takes back")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def add_included(parser: argparse.ArgumentParser) -> None:
    """Adds the option."""
    parser.add_argument(
        INCLUDED,
        action=_Included,
        type=_pattern,
        metavar="[=PATTERN]",
        help="also ignored files: what is not rebuildable, or what patterns as in a .gitignore name",
    )
