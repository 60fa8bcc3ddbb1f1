"""Which repository a command is about."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adapters import repositories
from domain.errors import NotARepository
from domain.paths import pack

if TYPE_CHECKING:
    from argparse import Namespace


def here(arguments: Namespace) -> bytes:
    """Returns the path by which the repository is meant."""
    return os.fsencode(arguments.repository) if arguments.repository is not None else os.getcwdb()


def scope(arguments: Namespace) -> str | None:
    """Returns the key of the repository that is meant, or None if that could be any."""
    try:
        return pack(repositories.find(here(arguments)).common_dir)
    except NotARepository:
        if arguments.repository is not None:
            raise
        return None
