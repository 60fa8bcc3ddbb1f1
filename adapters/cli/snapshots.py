"""`laneyard snapshot`: captures a lane, or looks at what was captured; a service is asked where one runs."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, Any

from adapters.cli import DONE, asking
from adapters.cli.output import hush
from adapters.cli.whereabouts import LONGEST, near
from adapters.client.connection import Response
from adapters.client.targets import packed, quoted

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

    from adapters.cli.asking import Service
    from adapters.snapshots.reading.reading import Part

OK, BYTES = 200, "application/octet-stream"
PAGE = "10000"  # entries that are asked for at once
BATCH_BYTES, BATCH_NAMES = 1 << 20, 1 << 13  # of the contents that are asked for at once, and of their paths
NAME = 8  # bytes that each path costs beside itself


class Told(Exception):
    """The service has given a problem in place of an answer, and it was told; `code` is the exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def run_snapshot(arguments: Namespace) -> int:
    """Captures a lane, or does what the word says."""
    if arguments.word is None:
        from adapters.cli import changing

        return changing.run_snapshot(arguments)
    _check(arguments)
    code = asking.over(arguments, _asked)
    if code is None:
        from adapters.cli import shelf

        return shelf.run(arguments)
    return code


def _check(arguments: Namespace) -> None:
    """Refuses what can be nobody's name and nothing's path, whoever would look. Raises a Refusal."""
    snapshot = getattr(arguments, "snapshot", None)
    if snapshot is not None and not 0 < len(os.fsencode(snapshot)) <= LONGEST:
        from adapters.api.choosing import UnknownSnapshot

        raise UnknownSnapshot(snapshot)
    for path in paths(arguments):
        if len(path) > LONGEST:
            from domain.errors import NotInSnapshot

            raise NotInSnapshot(snapshot or "", os.fsdecode(path[:100]) + "…", "it is too long for a path")


def paths(arguments: Namespace) -> list[bytes]:
    """Returns the paths that a command line names."""
    named = [*getattr(arguments, "paths", ())] if arguments.word != "show" else []
    named += [arguments.path] if hasattr(arguments, "path") else []
    return [os.fsencode(each) for each in named]


def put(data: bytes) -> None:
    """Prints bytes as they are. Raises OSError, also where there is nowhere to print them."""
    hush()
    if sys.stdout is None:  # it was closed before the program began
        raise OSError(errno.EBADF, "standard output is closed")
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def _asked(service: Service) -> int:
    try:
        return WORDS[service.arguments.word](service)
    except Told as told:
        return told.code


def _list(service: Service) -> int:
    arguments = service.arguments
    if arguments.lane is None:
        return service.tell(service.get("/v1/snapshots", **({} if arguments.all else service.scope)))
    lane = service.resolve(arguments.lane)
    return lane if isinstance(lane, int) else service.tell(service.get("/v1/snapshots", lane=lane))


def _show(service: Service) -> int:
    arguments = service.arguments
    whole, verify = "all" if arguments.paths else None, "true" if arguments.verify else None
    return service.tell(service.get(_address(service), paths=whole, verify=verify))


def _diff(service: Service) -> int:
    found = [f"below={quoted(packed(each or b'.'))}" for each in paths(service.arguments)]
    found += ["staged=true"] if service.arguments.staged else []
    asked = "?".join([_address(service, "/diff"), "&".join(found)]).rstrip("?")
    for piece in _body(service, asked):
        put(piece)
    return DONE


def _cat(service: Service) -> int:
    (path,) = paths(service.arguments)
    for piece in _content(service, _address(service), [path], staged=service.arguments.staged):
        put(piece)
    return DONE


def _extract(service: Service) -> int:
    import trio

    from adapters.cli import extracting

    address = _address(service)

    async def parts(below: bytes) -> Sequence[Part]:
        return list(_parts(service, address, below))

    async def contents(parts: Sequence[Part]) -> AsyncGenerator[Iterator[bytes], None]:
        for pieces in _contents(service, address, parts):
            yield pieces

    snapshot = address.rpartition("/")[2]
    wanted = paths(service.arguments)
    return trio.run(extracting.extract, service.arguments, snapshot, wanted, parts, contents)


def _address(service: Service, below: str = "") -> str:
    """Returns the address of the snapshot that is meant. Raises Told."""
    place = near()
    asked = {"near": None if place is None else packed(place), **service.scope}
    wanted = packed(os.fsencode(service.arguments.snapshot))
    found = service.get("/v1/resolve/snapshot", snapshot=wanted, **asked)
    if found.status >= 400:
        raise Told(service.tell(found))
    text = found.body.decode()
    return f"/v1/snapshots/{quoted(_json(text)['id'] if service.arguments.json else text.strip())}{below}"


def _contents(service: Service, address: str, parts: Sequence[Part]) -> Iterator[Iterator[bytes]]:
    """Yields the pieces of each content; many small ones are asked for at once. Raises Told, ClientError."""
    for batch in _batches(parts):
        pieces = _content(service, address, [each.path for each in batch])
        if len(batch) == 1:
            yield pieces
            continue
        data, at = b"".join(pieces), 0
        for each in batch:
            yield iter((data[at : at + each.size],))
            at += each.size


def _batches(parts: Sequence[Part]) -> Iterator[list[Part]]:
    batch: list[Part] = []
    size = length = 0
    for part in parts:
        size, length = size + part.size, length + len(part.path) + NAME
        if batch and (size > BATCH_BYTES or length > BATCH_NAMES):
            yield batch
            batch, size, length = [], part.size, len(part.path) + NAME
        batch.append(part)
    if batch:
        yield batch


def _content(
    service: Service, address: str, names: Sequence[bytes], *, staged: bool = False
) -> Iterator[bytes]:
    """Yields the content of one path after the other. Raises Told, ClientError."""
    query = [f"path={quoted(packed(each or b'.'))}" for each in names]
    asked = f"{address}/content?" + "&".join([*query, "staged=true"] if staged else query)
    yield from _body(service, asked)


def _body(service: Service, asked: str) -> Iterator[bytes]:
    """Yields an answer of any length. Raises Told, ClientError."""
    headers = {"Accept": BYTES, "Laneyard-Client": service.client}
    incoming = service.connection.stream("GET", asked, headers)
    if incoming.status != OK:
        raise Told(service.tell(Response(incoming.status, incoming.headers, b"".join(incoming))))
    yield from incoming


def _parts(service: Service, address: str, below: bytes) -> Iterator[Part]:
    """Yields a path and all below it, or everything, page by page. Raises Told, ClientError."""
    from adapters.cli.extracting import part_of

    after, where = None, packed(below or b".")
    while True:
        asked = {"below": where, "after": after, "limit": PAGE}
        answer = service.get(f"{address}/entries", asking.JSON, **asked)
        if answer.status >= 400:
            raise Told(service.tell(answer))
        page = _json(answer.body.decode())
        yield from map(part_of, page["entries"])
        after = page["next"]
        if after is None:
            return


def _json(text: str) -> Any:  # noqa: ANN401 (a document)
    import json

    return json.loads(text)


WORDS: dict[str, Callable[[Service], int]] = {
    "list": _list,
    "show": _show,
    "diff": _diff,
    "cat": _cat,
    "extract": _extract,
}
