"""Which repository a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters import repositories
from adapters.cli.whereabouts import here
from domain.errors import NotARepository
from domain.paths import pack

if TYPE_CHECKING:
    from argparse import Namespace


def scope(arguments: Namespace) -> str | None:
    """Returns the key of the repository that is meant, or None if that could be any."""
    try:
        return pack(repositories.find(here(arguments)).common_dir)
    except NotARepository:
        if arguments.repository is not None:
            raise
        return None
