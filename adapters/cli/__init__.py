"""The command line. Nothing heavy is imported before it is known to be needed."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as in `typing`, whose import costs too much here
if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapters.cli.parser import Misused

DONE, REFUSED, USAGE, UNFINISHED, UNUSABLE, INTERRUPTED = 0, 1, 2, 3, 4, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code (see `docs/cli.md`)."""
    given = sys.argv[1:] if argv is None else list(argv)
    try:
        code = _run(given)
        _settle()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseExceptionGroup as group:
        # What is interrupted while several lanes are driven on arrives in a group.
        if group.subgroup(KeyboardInterrupt) is None:
            raise
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; Python would complain again when it flushes at exit.
        sys.stdout = None
        return DONE


def _settle() -> None:
    """Gives up what could not be written: it was told, and Python would complain again at exit."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:
        sys.stdout = None


def _run(given: list[str]) -> int:
    """Asks the service if that is all there is to do, else reads the command line and does what it says."""
    from adapters.cli.thin import attempt

    code = attempt(given)
    if code is not None:
        return code
    from adapters.cli.parser import Misused, build_parser

    try:
        arguments = build_parser().parse_args(given)
        from adapters.cli.failures import guarded

        return guarded(arguments)
    except Misused as error:
        return _misused(error, as_json="--json" in given)


def _misused(error: Misused, *, as_json: bool) -> int:
    """Tells how the program is used, as one object under `--json`, and returns the exit code."""
    if as_json:
        import json

        shape = {"code": "usage", "message": error.message, "details": {"usage": error.usage}}
        sys.stderr.write(json.dumps(shape) + "\n")
    else:
        sys.stderr.write(f"{error.usage}\nlaneyard: {error.message} [usage]\n")
    return USAGE
