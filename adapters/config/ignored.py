"""What is configured of ignored files, and how much of what a repository says of itself is believed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from adapters.ignored.classes import Rules
from adapters.ignored.patterns import Patterns

if TYPE_CHECKING:
    from collections.abc import Iterable

Bytes = Annotated[int, Meta(ge=0, le=1 << 50)]


class IgnoredSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user's patterns, the repositories whose own `rebuildable` count, and how much is captured."""

    rebuildable: tuple[str, ...] = ()
    precious: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()
    capture_limit: Bytes = 256 << 20


class RepositoryIgnored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a repository says of itself: it can always make us more careful, and less only where trusted."""

    rebuildable: tuple[str, ...] = ()
    precious: tuple[str, ...] = ()
    capture_limit: Bytes | None = None


def check(ignored: IgnoredSettings | RepositoryIgnored) -> None:
    """Raises ValueError for a pattern that is none, or a trusted repository without an absolute path."""
    Patterns(ignored.rebuildable)
    Patterns(ignored.precious)
    for path in getattr(ignored, "trusted", ()):
        if not os.path.isabs(path):
            raise ValueError(f"ignored.trusted: {path[:40]!r} is no absolute path")


def rules(
    user: IgnoredSettings, own: RepositoryIgnored | None, root: bytes, wanted: Iterable[str] | bool = ()
) -> Rules:
    """Returns the rules for the repository with this main checkout.

    `wanted` are a request's patterns, or true where it asks for all that is not rebuildable.
    """
    said = own or RepositoryIgnored()
    trusted = is_trusted(user, root)
    return Rules(
        rebuildable=Patterns(user.rebuildable),
        trusted=Patterns(said.rebuildable if trusted else ()),
        precious=Patterns(user.precious),
        added=Patterns(said.precious),
        untrusted=Patterns(() if trusted else said.rebuildable),
        wanted=Patterns(() if isinstance(wanted, bool) else wanted),
        everything=wanted is True,
    )


def is_trusted(user: IgnoredSettings, root: bytes) -> bool:
    """Tells whether the user lets the repository declare what is rebuildable."""
    here = os.path.realpath(root)
    return any(os.path.realpath(os.fsencode(path)) == here for path in user.trusted)


def capture_limit(user: IgnoredSettings, own: RepositoryIgnored | None) -> tuple[int, str]:
    """Returns the bytes of ignored files that a snapshot may be asked to hold, and the file that says so.

    A repository may lower it.
    """
    if own is None or own.capture_limit is None or own.capture_limit >= user.capture_limit:
        return user.capture_limit, "config.toml"
    return own.capture_limit, ".laneyard.toml"
