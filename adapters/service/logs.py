"""Structured logs: one JSON object a line, or readable lines on a terminal. Nothing that is logged raises."""

from __future__ import annotations

import datetime
import logging
import math
import traceback
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

THEIRS = ("hypercorn.access", "hypercorn.error", "litestar", "py.warnings", "concurrent.futures")
DEEPEST = 6  # levels of a field's value
LONGEST = 1 << 14  # characters of a text or a traceback
MOST = 100  # members of a list or a mapping
JSON_INTEGERS = 1 << 63
WAITING = 10_000  # lines that wait to be written
PATIENCE = 1.0  # seconds at the end for what waits


class JsonLine(logging.Formatter):
    """A record as one JSON object: time, level, logger, message, the fields, the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        shown: dict[str, object] = {
            "time": _time(record, "milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        for name, value in _fields(record).items():
            shown[f"{name}_" if name in shown or name == "traceback" else name] = value
        if record.exc_info and record.exc_info[1] is not None:
            shown["traceback"] = _traceback(record.exc_info[1])
        return msgspec.json.encode(shown).decode()


class PlainLine(logging.Formatter):
    """A record for people: time, level, message and fields; a traceback on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        fields = "".join(f" {name}={_short(value)}" for name, value in _fields(record).items())
        message = _message(record).replace("\n", "\\n")
        line = f"{_time(record, 'seconds')} {record.levelname.lower():<8} {message}{fields}"
        if record.exc_info and record.exc_info[1] is not None:
            line += "\n" + _traceback(record.exc_info[1]).rstrip("\n")
        return line


class Lines(logging.Handler):
    """Writes each record as a whole line, in a thread of its own; counts what cannot be written in `lost`.

    Whoever reads our log may stop reading: that must never hold up who writes to it.
    """

    def __init__(self, stream: TextIO, formatter: logging.Formatter) -> None:
        super().__init__()
        self.lost = 0
        self._stream = stream
        self._lines: Queue[str] = Queue(WAITING)
        self.setFormatter(formatter)
        Thread(target=self._run, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Hands the record over to be written."""
        try:
            self._lines.put_nowait(self.format(record) + "\n")
        except Exception:  # too much waits, or it cannot be worded: the service goes on
            self.lost += 1

    def flush(self) -> None:
        """Waits until everything is written, for at most a second."""
        with self._lines.all_tasks_done:
            self._lines.all_tasks_done.wait_for(lambda: not self._lines.unfinished_tasks, PATIENCE)

    def _run(self) -> None:
        while True:
            line = self._lines.get()
            try:
                self._write(line)
            except Exception:  # the log's reader has gone, or its disk is full
                self.lost += 1
            finally:
                self._lines.task_done()

    def _write(self, line: str) -> None:
        # UTF-8 whatever the locale: a stream that escapes characters in its own way would break the JSON.
        binary = getattr(self._stream, "buffer", None)
        if binary is None:
            self._stream.write(line)
        else:
            self._stream.flush()
            binary.write(line.encode())
        self._stream.flush()


def configure(stream: TextIO, as_json: bool, level: str) -> Lines:
    """Sends what every logger of the process says to the stream, from the level on; returns the handler.

    A second call replaces the first. Raises ValueError for a level that is not known.
    """
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ValueError(f"{level!r} is no level of a log")
    handler = Lines(stream, JsonLine() if as_json else PlainLine())
    logging.captureWarnings(True)
    for name in THEIRS:
        theirs = logging.getLogger(name)
        theirs.handlers, theirs.propagate = [], True
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(number)
    return handler


def _time(record: logging.LogRecord, precision: str) -> str:
    moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def _message(record: logging.LogRecord) -> str:
    return _guarded(record.getMessage, f"{_text(record.msg)} {_text(record.args)}")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    found = getattr(record, "fields", None)
    plain = _plain(found) if found is not None else {}
    return plain if isinstance(plain, dict) else {"fields": plain}


def _traceback(error: BaseException) -> str:
    return _guarded(lambda: "".join(traceback.format_exception(error)), _text(error))


def _short(value: object) -> str:
    if isinstance(value, str) and value.isprintable() and value and " " not in value:
        return value
    return msgspec.json.encode(value).decode()


def _plain(value: object, depth: int = DEEPEST) -> object:
    """Returns the value as JSON can hold it: paths are bytes, and anything may be in a field."""
    match value:
        case None | bool():
            return value
        case int():
            return int(value) if -JSON_INTEGERS <= value < JSON_INTEGERS else str(value)
        case float():
            return float(value) if math.isfinite(value) else str(value)
        case dict() if depth:
            return {_text(name): _plain(each, depth - 1) for name, each in [*value.items()][:MOST]}
        case list() | tuple() | set() | frozenset() if depth:
            return [_plain(each, depth - 1) for each in [*value][:MOST]]
        case msgspec.Struct() if depth:
            named = {name: getattr(value, name, None) for name in value.__struct_fields__}
            return _plain(named, depth)
        case _:
            return _text(value)


def _text(value: object) -> str:
    match value:
        case str():
            return _clean(str(value))
        case bytes() | bytearray():
            return _clean(value.decode("utf-8", "surrogateescape"))
        case BaseException():
            words = _guarded(lambda: str(value), "")
            return f"{type(value).__name__}: {words}" if words else type(value).__name__
        case _:
            return _guarded(lambda: str(value), f"<a {type(value).__name__} that cannot be shown>")


def _guarded(made: Callable[[], Any], otherwise: str) -> str:
    """Returns the text that is made, or the other where making it raises: anybody may write `__str__`."""
    try:
        return _clean(made())
    except Exception:
        return otherwise


def _clean(text: str) -> str:
    """Returns the text with what is not UTF-8 escaped, and without its middle if it is very long."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
    return text.encode("utf-8", "backslashreplace").decode()
