"""From what went wrong to an exit code and words: one object on standard error under `--json`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec

from adapters.api.problems import CODES, encodable, problem, text
from adapters.cli.output import hush

if TYPE_CHECKING:
    from argparse import Namespace

    from adapters.api.documents import Outcome, Problem


def guarded(arguments: Namespace) -> int:
    """Runs the command; whatever is refused or cannot be done is told, and becomes an exit code."""
    from adapters.cli.dispatch import run

    try:
        return run(arguments)
    except BrokenPipeError:
        raise  # not the world's answer: whoever read our output has gone
    except Exception as error:
        told = problem(error)
        if told is None:
            raise
        return tell_problem(arguments, told)


def tell_problem(arguments: Namespace, told: Problem) -> int:
    """Prints a problem and returns the exit code."""
    return tell(arguments, told.code, told.detail, told.details, told.outcome)


def tell(arguments: Namespace, code: str, message: str, details: dict[str, Any], outcome: Outcome) -> int:
    """Prints an error and returns the exit code."""
    hush()
    message = text(message[:1].upper() + message[1:])
    if arguments.json:
        shown = {"code": code, "message": message, "details": encodable(details)}
        sys.stderr.write(msgspec.json.encode(shown).decode() + "\n")
    else:
        sys.stderr.write(f"laneyard: {message} [{code}]\n")
    return CODES[outcome]
