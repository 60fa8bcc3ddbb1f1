"""Class 1: tracked files that differ from the index, and untracked ones."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from tests.roundtrip.scene import LAST, Spot, move

if TYPE_CHECKING:
    from collections.abc import Iterator


@move(1)
def nothing(spot: Spot) -> None:
    """A lane with nothing but commits of its own"""


@move(1)
def changed(spot: Spot) -> Iterator[None]:
    """A changed file, not staged"""
    spot.write(b"file")
    yield
    spot.write(b"file", b"changed\0\xff\n" * spot.rng.randrange(1, 3000))


@move(1)
def untracked(spot: Spot) -> None:
    """Untracked files"""
    for number in range(spot.rng.randrange(1, 5)):
        spot.write(b"d%d/new" % number, mode=spot.rng.choice((0o644, 0o600, 0o755)))
    spot.write(b"empty")
    os.truncate(spot.at(b"empty"), 0)


@move(1)
def deleted(spot: Spot) -> Iterator[None]:
    """A deleted file, and a deleted directory"""
    spot.write(b"file")
    spot.write(b"dir/a")
    spot.write(b"dir/b")
    spot.write(b"kept")
    yield
    os.unlink(spot.at(b"file"))
    shutil.rmtree(spot.at(b"dir"))


@move(1)
def renamed(spot: Spot) -> Iterator[None]:
    """A file renamed by hand"""
    spot.write(b"from", b"as long as it takes\n" * 20)
    yield
    os.renames(spot.at(b"from"), spot.at(b"to/here"))


@move(1)
def same_size_and_time(spot: Spot) -> Iterator[None]:
    """A file changed to another content of the same size and time"""
    spot.write(b"file", b"one\n")
    yield
    old = os.lstat(spot.at(b"file"))
    with open(spot.at(b"file"), "r+b") as file:
        file.write(b"two\n")
    os.utime(spot.at(b"file"), ns=(old.st_atime_ns, old.st_mtime_ns))


@move(1)
def file_becomes_link(spot: Spot) -> Iterator[None]:
    """A file that has become a symbolic link"""
    spot.write(b"x")
    yield
    os.unlink(spot.at(b"x"))
    spot.link(b"x", b"../somewhere")


@move(1)
def link_becomes_file(spot: Spot) -> Iterator[None]:
    """A symbolic link that has become a file"""
    spot.link(b"x", b"target")
    yield
    os.unlink(spot.at(b"x"))
    spot.write(b"x", b"target")


@move(1)
def file_becomes_directory(spot: Spot) -> Iterator[None]:
    """A file that has become a directory"""
    spot.write(b"x")
    yield
    os.unlink(spot.at(b"x"))
    spot.write(b"x/inner")


@move(1)
def directory_becomes_file(spot: Spot) -> Iterator[None]:
    """A directory that has become a file"""
    spot.write(b"x/inner")
    spot.write(b"x/more/inner")
    yield
    shutil.rmtree(spot.at(b"x"))
    spot.write(b"x")


@move(1)
def directory_becomes_link(spot: Spot) -> Iterator[None]:
    """A directory replaced by a link to one with the same files"""
    spot.write(b"x/inner", b"same\n")
    yield
    os.rename(spot.at(b"x"), spot.at(b"y"))
    spot.link(b"x", b"y")


@move(1)
def modes(spot: Spot) -> Iterator[None]:
    """Permissions, set-user-id and sticky bits included"""
    for number in range(4):
        spot.write(b"tracked-%d" % number)
    yield
    for number in range(4):
        os.chmod(spot.at(b"tracked-%d" % number), 0o400 | spot.rng.randrange(0o10000))
        spot.write(b"untracked-%d" % number, mode=0o400 | spot.rng.randrange(0o10000))
    os.chmod(spot.at(b"tracked-0"), spot.rng.choice((0o4755, 0o1644, 0o2711, 0o400)))


@move(1)
def executable_bit(spot: Spot) -> Iterator[None]:
    """A file that has become executable, where `core.fileMode` is off too"""
    spot.write(b"tool")
    yield
    if spot.rng.random() < 0.5:
        spot.configure("core.fileMode", "false")
    os.chmod(spot.at(b"tool"), 0o755)


@move(1)
def links(spot: Spot) -> Iterator[None]:
    """Symbolic links: dangling, absolute, to a directory, to itself, changed"""
    spot.link(b"tracked", b"one")
    yield
    os.unlink(spot.at(b"tracked"))
    spot.link(b"tracked", b"two")
    spot.directory(b"dir")
    for name, target in (
        (b"dangling", b"nowhere"),
        (b"absolute", b"/nowhere/at/all"),
        (b"to-directory", b"dir"),
        (b"loop", b"loop"),
        (b"bytes", b"\xff\n../" + b"x" * 300),
    ):
        spot.link(name, target)


def _attributed(spot: Spot, attributes: bytes, data: bytes) -> None:
    """Commits two files with the attributes; the bytes on disk are those that were written."""
    spot.write(b".gitattributes", b"*.txt " + attributes + b"\n")
    spot.write(b"same.txt", data)
    spot.write(b"edited.txt", data)


@move(1)
def crlf_text_auto(spot: Spot) -> Iterator[None]:
    """CRLF under `text=auto`: clean, changed and untracked files"""
    _attributed(spot, b"text=auto", b"one\r\ntwo\r\n")
    yield
    spot.write(b"edited.txt", b"one\r\nmixed\n\r")
    spot.write(b"new.txt", b"new\r\n")


@move(1)
def eol_crlf(spot: Spot) -> Iterator[None]:
    """LF under `eol=crlf`, which a checkout would write as CRLF"""
    _attributed(spot, b"text eol=crlf", b"one\ntwo\n")
    yield
    spot.write(b"edited.txt", b"one\nthree\r\n")


@move(1)
def autocrlf(spot: Spot) -> Iterator[None]:
    """Mixed line ends under `core.autocrlf`"""
    spot.write(b"file.txt", b"one\r\ntwo\n")
    spot.write(b"lf.txt", b"one\ntwo\n")
    spot.git("config", "core.safecrlf", "false")
    spot.git("config", "core.autocrlf", spot.rng.choice(("true", "input")))
    yield
    spot.write(b"lf.txt", b"one\nthree\n")


@move(1)
def attributes_outside(spot: Spot) -> Iterator[None]:
    """Attributes of `info/attributes`, which no commit has"""
    spot.write(b"file.outer", b"one\r\ntwo\r\n")
    common = os.path.join(spot.world.common, b"info")
    os.makedirs(common, exist_ok=True)
    with open(os.path.join(common, b"attributes"), "ab") as file:
        file.write(b"*.outer text=auto\n")
    yield
    spot.write(b"other.outer", b"three\r\n")


@move(1)
def ident(spot: Spot) -> Iterator[None]:
    """`$Id$` expanded by `ident`"""
    _attributed(spot, b"ident", b"$Id$\nand $Id: something else $\n")
    yield
    spot.write(b"edited.txt", b"$Id: 0123 $\n")


@move(1)
def working_tree_encoding(spot: Spot) -> Iterator[None]:
    """Files in UTF-16 by `working-tree-encoding`"""
    _attributed(spot, b"text working-tree-encoding=UTF-16LE", "größer\n".encode("utf-16-le"))
    yield
    spot.write(b"edited.txt", "kleiner\r\n".encode("utf-16-le"))


@move(1)
def lossy_filter(spot: Spot) -> Iterator[None]:
    """A clean filter that loses something, and that nobody may run"""
    program = spot.program("lossy", "exec tr a-z A-Z")
    spot.configure("filter.lossy.clean", program)
    spot.configure("filter.lossy.smudge", program)
    spot.configure("filter.lossy.required", "true")
    _attributed(spot, b"filter=lossy", b"Mixed Case\n")
    yield
    spot.write(b"edited.txt", b"Other Case\n")
    spot.write(b"new.txt", b"New Case\n")


LFS = """\
store='{store}'; mkdir -p "$store"
if [ "$1" = clean ]; then
    cat >"$store/new.$$"; name=$(sha256sum <"$store/new.$$" | cut -c1-64)
    mv "$store/new.$$" "$store/$name"; echo "oid $name"
else
    read -r word name; cat "$store/$name"
fi"""


@move(1)
def large_file_storage(spot: Spot) -> Iterator[None]:
    """Files of an LFS-like filter: smudged, changed, and left as pointers"""
    program = spot.program("pointers", LFS.format(store=spot.world.home / "lfs"))
    spot.configure("filter.pointers.clean", f"{program} clean")
    spot.configure("filter.pointers.smudge", f"{program} smudge")
    _attributed(spot, b"filter=pointers", b"large content\n" * 100)
    spot.write(b"pointer.txt", b"more content\n")
    yield
    spot.write(b"edited.txt", b"other content\n" * 100)
    spot.write(b"pointer.txt", b"oid %064d\n" % 7)


@move(1, order=LAST)
def root_attributes_changed(spot: Spot) -> None:
    """Attributes that come into being after everything was checked out"""
    path = os.path.join(spot.scene.place, b".gitattributes")
    with open(path, "ab") as file:
        file.write(spot.rng.choice((b"* text=auto eol=crlf\n", b"* ident\n", b"* -text\n")))
