"""`laneyard list` while a service runs: one question over its socket, before anything slow is imported."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in `typing`, whose import would cost more than the question
if TYPE_CHECKING:
    from argparse import Namespace

    from adapters.client.connection import Response
    from adapters.client.wire import ClientError

VALUED = {"-C": "repository", "--state-dir": "state_dir"}
JSON, TEXT, PROBLEM = "application/json", "text/plain", "application/problem+json"
UNUSABLE = 4


class Wanted:
    """What a command line of `list` asks for, under the names that the parser uses."""

    def __init__(self) -> None:
        self.repository: str | None = None
        self.state_dir: str | None = None
        self.json = False
        self.all = False


def attempt(given: list[str]) -> int | None:
    """Does what the words say if that is a plain `list` and a service runs, and returns the exit code.

    Returns None where it is for the parser, or for this process, to go on; nothing is printed then.
    """
    wanted = understood(given)
    if wanted is None:
        return None
    from adapters.client.wire import ClientError

    try:
        answer = ask(wanted)
    except ClientError as error:
        return unanswered(wanted, error)
    return None if answer is None else tell(wanted, answer)


def understood(given: list[str]) -> Wanted | None:
    """Returns what the words mean to the parser, or None where that is not beyond doubt."""
    wanted, words, listing = Wanted(), iter(given), False
    for word in words:
        if word == "list" and not listing:
            listing = True
        elif word == "--json":
            wanted.json = True
        elif word == "--all" and listing:
            wanted.all = True
        else:
            name, value = _valued(word)
            value = next(words, "") if name and value is None else value
            if not name or not value or value[0] in "-=":
                return None
            setattr(wanted, name, value)
    return wanted if listing else None


def _valued(word: str) -> tuple[str | None, str | None]:
    """Returns the option that takes a value, and the value if it is in the same word."""
    if word in VALUED:
        return VALUED[word], None
    option, equals, value = word.partition("=")
    if option == "--state-dir" and equals:
        return VALUED[option], value
    if word.startswith("-C"):
        return VALUED["-C"], word[2:]
    return None, None


def ask(wanted: Wanted, observe: str = "now", patience: float = 30.0) -> Response | None:
    """Returns the answer of the service, or None where there is none to ask. Raises ClientError."""
    from adapters.cli.whereabouts import LONGEST, here
    from adapters.client.calls import call
    from adapters.client.connection import Connection
    from adapters.client.wire import NoService
    from adapters.config import place

    values = place.environment()
    try:
        if len(here(wanted)) > LONGEST:
            return None
        path = os.path.join(place.state_directory(wanted.state_dir, values), place.SOCKET)
        asked = _target(wanted, observe)
        with Connection(path) as connection:
            kind, client = JSON if wanted.json else TEXT, place.client(values)
            return call(connection, "GET", asked, accept=kind, client=client, patience=patience)
    except (NoService, OSError):  # OSError: the current directory is gone
        return None


def _target(wanted: Wanted, observe: str) -> str:
    from adapters.cli.whereabouts import here
    from adapters.client.targets import packed, target

    place, named = packed(here(wanted)), wanted.repository is not None
    scope = {"repository" if named else "near": place}
    return target("/v1/lanes", **scope, all="true" if wanted.all else None, observe=observe)


def tell(wanted: Wanted | Namespace, answer: Response) -> int:
    """Prints an answer, or why there is none, and returns the exit code."""
    from adapters.client.calls import exit_code
    from adapters.client.wire import BadAnswer

    kind = answer.headers.get("content-type", "").partition(";")[0]
    try:
        text = answer.body.decode("utf-8")
        code = exit_code(answer.headers.get("laneyard-outcome", ""))
        if answer.status >= 400:
            return _problem(wanted, kind, text, code)
        if kind != (JSON if wanted.json else TEXT):
            raise BadAnswer(f"it is {kind[:40]!r}")
    except (ValueError, KeyError, TypeError, BadAnswer) as error:
        why = f"the service has answered {answer.status}, and what cannot be read: {error}"
        return unanswered(wanted, BadAnswer(why))
    return _print(wanted, text, code)


def _problem(wanted: Wanted | Namespace, kind: str, text: str, code: int) -> int:
    """Tells a problem. Raises ValueError, KeyError and TypeError where it is none."""
    if kind == TEXT and not wanted.json:
        _write_error(f"laneyard: {text.rstrip()}\n")
        return code
    import json

    found = json.loads(text)
    return complain(wanted, found["code"], found["detail"], found["details"], code)


def unanswered(wanted: Wanted | Namespace, error: ClientError) -> int:
    """Tells why there is no answer, and returns the exit code."""
    message = f"{error}. {error.remedy}"
    return complain(wanted, error.code, message[:1].upper() + message[1:], {}, UNUSABLE)


def complain(wanted: Wanted | Namespace, code: str, message: str, details: object, exit_code: int) -> int:
    """Prints an error as every command does, and returns the exit code."""
    if not wanted.json:
        _write_error(f"laneyard: {message} [{code}]\n")
        return exit_code
    import json

    shown = {"code": code, "message": message, "details": details}
    _write_error(json.dumps(shown, ensure_ascii=False, separators=(",", ":")) + "\n")
    return exit_code


def _write_error(text: str) -> None:
    if sys.stderr is not None:  # None where it was closed before the program began
        sys.stderr.write(text)


def write(data: bytes) -> None:
    """Prints text as it was answered; what the terminal cannot show is replaced."""
    if sys.stdout is not None:
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(data.decode("utf-8").encode(encoding, "replace").decode(encoding))


def _print(wanted: Wanted | Namespace, text: str, code: int) -> int:
    """Prints what was answered, as whole lines; what the terminal cannot show is replaced."""
    if not text or sys.stdout is None:
        return code
    encoding = sys.stdout.encoding or "utf-8"
    shown = text.encode(encoding, "replace").decode(encoding)
    try:
        sys.stdout.write(shown if shown.endswith("\n") else shown + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise  # not an error of ours: whoever read our output has gone
    except OSError as error:
        return _unprintable(wanted, error)
    return code


def _unprintable(wanted: Wanted | Namespace, error: OSError) -> int:
    """Tells why the answer could not be written, as every command does."""
    from argparse import Namespace

    from adapters.api.problems import problem
    from adapters.cli.failures import tell_problem

    sys.stdout = None  # what is left to be written would only be complained of again
    told = problem(error)
    if told is None:
        raise error
    return tell_problem(Namespace(json=wanted.json), told)
