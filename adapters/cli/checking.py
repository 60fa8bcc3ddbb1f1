"""What is refused alike whoever would do the work: what no JSON can hold, and what is too long."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adapters.cli.whereabouts import LONGEST, here

if TYPE_CHECKING:
    from argparse import Namespace

NAME = 100  # characters of a lane's name, and bytes of a branch's that are never too many
BASE = 4096  # characters of a revision


def check(arguments: Namespace) -> None:
    """Refuses arguments that can mean nothing.

    Raises NotARepository, NoSuchLane, InvalidName, InvalidBranchName, UnknownBase, InvalidOwner,
    NoSuchSnapshot.
    """
    if arguments.repository is not None and len(here(arguments)) > LONGEST:
        from domain.errors import NotARepository

        raise NotARepository(arguments.repository)
    for lane in (getattr(arguments, "lane", None), getattr(arguments, "parent", None)):
        if lane is not None and not 0 < len(os.fsencode(lane)) <= LONGEST:
            from domain.errors import NoSuchLane

            raise NoSuchLane(lane)
    if arguments.command == "create":
        _check_creation(arguments)
    if arguments.command == "restore" and arguments.snapshot is not None and not _is_text(arguments.snapshot):
        from domain.errors import NoSuchSnapshot

        raise NoSuchSnapshot(arguments.snapshot)


def _check_creation(arguments: Namespace) -> None:
    name, base, branch, owner = arguments.name, arguments.base, arguments.branch, arguments.owner
    given = (name, base or "", branch or "", owner)
    if all(map(_is_text, given)) and max(map(len, given)) <= NAME:
        return
    from domain.errors import InvalidOwner, UnknownBase
    from domain.naming import branch_ref, slugify

    slugify(name)
    if branch is not None:
        branch_ref(branch)
    if base is not None and (not _is_text(base) or len(base) > BASE):
        raise UnknownBase(base)
    if not _is_text(owner):
        raise InvalidOwner(owner)


def _is_text(argument: str) -> bool:
    """Tells whether an argument is UTF-8: any other byte stands in it as half a surrogate pair."""
    return argument.isascii() or not any("\ud800" <= each <= "\udfff" for each in argument)
