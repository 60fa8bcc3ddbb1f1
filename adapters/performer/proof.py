"""The proof that we have deleted a tree: a directory that is not there may as well have been moved away.

It is a small file in the tree's registration, on the disk before the root goes and after all else has gone,
and goes with the registration. A registration that is not there, or is another tree's by now, holds no proof.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adapters.files.durable import TEMPORARY, remove_file, replace, write_new
from adapters.git.repository import canonical, content
from domain.paths import unpack

if TYPE_CHECKING:
    from domain.effects import Destroy

NAME = TEMPORARY + b"deleted"


def give(effect: Destroy) -> None:
    """Writes down that nothing is left of the explained tree but its pointer and its root. Raises OSError."""
    if _is_registered(effect):
        replace(_path(effect), _text(effect))


def is_given(effect: Destroy) -> bool:
    """Tells whether this very tree, as it was explained, was deleted by us. Raises RegistrationUnreadable."""
    return _is_registered(effect) and content(_path(effect)) == _text(effect).rstrip()


def take_back(effect: Destroy) -> None:
    """Makes sure that nothing speaks for a tree that is there. Raises OSError."""
    path = _path(effect)
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


def _path(effect: Destroy) -> bytes:
    return os.path.join(unpack(effect.place.admin), NAME)


def _text(effect: Destroy) -> bytes:
    """Returns what only the proof for this directory and this explanation says."""
    which = effect.place.identity
    return f"{effect.digest} {which.device} {which.inode} {which.born_ns}\n".encode()
