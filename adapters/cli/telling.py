"""From an answer to what is printed, and to an exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.api.answers import encoded
from adapters.api.problems import CODES
from adapters.cli.output import say

if TYPE_CHECKING:
    from argparse import Namespace

    from adapters.api.answers import Answer


def told(arguments: Namespace, answer: Answer) -> int:
    """Prints the answer, as JSON if asked to, and returns the exit code."""
    say(encoded(answer.document).decode() if arguments.json else answer.text)
    return CODES[answer.outcome]
