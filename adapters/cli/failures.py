"""From what went wrong to an exit code and words: one object on standard error under `--json`.

What is needed for that is imported when something goes wrong: most commands never need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapters.cli.output import flush, hush, write_error

if TYPE_CHECKING:
    from argparse import Namespace

    from adapters.api.documents import Outcome, Problem


def guarded(arguments: Namespace) -> int:
    """Runs the command; whatever is refused or cannot be done is told, and becomes an exit code."""
    from adapters.cli.checking import check
    from adapters.cli.dispatch import run

    try:
        check(arguments)
        code = run(arguments)
        flush()
        return code
    except BrokenPipeError:
        raise  # not the world's answer: whoever read our output has gone
    except Exception as error:
        from adapters.api.problems import problem

        told = problem(error)
        if told is None:
            raise
        return tell_problem(arguments, told)


def tell_problem(arguments: Namespace, told: Problem) -> int:
    """Prints a problem and returns the exit code."""
    return tell(arguments, told.code, told.detail, told.details, told.outcome)


def tell(arguments: Namespace, code: str, message: str, details: dict[str, Any], outcome: Outcome) -> int:
    """Prints an error and returns the exit code."""
    from adapters.api.answers import encoded
    from adapters.api.problems import CODES, begun, encodable, text

    hush()
    message = text(begun(message, details))
    if arguments.json:
        shown = {"code": code, "message": message, "details": encodable(details)}
        write_error(encoded(shown).decode() + "\n")
    else:
        write_error(f"laneyard: {message} [{code}]\n")
    return CODES[outcome]
