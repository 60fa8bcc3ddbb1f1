"""Class 7: names, depths, sizes, links, times, attributes and kinds of entries."""

from __future__ import annotations

import errno
import os
import socket
import stat
from typing import TYPE_CHECKING

from tests.roundtrip.scene import LAST, NotHere, Spot, move

if TYPE_CHECKING:
    from collections.abc import Iterator


@move(7)
def empty_directories(spot: Spot) -> Iterator[None]:
    """Empty directories, and one that was emptied"""
    spot.write(b"emptied/file")
    yield
    spot.directory(b"a/b/c")
    spot.directory(b"a/d")
    os.chmod(spot.directory(b"e"), 0o711)
    os.unlink(spot.at(b"emptied/file"))


NAMES = (
    b"new\nline",
    b"\xff\xfe not UTF-8",
    b"n" * 255,
    b"-dash",
    b"--force",
    b"back\\slash",
    b":(top)magic",
    b'quo"te',
    b"tab\there",
    b"trailing ",
    b"trailing.",
    b"*?[glob]",
    b"%41",
    b"~",
    b"CON",
    b"A",
    b"a",
    b"\x01\x1b[31m",
)


@move(7)
def names(spot: Spot) -> Iterator[None]:
    """Names of any bytes, tracked, changed and untracked"""
    chosen = spot.rng.sample(NAMES, 9)
    for name in chosen[:6]:
        spot.write(name)
    yield
    for name in chosen[:3]:
        spot.write(name, b"changed\n")
    for name in chosen[6:]:
        spot.write(name)
        spot.write(b"dir/" + name + b"/" + name)


@move(7)
def names_like_git(spot: Spot) -> None:
    """Untracked names that git takes for its own: `.GIT`, `git~1`, `.git ` and the like"""
    for name in (b".GIT", b"git~1", b".git ", b"x/.Git/config", b".gitmodules.", b".git\xe2\x80\x8c"):
        spot.write(name)


@move(7)
def deep(spot: Spot) -> None:
    """A tree deeper than PATH_MAX"""
    descriptor = os.open(spot.directory(b"deep"), os.O_RDONLY | os.O_DIRECTORY)
    for number in range(spot.rng.choice((21, 25))):
        name = b"%03d" % number + b"d" * 200
        os.mkdir(name, dir_fd=descriptor)
        lower = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = lower
    file = os.open(b"file", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=descriptor)
    os.write(file, b"down here\n")
    os.close(file)
    os.symlink(b"file", b"link", dir_fd=descriptor)
    os.close(descriptor)


@move(7)
def long_paths(spot: Spot) -> None:
    """A path just short of PATH_MAX"""
    path = b"/".join([b"l" * 200] * 18)
    spot.write(path + b"/file")


@move(7)
def sparse_big_file(spot: Spot) -> None:
    """An untracked file of 20 MiB with holes"""
    with open(spot.at_new(b"big"), "wb") as file:
        file.write(b"start")
        file.seek(20 << 20)
        file.write(spot.own)


@move(7)
def big_changed(spot: Spot) -> Iterator[None]:
    """A tracked file that was changed into one of 9 MiB, staged and changed again"""
    spot.write(b"big")
    yield
    spot.git("add", "--", spot.write(b"big", b"staged line\n" * 800_000))
    spot.write(b"big", b"worked line\n" * 800_000)


@move(7)
def hard_links(spot: Spot) -> Iterator[None]:
    """Hard links: of untracked files, of tracked ones, and between the two"""
    for name in (b"one", b"two", b"three"):
        spot.write(name)
    spot.write(b"equal-1", b"equal\n")
    spot.write(b"equal-2", b"equal\n")
    yield
    os.link(spot.at(b"one"), spot.at(b"new"))
    os.unlink(spot.at(b"two"))
    os.link(spot.at(b"three"), spot.at(b"two"))
    os.unlink(spot.at(b"equal-2"))
    os.link(spot.at(b"equal-1"), spot.at(b"equal-2"))
    spot.write(b"dir/a")
    os.link(spot.at(b"dir/a"), spot.at(b"dir/b"))
    os.link(spot.at(b"dir/a"), spot.at(b"c"))


