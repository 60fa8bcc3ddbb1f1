"""Where a command is given, as bytes that mean the same in any process."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as in `typing`, whose import costs too much here
if TYPE_CHECKING:
    from argparse import Namespace

    from adapters.cli.thin import Wanted

LONGEST = 4095  # bytes of a path that the system takes (PATH_MAX with its end)


def here(arguments: Namespace | Wanted) -> bytes:
    """Returns the absolute path by which the repository is meant. Raises OSError in a lost directory."""
    named = arguments.repository
    if named is None:
        return os.getcwdb()
    path = os.fsencode(named)
    return path if os.path.isabs(path) else os.path.join(os.getcwdb(), path)


def near() -> bytes | None:
    """Returns the current directory, from which relative paths are taken, or None where it is lost."""
    try:
        return os.getcwdb()
    except OSError:
        return None
