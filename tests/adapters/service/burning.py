"""A file that keeps whoever reads it at work: what a dead file system does to a thread, with files alone."""

from __future__ import annotations

import tomllib
from time import monotonic

MEASURED = 4000  # parts of one key, which the standard library's parser compares each with all before it


def key_that_takes(seconds: float) -> str:
    """Returns a line of TOML that takes about so long to read here, and never less than half of it."""
    begun = monotonic()
    tomllib.loads(_key(MEASURED))
    once = monotonic() - begun
    return _key(int(MEASURED * max(seconds / once, 1.0) ** 0.5))


def _key(parts: int) -> str:
    return "a." * parts + "a = 1\n"
