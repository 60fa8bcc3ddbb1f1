"""A Unix socket as a stream of bytes, and what can go wrong with it."""

from __future__ import annotations

# The C module beneath `socket`: that one imports selectors and enum, and so costs every `laneyard list` 7 ms.
import _socket
import os
import struct

TYPE_CHECKING = False  # as in `typing`, whose import costs too much here
if TYPE_CHECKING:
    from collections.abc import Iterator

ADDRESS = 107  # bytes of a path that fit into an address
PIECE = 1 << 16  # bytes that are received at once


class ClientError(Exception):
    """The service has given no answer that can be used."""

    code = "service_failed"
    remedy = ""


class NoService(ClientError):
    """Nobody serves at the socket."""

    code = "no_service"
    remedy = "Start one with 'laneyard serve'."


class Lost(ClientError):
    """The connection has ended before the answer did; what was asked for may have been done or not."""

    code = "service_lost"
    remedy = "Whether it was done is in 'laneyard log'."


class Silent(ClientError):
    """The service has said nothing for the time given; what was asked for may have been done or not."""

    code = "service_silent"
    remedy = "'laneyard doctor' says who serves; whether it was done is in 'laneyard log'."


class BadAnswer(ClientError):
    """What was received is not what a service of ours sends."""

    code = "bad_answer"
    remedy = "Look at who serves there: 'laneyard doctor' tries."


class Wire:
    """A connected socket; bytes are taken from it by marks and counts."""

    def __init__(self, path: bytes, timeout: float) -> None:
        self._socket = _connected(path, timeout)
        self._received = bytearray()

    def allow(self, timeout: float) -> None:
        """Sets the seconds that one sending or receiving may take from now on."""
        self._socket.settimeout(timeout)

    def close(self) -> None:
        """Closes the socket; once more does nothing."""
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Sends everything, or as much as is taken. Raises Silent.

        A service that refuses a body may answer and close before it has read everything: whether there is an
        answer is for the receiver to find.
        """
        try:
            self._socket.sendall(data)
        except TimeoutError as error:
            raise Silent("the service takes nothing more") from error
        except ConnectionError:
            return

    def until(self, mark: bytes, limit: int) -> bytes:
        """Returns what comes before the mark, and takes both. Raises Lost, Silent, BadAnswer if too long."""
        start = 0
        while (end := self._received.find(mark, start)) < 0:
            if len(self._received) > limit:
                raise BadAnswer(f"no end within {limit} bytes")
            start = max(0, len(self._received) - len(mark) + 1)
            if not self._fill():
                raise Lost("the service has closed the connection before it had answered")
        if end > limit:
            raise BadAnswer(f"no end within {limit} bytes")
        found = bytes(self._received[:end])
        del self._received[: end + len(mark)]
        return found

    def exactly(self, count: int) -> Iterator[bytes]:
        """Yields so many bytes, in pieces as they come. Raises Lost, Silent."""
        while count:
            if not self._received and not self._fill():
                raise Lost("the service has closed the connection in the middle of its answer")
            piece = bytes(self._received[:count])
            del self._received[:count]
            count -= len(piece)
            yield piece

    def rest(self) -> Iterator[bytes]:
        """Yields everything until the service closes the connection. Raises Silent."""
        while self._received or self._fill():
            piece = bytes(self._received)
            self._received.clear()
            yield piece

    def _fill(self) -> bool:
        """Receives something; tells whether there was anything before the end. Raises Lost, Silent."""
        try:
            data = self._socket.recv(PIECE)
        except TimeoutError as error:
            raise Silent("the service does not answer") from error
        except ConnectionError as error:
            raise Lost("the service has broken the connection off") from error
        self._received += data
        return bool(data)


def _connected(path: bytes, timeout: float) -> _socket.socket:
    made = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        # Not `settimeout`: a socket that does not block is refused at once where the queue of waiting
        # connections is full (EAGAIN, unix(7)). The kernel's own limit waits for a place in it.
        made.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, _timeval(timeout))
        _connect(made, path)
        made.settimeout(timeout)
    except BaseException as error:
        made.close()
        if isinstance(error, BlockingIOError):
            raise Silent("the service accepts no connection") from error
        if isinstance(error, OSError):
            raise NoService(f"{os.fsdecode(path)}: {error.strerror}") from error
        raise
    return made


def _timeval(seconds: float) -> bytes:
    return struct.pack("@ll", int(seconds), max(1, int(seconds % 1 * 1e6)))


def _connect(made: _socket.socket, path: bytes) -> None:
    """Connects, by way of the opened directory where the path is too long for an address."""
    if len(path) <= ADDRESS:
        made.connect(path)
        return
    directory, name = os.path.split(path)
    opened = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        made.connect(os.path.join(b"/proc/self/fd/%d" % opened, name))
    finally:
        os.close(opened)
