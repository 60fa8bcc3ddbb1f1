"""Listening sockets: one in the state directory, a TCP port when asked for, or what systemd hands over."""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from adapters.files.descriptors import owned, parent_of
from adapters.files.errors import legible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FAMILIES = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6}
FIRST_INHERITED = 3  # sd_listen_fds(3)
LONGEST_NAME = 107  # bytes of a path in a socket's address, unix(7)
MODE = 0o600
CREDENTIALS = struct.Struct("iII")  # struct ucred: pid, uid, gid
NEW = b".laneyard.sock-new"  # the caller's lock makes one name enough


class Peer(msgspec.Struct, frozen=True):
    """Who has connected, as the kernel says; over TCP nobody knows."""

    uid: int | None = None
    pid: int | None = None


class Place(msgspec.Struct, frozen=True):
    """Which file a listening socket has got."""

    device: int
    inode: int


class SocketError(Exception):
    """A socket cannot be had; the words say which and why."""

    code = "socket_unusable"


class NotASocket(SocketError):
    """Something else is where the socket's file belongs."""


class BadAddress(SocketError):
    """The text is no `host:port`, or the host is not known."""


class AddressInUse(SocketError):
    """Another process listens at this address."""


class BadInheritance(SocketError):
    """What was handed over is no listening stream socket."""


def peer_of(connection: socket.socket) -> Peer:
    """Returns who is at the other end. Raises OSError."""
    if connection.family != socket.AF_UNIX:
        return Peer()
    pid, uid, _ = CREDENTIALS.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    )
    return Peer(uid=uid, pid=pid)


def listen_unix(path: bytes, backlog: int = 128) -> socket.socket:
    """Returns a socket that listens at the path, which only its owner may use; a stale one is replaced.

    The caller holds the state directory's lock. Raises NotASocket, OSError.
    """
    with parent_of(_real(path)) as (parent, name):
        _refuse_others(parent, name, path)
        with suppress(FileNotFoundError):  # what a killed process left
            os.unlink(NEW, dir_fd=parent)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _bind(listener, parent)
            listener.listen(backlog)
            os.rename(NEW, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            listener.close()
            raise
    return listener


def place_of(path: bytes) -> Place:
    """Returns which file is at the path now. Raises OSError."""
    seen = os.lstat(path)
    return Place(seen.st_dev, seen.st_ino)


def unlink_if_ours(path: bytes, place: Place) -> None:
    """Removes the socket's file unless another one has taken its place. Raises OSError."""
    with suppress(FileNotFoundError):
        if place_of(path) == place:
            os.unlink(path)


def listen_tcp(address: str, backlog: int = 128) -> socket.socket:
    """Returns a socket that listens at `host:port`; `[host]:port` for IPv6, port 0 for any that is free.

    Raises BadAddress, AddressInUse, OSError.
    """
    family, where = _resolved(address, *_split(address))
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(where)
        listener.listen(backlog)
    except OSError as error:
        listener.close()
        raise _meaning(address, error) from error
    return listener


def inherited(environment: Mapping[str, str], pid: int) -> list[socket.socket]:
    """Returns the sockets that systemd's activation has handed to this process, in its order.

    Raises BadInheritance.
    """
    if environment.get("LISTEN_PID") != str(pid):
        return []
    count = environment.get("LISTEN_FDS", "")
    if not count.isascii() or not count.isdecimal():
        raise BadInheritance(f"LISTEN_FDS is {count!r}, which is no number")
    taken: list[socket.socket] = []
    try:
        for descriptor in range(FIRST_INHERITED, FIRST_INHERITED + int(count)):
            taken.append(_take(descriptor))  # noqa: PERF401 (what was taken is closed when a later one is bad)
    except BaseException:
        for each in taken:
            each.close()
        raise
    return taken


@contextmanager
def connectable(path: bytes) -> Iterator[bytes]:
    """Lends an address at which the socket's file is reached, however long its path is. Raises OSError."""
    if len(path) <= LONGEST_NAME:
        yield path
        return
    with owned(os.open(path, os.O_PATH | os.O_CLOEXEC)) as descriptor:
        yield b"/proc/self/fd/%d" % descriptor


def _real(path: bytes) -> bytes:
    # The state directory may be a link; the socket's file may not.
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _refuse_others(parent: int, name: bytes, path: bytes) -> None:
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise NotASocket(f"{legible(path)} is no socket. Move it away.")


def _bind(listener: socket.socket, parent: int) -> None:
    """Gives the socket a file of mode 0600: the descriptor's mode becomes the file's, less the umask.

    A umask is the whole process's and not ours to change; bits that it takes from the owner are given back.
    """
    os.fchmod(listener.fileno(), MODE)
    listener.bind(b"/proc/self/fd/%d/%s" % (parent, NEW))
    os.chmod(NEW, MODE, dir_fd=parent)


def _split(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise BadAddress(f"{address!r}: write an IPv6 address as [host]:port")
    if not (host and colon and port.isascii() and port.isdecimal() and len(port) < 6 and int(port) < 65536):
        raise BadAddress(f"{address!r} is no host:port")
    return host, int(port)


def _resolved(address: str, host: str, port: int) -> tuple[int, tuple[object, ...]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise BadAddress(f"{address!r}: no such host ({error})") from error
    family, _, _, _, where = found[0]
    return family, where


def _meaning(address: str, error: OSError) -> Exception:
    if error.errno == errno.EADDRINUSE:
        return AddressInUse(f"{address} is in use by another process")
    if error.errno == errno.EADDRNOTAVAIL:
        return BadAddress(f"{address!r} is no address of this machine")
    return error


def _take(descriptor: int) -> socket.socket:
    try:
        os.set_inheritable(descriptor, False)
        taken = socket.socket(fileno=descriptor)
    except OSError as error:
        raise BadInheritance(f"descriptor {descriptor} is no socket ({error.strerror})") from error
    if _listens(taken):
        return taken
    taken.close()
    raise BadInheritance(f"descriptor {descriptor} is no stream socket that listens")


def _listens(taken: socket.socket) -> bool:
    return (
        taken.family in FAMILIES
        and taken.type == socket.SOCK_STREAM
        and taken.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    )
