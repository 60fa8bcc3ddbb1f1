"""Servers to try a client on: one of the standard library's, and one that says exactly what it is told."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path


class Asked(NamedTuple):
    """A request as it has arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Reply(NamedTuple):
    """An answer; `hang_up` closes the connection instead of giving it."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}
    hang_up: bool = False


class _Server(ThreadingHTTPServer):
    address_family = socket.AF_UNIX
    daemon_threads = True

    def server_bind(self) -> None:
        self.socket.bind(self.server_address)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, _ = self.socket.accept()
        return connection, ("peer", 0)


@contextmanager
def serving(path: Path, answer: Callable[[Asked], Reply]) -> Iterator[list[Asked]]:
    """Serves HTTP/1.1 with keep-alive at a socket; yields what has been asked so far."""
    asked: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked.append(Asked(self.command, self.path, headers, self.rfile.read(length)))
            reply = answer(asked[-1])
            if reply.hang_up:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if reply.body:  # the other side may have gone, once it has what it waits for
                self.wfile.write(reply.body)

        do_GET = do_POST = _serve  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Says nothing: what has been asked is kept."""

    with _Server(str(path), Handler) as server:  # type: ignore[arg-type]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield asked
        finally:
            server.shutdown()
            thread.join()
    path.unlink()


@contextmanager
def reciting(path: bytes, *connections: tuple[bytes, ...]) -> Iterator[list[bytes]]:
    """Accepts one connection after the other, sends it its pieces, one for every request, and closes it.

    Yields what was received.
    """
    received: list[bytes] = []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()

    def recite() -> None:
        for pieces in connections:
            connection, _ = listener.accept()
            with connection:
                for piece in pieces:
                    received.append(connection.recv(1 << 16))
                    connection.sendall(piece)

    thread = threading.Thread(target=recite, daemon=True)
    thread.start()
    try:
        yield received
        thread.join(10)
        assert not thread.is_alive(), "not every connection was made"
    finally:
        listener.close()
