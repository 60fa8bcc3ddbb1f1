"""What the environment says before any file is read: where the state directory is, and who is calling.

Imports nothing but `os`: the thin client needs this and little else.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as in `typing`, whose import costs too much here
if TYPE_CHECKING:
    from collections.abc import Mapping

SOCKET = b"laneyard.sock"
NAME = 100  # characters of the caller's name; an HTTP header carries it


def environment() -> dict[str, str]:
    """Returns a copy of the environment of this process."""
    return dict(os.environ)


def state_directory(given: str | None, values: Mapping[str, str]) -> bytes:
    """Returns the absolute path of the state directory. Raises OSError where that needs a lost directory."""
    return os.path.abspath(os.fsencode(given or _default(values)))


def client(values: Mapping[str, str]) -> str:
    """Returns the name under which the log knows the caller: at most 100 printable characters of ASCII."""
    named = values.get("LANEYARD_CLIENT", "").strip()[:NAME].strip() or "laneyard"
    return "".join(each if each.isascii() and each.isprintable() else "?" for each in named)


def _default(values: Mapping[str, str]) -> str:
    if values.get("LANEYARD_STATE_DIR"):
        return values["LANEYARD_STATE_DIR"]
    base = values.get("XDG_STATE_HOME") or os.path.join(
        values.get("HOME") or os.path.expanduser("~"), ".local", "state"
    )
    return os.path.join(base, "laneyard")
