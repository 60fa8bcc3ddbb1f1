"""HTTP/1.1 as a client speaks it: one request at a time, and its answer whole or in pieces.

`http.client` would do this, and takes three times as long to import as Python takes to start.
"""

from __future__ import annotations

from adapters.client.wire import BadAnswer, Wire

TYPE_CHECKING = False  # as in `typing`, whose import costs too much here
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

HEAD = 1 << 16  # bytes of an answer's head, or of its trailers
LINE = 1 << 12  # bytes of the line before a chunk
BODY = 1 << 28  # bytes of an answer that is taken as a whole
EMPTY = (204, 304)  # answers that never have a body
NOTHING: Mapping[str, str] = {}


class Response:
    """A whole answer. Names of headers are in lower case."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body


class Incoming:
    """An answer of which only the head has come; iterating gives its body, in pieces as they come.

    Iterating raises Lost, Silent, BadAnswer.
    """

    def __init__(self, status: int, headers: dict[str, str], pieces: Iterator[bytes]) -> None:
        self.status, self.headers, self._pieces = status, headers, pieces

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces


class Connection:
    """A connection to the service, made when it is needed and used again where both sides keep it.

    For one thread at a time. A request gives up what is left of the answer before it.
    """

    def __init__(self, path: bytes) -> None:
        self.path = path
        self._wire: Wire | None = None
        self._reading = False

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; the next request makes a new one."""
        if self._wire is not None:
            self._wire.close()
        self._wire, self._reading = None, False

    def request(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str] = NOTHING,
        body: bytes = b"",
        timeout: float = 60.0,
    ) -> Response:
        """Sends a request and returns its whole answer; `timeout` are the longest seconds of silence.

        Raises NoService, Lost, Silent, BadAnswer, and ValueError for what cannot be sent. A connection that
        was kept may turn out to be closed: that is Lost, too.
        """
        incoming = self.stream(method, target, headers, body, timeout)
        return Response(incoming.status, incoming.headers, _whole(incoming))

    def stream(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str] = NOTHING,
        body: bytes = b"",
        timeout: float = 60.0,
        silence: float | None = None,
    ) -> Incoming:
        """Sends a request and returns once the head of its answer is there. Raises as `request` does.

        `silence` are the longest seconds of silence from then on, where they are others.
        """
        data = _request(method, target, headers, body)
        wire = self._ready(timeout)
        self._reading = True  # until the body has ended: whatever happens before, nothing else fits behind it
        wire.send(data)
        status, found = _head(wire)
        while 100 <= status < 200:
            status, found = _head(wire)
        wire.allow(timeout if silence is None else silence)
        has_body = method != "HEAD" and status not in EMPTY
        return Incoming(
            status, found, self._pieces(wire, _body(wire, found) if has_body else iter(()), found)
        )

    def _ready(self, timeout: float) -> Wire:
        if self._reading:
            self.close()
        if self._wire is None:
            self._wire = Wire(self.path, timeout)
        self._wire.allow(timeout)
        return self._wire

    def _pieces(self, wire: Wire, body: Iterator[bytes], headers: dict[str, str]) -> Iterator[bytes]:
        """Yields the body; at its end the connection is free for the next request, or is closed."""
        yield from body
        if wire is not self._wire:
            return
        self._reading = False
        if not _keeps(headers):
            self.close()


def _request(method: str, target: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """Returns a request as it is sent. Raises ValueError for what would not stay on its line."""
    fields = {"Host": "laneyard", **headers}
    if body or method not in ("GET", "HEAD"):
        fields["Content-Length"] = str(len(body))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    if " " in target or not all(line.isascii() and line.isprintable() for line in lines):
        raise ValueError("a request is made of printable ASCII")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def _head(wire: Wire) -> tuple[int, dict[str, str]]:
    first, *lines = wire.until(b"\r\n\r\n", HEAD).split(b"\r\n")
    version, _, rest = first.partition(b" ")
    if version not in (b"HTTP/1.1", b"HTTP/1.0") or not rest[:3].isdigit() or rest[3:4].strip():
        raise BadAnswer(f"no HTTP: {first[:40]!r}")
    headers = _fields(lines)
    if version == b"HTTP/1.0":
        headers.setdefault("connection", "close")
    return int(rest[:3]), headers


def _fields(lines: Iterable[bytes]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        raw, colon, value = line.partition(b":")
        name = raw.decode("latin-1").lower()
        if not colon or not name or name.strip() != name:
            raise BadAnswer(f"no header: {line[:40]!r}")
        text = value.decode("latin-1").strip()
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found


def _body(wire: Wire, headers: dict[str, str]) -> Iterator[bytes]:
    if "transfer-encoding" in headers:
        if headers["transfer-encoding"].lower() != "chunked":
            raise BadAnswer(f"the transfer encoding {headers['transfer-encoding'][:40]!r} is unknown")
        return _chunks(wire)
    if "content-length" in headers:
        return wire.exactly(_number(headers["content-length"], 10))
    return wire.rest()


def _chunks(wire: Wire) -> Iterator[bytes]:
    while size := _number(wire.until(b"\r\n", LINE).decode("latin-1").partition(";")[0].strip(), 16):
        yield from wire.exactly(size)
        if wire.until(b"\r\n", LINE):
            raise BadAnswer("a chunk is longer than it says")
    while wire.until(b"\r\n", HEAD):  # trailers, of which we need none
        continue


def _number(text: str, base: int) -> int:
    digits = "0123456789abcdefABCDEF" if base == 16 else "0123456789"
    if not 0 < len(text) <= 16 or text.strip(digits):
        raise BadAnswer(f"no length: {text[:40]!r}")
    return int(text, base)


def _keeps(headers: dict[str, str]) -> bool:
    measured = "content-length" in headers or "transfer-encoding" in headers
    return measured and "close" not in headers.get("connection", "").lower()


def _whole(pieces: Iterable[bytes]) -> bytes:
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > BODY:
            raise BadAnswer(f"an answer of more than {BODY} bytes")
    return bytes(body)
