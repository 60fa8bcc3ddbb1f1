import io
import json
import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adapters.service.logs import JsonLine, Lines, PlainLine, configure

CHECKOUT = Path(__file__).parents[3]


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


class Place(msgspec.Struct):
    lane: str
    path: bytes


class Written(io.StringIO):
    """What was written, once all that was handed over is."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers: list[Lines] = []

    def through(self, formatter: logging.Formatter) -> Lines:
        self.handlers.append(Lines(self, formatter))
        return self.handlers[-1]

    def getvalue(self) -> str:
        for handler in self.handlers:
            handler.flush()
        return super().getvalue()


@pytest.fixture
def out() -> Written:
    return Written()


@pytest.fixture
def logger(out: Written) -> logging.Logger:
    logger = logging.Logger("tests.logs", "DEBUG")  # alone: not every handler is as patient with odd values
    logger.addHandler(out.through(JsonLine()))
    return logger


@pytest.fixture
def restored() -> Iterator[None]:
    """Puts the process's own loggers back."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    logging.captureWarnings(False)
    root.handlers = handlers
    root.setLevel(level)


def only(out: Written) -> dict[str, Any]:
    (line,) = out.getvalue().splitlines()
    found = json.loads(line)
    assert isinstance(found, dict)
    return found


def test_a_record_is_one_object_with_its_fields(logger: logging.Logger, out: Written) -> None:
    logger.warning("a lane %s", "stopped", extra={"fields": {"lane": "fix", "position": 7, "cause": None}})
    found = only(out)
    assert found.pop("time").endswith("Z")
    assert found == {
        "level": "warning",
        "logger": "tests.logs",
        "message": "a lane stopped",
        "lane": "fix",
        "position": 7,
        "cause": None,
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"/home/\xff/x", "/home/\\udcff/x"),
        ("a\udc80b", "a\\udc80b"),
        ("a\nb", "a\nb"),
        (float("nan"), "nan"),
        (1 << 80, str(1 << 80)),
        (ValueError("why"), "ValueError: why"),
        (KeyError(), "KeyError"),
        ({b"k": {1: (2, {3})}}, {"k": {"1": [2, [3]]}}),
        (Place("a", b"/x"), {"lane": "a", "path": "/x"}),
        (Unprintable(), "<a Unprintable that cannot be shown>"),
        (Path("/x"), "/x"),
        (True, True),
    ],
)
def test_any_value_can_be_a_field(logger: logging.Logger, out: Written, value: object, shown: object) -> None:
    logger.info("x", extra={"fields": {"value": value}})
    assert only(out)["value"] == shown


@pytest.mark.parametrize(
    "fields", [None, 5, ["a"], {"message": "m", "time": 1, "traceback": 2}, Unprintable()]
)
def test_odd_fields_never_hide_the_record(logger: logging.Logger, out: Written, fields: object) -> None:
    logger.info("the message", extra={"fields": fields})
    assert only(out)["message"] == "the message"


def test_a_value_that_contains_itself_or_is_huge_is_cut(logger: logging.Logger, out: Written) -> None:
    around: list[object] = []
    around.append(around)
    logger.info("x", extra={"fields": {"around": around, "long": "y" * 1_000_000, "many": range(10**6)}})
    logger.info("z" * 1_000_000)
    assert len(out.getvalue()) < 60_000
    assert [json.loads(line)["level"] for line in out.getvalue().splitlines()] == ["info", "info"]


def test_a_message_that_does_not_fit_its_arguments_is_shown_as_it_is(
    logger: logging.Logger, out: Written
) -> None:
    logger.info("%d lanes", "three")
    assert only(out)["message"] == "%d lanes ('three',)"


def test_an_exception_is_a_field_on_the_same_line_with_all_of_its_group(
    logger: logging.Logger, out: Written
) -> None:
    try:
        raise ExceptionGroup("several", [ValueError("one"), OSError("two")])
    except ExceptionGroup:
        logger.exception("failed")
    traceback = only(out)["traceback"]
    assert "ValueError: one" in traceback
    assert "OSError: two" in traceback


def test_people_get_readable_lines(out: Written, logger: logging.Logger) -> None:
    logger.handlers[-1].setFormatter(PlainLine())
    logger.info("a\nlane", extra={"fields": {"lane": "fix login", "path": b"/x", "position": 3}})
    line = out.getvalue()
    assert line.count("\n") == 1
    assert line.endswith('info     a\\nlane lane="fix login" path=/x position=3\n')


def test_people_get_a_traceback_below_its_line(out: Written, logger: logging.Logger) -> None:
    logger.handlers[-1].setFormatter(PlainLine())
    logger.error("bad", exc_info=ValueError("why"))
    assert out.getvalue().splitlines()[1:] == ["ValueError: why"]


def test_a_stream_that_is_gone_costs_the_record_only(logger: logging.Logger) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    handler = Lines(Gone(), JsonLine())
    logger.addHandler(handler)
    logger.info("x")
    logger.removeHandler(handler)
    handler.flush()
    assert handler.lost == 1


@pytest.mark.usefixtures("restored")
def test_everybody_logs_through_it_and_a_second_call_replaces_the_first(out: Written) -> None:
    theirs = logging.getLogger("hypercorn.error")
    theirs.handlers, theirs.propagate = [logging.StreamHandler(io.StringIO())], False
    configure(io.StringIO(), True, "debug")
    out.handlers.append(configure(out, True, "warning"))
    theirs.error("one")
    logging.getLogger("litestar").warning("two")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("three", UserWarning, stacklevel=1)
    logging.getLogger("x").info("not from this level on")
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [each["logger"] for each in found] == ["hypercorn.error", "litestar", "py.warnings"]


@pytest.mark.usefixtures("restored")
def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="'loud' is no level"):
        configure(io.StringIO(), True, "loud")


def test_lines_of_many_threads_stay_whole(logger: logging.Logger, out: Written) -> None:
    def talk() -> None:
        for _ in range(50):
            logger.info("x" * 500)

    threads = [threading.Thread(target=talk) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = out.getvalue().splitlines()
    assert len(lines) == 400
    assert {json.loads(line)["message"] for line in lines} == {"x" * 500}


def test_a_reader_that_does_not_read_holds_up_nobody() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as read:
        with open(writing, "w") as full:
            handler = Lines(full, JsonLine())
            logger = logging.Logger("tests.logs.stuck")
            logger.addHandler(handler)
            for _ in range(20_000):
                logger.error("x" * 200)
            assert handler.lost > 5_000
            reader = threading.Thread(target=read.read)
            reader.start()
            handler._lines.join()  # what was not lost is written once somebody reads
        reader.join()


@pytest.mark.slow
def test_the_log_is_utf_8_whatever_the_locale() -> None:
    program = """
import logging, sys
from adapters.service.logs import configure
configure(sys.stderr, True, "info")
logging.info("caf\\xe9", extra={"fields": {"path": b"/\\xff"}})
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, check=True,
        env={"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    )  # fmt: skip
    found = json.loads(done.stderr.decode("utf-8"))
    assert (found["message"], found["path"]) == ("café", "/\\udcff")
