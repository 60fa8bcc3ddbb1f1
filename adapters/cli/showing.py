"""Everything about one lane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters import config
from adapters.api import showing as api
from adapters.cli.reading import drive_on, open_reader
from adapters.cli.scope import scope
from adapters.cli.telling import told
from adapters.cli.whereabouts import near
from adapters.lookup import find_lane
from domain.errors import NoSuchLane
from domain.paths import unpack

if TYPE_CHECKING:
    from argparse import Namespace

    from adapters.store.reader import Reader, Record
    from domain.evidence import Place, Seen


def run_show(arguments: Namespace) -> int:
    """Prints everything about a lane, after driving on what was interrupted."""
    drive_on(arguments)
    return show(arguments)


def show(arguments: Namespace) -> int:
    """Prints everything about a lane as the log has it, without driving anything on."""
    reader = open_reader(arguments)
    if reader is None:
        scope(arguments)
        raise NoSuchLane(arguments.lane)
    with reader:
        row = find_lane(reader.lanes(), scope(arguments), arguments.lane, near())
        lane, _ = reader.lane(str(row["id"]))
        place = api.inspected_place(lane)
        seen = _look(arguments, place, _root(reader, row)) if place is not None else None
        return told(arguments, api.show(reader, row, seen))


def _root(reader: Reader, row: Record) -> bytes:
    """Returns the main checkout of the lane's repository."""
    return next(
        unpack(str(each["root"])) for each in reader.repositories() if each["common"] == row["repository"]
    )


def _look(arguments: Namespace, place: Place, root: bytes) -> Seen:
    """Returns what an inspector sees of the lane."""
    import trio

    from adapters.ignored.wanted import Wanted
    from adapters.wiring import inspector

    settings = config.load(arguments.state_dir)
    rules = Wanted(settings.configuration, root).rules
    return trio.run(lambda: inspector(settings).look(place, rules=rules))