@move(7)
def hard_link_outside(spot: Spot) -> Iterator[None]:
    """Files that have another name outside of the lane, and none in it"""
    spot.write(b"tracked")
    yield
    os.link(spot.at(b"tracked"), os.fsencode(spot.world.home / "outside-1"))
    spot.write(b"untracked")
    os.link(spot.at(b"untracked"), os.fsencode(spot.world.home / "outside-2"))


TIMES = (0, 1, -1, -(10**18), 4_102_444_800_123_456_789, 1_700_000_000_000_000_001, 999_999_999)


@move(7, order=LAST + 8)
def times(spot: Spot) -> Iterator[None]:
    """Times of change: nanoseconds, 1970, before it, 2100; of files, links and directories"""
    spot.write(b"tracked")
    spot.write(b"dir/tracked")
    spot.link(b"link", b"tracked")
    yield
    spot.write(b"dir/untracked")
    for name in (b"tracked", b"link", b"dir/tracked", b"dir/untracked", b"dir", b""):
        when = spot.rng.choice(TIMES)
        os.utime(spot.at(name), ns=(when, when), follow_symlinks=False)


@move(7, order=LAST + 9)
def root_itself(spot: Spot) -> None:
    """The lane's own directory: its mode and its time"""
    os.chmod(spot.scene.place, spot.rng.choice((0o700, 0o775, 0o2755, 0o1777)))
    os.utime(spot.scene.place, ns=(10**18 + 1, 10**18 + 1))


@move(7)
def attributes(spot: Spot) -> Iterator[None]:
    """Extended attributes of clean, changed and untracked files, and of directories"""
    spot.write(b"clean")
    spot.write(b"changed")
    yield
    spot.write(b"changed", b"changed\n")
    spot.write(b"dir/new")
    for name in (b"clean", b"changed", b"dir/new", b"dir"):
        try:
            os.setxattr(spot.at(name), b"user.laneyard", b"\0" + name)
            os.setxattr(spot.at(name), b"user.empty", b"")
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EPERM):
                raise
            raise NotHere(f"no extended attributes: {error}") from error


@move(7, order=LAST + 6)
def read_only_directories(spot: Spot) -> Iterator[None]:
    """Read-only directories, with tracked and untracked files in them"""
    spot.write(b"tracked/file")
    yield
    spot.write(b"cache/deep/file")
    for name in (b"cache/deep", b"cache", b"tracked"):
        os.chmod(spot.at(name), 0o555)


@move(7, order=LAST + 6)
def directory_modes(spot: Spot) -> Iterator[None]:
    """Permissions of directories, set-group-id and sticky bits included"""
    spot.write(b"tracked/file")
    yield
    for number in range(3):
        spot.write(b"d%d/file" % number)
        os.chmod(spot.at(b"d%d" % number), 0o500 | spot.rng.randrange(0o10000))
    os.chmod(spot.at(b"tracked"), 0o2770)


@move(7)
def unreadable(spot: Spot) -> None:
    """A file and a directory that nobody may read"""
    if os.geteuid() != 0:
        raise NotHere("only root reads what nobody may read")
    spot.write(b"file", mode=0)
    spot.write(b"dir/file")
    os.chmod(spot.at(b"dir"), 0)


@move(7, holds="special-file")
def fifo(spot: Spot) -> None:
    """A FIFO"""
    os.mkfifo(spot.at_new(b"fifo"))


@move(7, holds="special-file")
def unix_socket(spot: Spot) -> None:
    """A socket"""
    spot.directory(b"")
    with socket.socket(socket.AF_UNIX) as server:
        descriptor = os.open(spot.at(), os.O_RDONLY | os.O_DIRECTORY)
        server.bind(f"/proc/self/fd/{descriptor}/s")
        os.close(descriptor)


@move(7, holds="special-file")
def device(spot: Spot) -> None:
    """A device"""
    try:
        os.mknod(spot.at_new(b"null"), 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError as error:
        raise NotHere("only root makes devices") from error
