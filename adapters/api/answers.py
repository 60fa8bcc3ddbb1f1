"""An answer in both of its forms: a document for tools, and text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.api.documents import Outcome


class Answer:
    """What was asked for; `outcome` becomes an exit code."""

    def __init__(self, *, document: object, text: str | Callable[[], str], outcome: Outcome = "done") -> None:
        self.document = document
        self.outcome: Outcome = outcome
        self._text = text

    @property
    def text(self) -> str:
        """Returns whole lines without the last one's end; what takes long to word is worded only here."""
        return self._text if isinstance(self._text, str) else self._text()


class NotReached(Exception):
    """A command was begun and did not reach its goal: undone (`refused`), or left `unfinished`."""

    def __init__(self, code: str, message: str, details: dict[str, object], outcome: Outcome) -> None:
        super().__init__(message)
        self.code, self.message, self.details, self.outcome = code, message, details, outcome


def encoded(value: object) -> bytes:
    """Returns a document as one line of JSON."""
    return msgspec.json.encode(value)
