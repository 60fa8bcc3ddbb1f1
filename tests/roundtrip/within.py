"""Paths below other paths."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet


def within(path: bytes, roots: AbstractSet[bytes]) -> bool:
    """Tells whether a path is one of the roots, or below one."""
    while path and path not in roots:
        path = os.path.dirname(path)
    return path in roots if roots else False
