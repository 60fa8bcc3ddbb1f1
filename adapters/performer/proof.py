"""The proof that we have deleted a tree: a directory that is not there may as well have been moved away.

It is a small file in the tree's registration, on the disk before the root goes and after all else has gone,
and goes with the registration. A registration that is not there, or is another tree's by now, holds no proof.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from adapters.files.durable import TEMPORARY, read_file, remove_file, replace, write_new
from adapters.git.errors import RegistrationUnreadable
from adapters.git.repository import canonical, content
from domain.effects import Destroy
from domain.paths import unpack

if TYPE_CHECKING:
    from domain.evidence import Place

NAME = TEMPORARY + b"deleted"
LIMIT = 1 << 28  # bytes of a proof: it names what a consent names


def give(effect: Destroy) -> None:
    """Writes down that nothing is left of the explained tree but its pointer and its root. Raises OSError."""
    if _is_registered(effect):
        replace(_path(effect.place), _text(effect) + msgspec.json.encode(effect))


def is_given(effect: Destroy) -> bool:
    """Tells whether this very tree, as it was explained, was deleted by us. Raises RegistrationUnreadable."""
    return _is_registered(effect) and _given(effect.place).startswith(_text(effect))


def of(place: Place) -> Destroy | None:
    """Returns the deletion that its proof tells of, if the registration is that tree's and has one.

    Raises RegistrationUnreadable.
    """
    _, _, said = _given(place).partition(b"\n")
    if not said:  # nor had an earlier version anything to say here
        return None
    try:
        effect = msgspec.json.decode(said, type=Destroy)
    except msgspec.DecodeError as error:
        raise RegistrationUnreadable(_path(place), f"the proof of a deletion is damaged: {error}") from error
    return effect if effect.place == place and _is_registered(effect) else None


def take_back(effect: Destroy) -> None:
    """Makes sure that nothing speaks for a tree that is there. Raises OSError."""
    path = _path(effect.place)
    if os.path.lexists(path):
        remove_file(path)


def keep_pointer(effect: Destroy) -> None:
    """Gives a tree that stays its `.git` file again, so that it stays a worktree. Raises OSError."""
    root, admin = unpack(effect.place.path), unpack(effect.place.admin)
    path = os.path.join(root, b".git")
    if _is_registered(effect) and not os.path.lexists(path):
        write_new(path, b"gitdir: %s\n" % admin, 0o644)


def _is_registered(effect: Destroy) -> bool:
    root, admin = unpack(effect.place.path), unpack(effect.place.admin)
    pointer = content(os.path.join(admin, b"gitdir"))
    if not pointer:
        return False
    return canonical(os.path.join(admin, pointer)) == canonical(os.path.join(root, b".git"))


def _path(place: Place) -> bytes:
    return os.path.join(unpack(place.admin), NAME)


def _given(place: Place) -> bytes:
    """Returns what the proof says, or nothing where there is none."""
    path = _path(place)
    return read_file(path, LIMIT) if os.path.lexists(path) else b""


def _text(effect: Destroy) -> bytes:
    """Returns what only the proof for this directory and this explanation says."""
    which = effect.place.identity
    return f"{effect.digest} {which.device} {which.inode} {which.born_ns}\n".encode()
