"""All moves, by their modules."""

from __future__ import annotations

from tests.roundtrip import (
    kinds,
    moves_anywhere,
    moves_files,
    moves_head,
    moves_ignored,
    moves_index,
    moves_nested,
    moves_operations,
    moves_shapes,
)

LOADED = (
    moves_files,
    moves_anywhere,
    moves_index,
    moves_head,
    moves_operations,
    moves_ignored,
    moves_nested,
    moves_shapes,
    kinds,
)
