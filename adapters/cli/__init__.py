"""The command line. Nothing heavy is imported before it is known to be needed."""

import sys
from collections.abc import Sequence

from adapters.cli.parser import build_parser

DONE, REFUSED, USAGE, UNFINISHED, UNUSABLE, INTERRUPTED = 0, 1, 2, 3, 4, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code (see `docs/cli.md`)."""
    arguments = build_parser().parse_args(argv)
    from adapters.cli.failures import guarded

    try:
        return guarded(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; Python would complain again when it flushes at exit.
        sys.stdout = None
        return DONE
