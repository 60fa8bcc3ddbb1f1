"""Hints that something has changed on disk. They carry no facts: whoever gets one looks for itself."""

import os
from collections.abc import Iterator

from watchfiles import watch

BEAT = (
    1000  # milliseconds after which a hint comes anyway: where a file system sends no events, we still look
)


def hints(directory: bytes) -> Iterator[None]:
    """Yields now, whenever something in the directory may have changed, and at least once in a beat."""
    yield
    for _ in watch(
        os.fsdecode(directory),
        debounce=50,
        rust_timeout=BEAT,
        yield_on_timeout=True,
        recursive=False,
        raise_interrupt=True,
    ):
        yield
