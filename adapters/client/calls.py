"""Calls that outlive a restart of the service: the same key is sent again until there is an answer."""

from __future__ import annotations

import os
from time import monotonic, sleep

from adapters.client.connection import NOTHING
from adapters.client.wire import BadAnswer, Lost, NoService

TYPE_CHECKING = False  # as in `typing`, whose import costs too much here
if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapters.client.connection import Connection, Response

EXITS = {"done": 0, "refused": 1, "unfinished": 3, "unavailable": 4}
AGAIN = (b"stopping",)  # codes of a service that is about to be another one
FORGOTTEN = (b"no_such_command", b"answer_forgotten")  # codes of one that has not begun the command itself
PAUSE = 0.1  # seconds between two tries where the service has named none
WAIT = 30  # seconds for which a service is asked to hold an answer back until there is one
TIMEOUT = 60.0  # seconds of silence; longer than WAIT


class Patience:
    """The seconds for which an answer is tried for, from the first failure after a success."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end: float | None = None

    def renew(self) -> None:
        """Begins anew with the next failure."""
        self._end = None

    def wait(self, seconds: float) -> bool:
        """Waits, no longer than there is patience; tells whether there was any."""
        now = monotonic()
        if self._end is None:
            self._end = now + self._seconds
        if now >= self._end:
            return False
        sleep(min(seconds, self._end - now))
        return True


def new_key() -> str:
    """Returns a random UUID (RFC 9562, version 4); importing `uuid` would take longer than a whole call."""
    raw = bytearray(os.urandom(16))
    raw[6], raw[8] = raw[6] & 0x0F | 0x40, raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def call(
    connection: Connection,
    method: str,
    target: str,
    *,
    accept: str = "text/plain",
    client: str = "laneyard",
    key: str = "",
    headers: Mapping[str, str] = NOTHING,
    body: bytes = b"",
    patience: float = 30.0,
) -> Response:
    """Returns the answer to a request, or the problem that stands after `patience` seconds.

    A command (POST) is sent with `key`, or a new one, and followed to its end; where the connection or the
    service is lost it is sent again with that key, so that it is done once. An interrupt ends only the wait.
    Raises NoService where nobody serves (for a command: only where none has taken it), Lost after `patience`
    seconds, Silent after a minute without a word, BadAnswer, and ValueError for what cannot be sent.
    """
    fields = {"Accept": accept, "Laneyard-Client": _printable(client), **headers}
    if method == "POST":
        fields |= {"Idempotency-Key": key or new_key(), "Prefer": f"wait={WAIT}"}
        fields |= {"Content-Type": "application/json"} if body else {}
    patient, taken = Patience(patience), False
    while True:
        try:
            answer = _answer(connection, method, target, fields, body, patient)
        except Lost:
            taken = True
            if not patient.wait(PAUSE):
                raise
        except NoService as error:
            # What only reads can do without a service; a command may have begun in the one that is gone.
            if method != "POST" or not taken:
                raise
            if not patient.wait(PAUSE):
                raise Lost("the service has gone before it had answered, and has not come back") from error
        else:
            if not _is_passing(answer) or not patient.wait(_pause(answer)):
                return answer


def _answer(
    connection: Connection,
    method: str,
    target: str,
    headers: dict[str, str],
    body: bytes,
    patient: Patience,
) -> Response:
    """Returns the answer to one try, after following a command that takes long."""
    answer = connection.request(method, target, headers, body, TIMEOUT)
    following = {name: headers[name] for name in ("Accept", "Laneyard-Client")} | {"Prefer": f"wait={WAIT}"}
    while answer.status == 202:
        patient.renew()
        place = answer.headers.get("location")
        if not place:
            raise BadAnswer("the command goes on, and the service has not said where to follow it")
        asked = monotonic()
        try:
            answer = connection.request("GET", place, following, b"", TIMEOUT)
        except NoService as error:
            raise Lost("the service has gone while the command ran") from error
        if answer.status in (404, 410) and _says(answer, FORGOTTEN):  # another one has taken over
            raise Lost("the service does not know the command any more")
        if answer.status == 202 and monotonic() - asked < 1:  # it was not held back, as was asked
            sleep(_pause(answer))
    return answer


def _is_passing(answer: Response) -> bool:
    """Tells whether the problem is one that goes away by itself."""
    if answer.status != 503:
        return False
    return "retry-after" in answer.headers or _says(answer, AGAIN)


def _says(answer: Response, codes: tuple[bytes, ...]) -> bool:
    """Tells whether the answer is a problem with one of the codes, in words or as JSON."""
    named = answer.body.strip()
    return any(named.endswith(b"[" + code + b"]") or b'"code":"' + code + b'"' in named for code in codes)


def _pause(answer: Response) -> float:
    """Returns the seconds after which the service wants to be asked again."""
    wanted = answer.headers.get("retry-after", "")
    return float(wanted) if wanted.isdecimal() and wanted.isascii() and len(wanted) < 6 else PAUSE


def _printable(text: str) -> str:
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text)


def exit_code(outcome: str) -> int:
    """Returns the exit code for a `Laneyard-Outcome`. Raises BadAnswer for any other word."""
    if outcome not in EXITS:
        raise BadAnswer(f"the outcome {outcome[:40]!r} is unknown")
    return EXITS[outcome]
