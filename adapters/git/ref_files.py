"""Refs as git keeps them in files, loose or packed, read without a process. A reftable has none of these."""

from __future__ import annotations

import os

from adapters.git.repository import content

NESTING = 5  # symbolic refs may name symbolic refs; git itself gives up after five


def from_files(common: bytes, ref: bytes) -> str | None:
    """Returns what a ref names where refs are files; a loose one goes before a packed one."""
    for _ in range(NESTING):
        text = content(os.path.join(common, ref))
        if text is None:
            return packed(common, ref)
        if not text.startswith(b"ref:"):
            return text.decode("ascii")
        ref = text.removeprefix(b"ref:").strip()
    return None


def packed(common: bytes, ref: bytes) -> str | None:
    """Returns what a packed ref names."""
    try:
        with open(os.path.join(common, b"packed-refs"), "rb") as lines:
            for line in lines:
                if line.endswith(b" " + ref + b"\n"):
                    return line.partition(b" ")[0].decode("ascii")
    except FileNotFoundError:
        return None
    return None
