"""Names: from what a person types to a slug, a branch and a directory.

The slug rule is the worktree-isolation seed's: lower case, runs of other characters become one dash, dashes
trimmed, and a name that leaves nothing becomes `lane`. Branch rules are those of git-check-ref-format(1).
"""

import re

from domain.errors import InvalidBranchName, InvalidName

NAME_LIMIT = 100  # characters; leaves room for suffixes within the 255 bytes of a directory name
BRANCH_LIMIT = 200  # bytes: a ref is a file name below refs/heads, plus git's `.lock`

_RUN = re.compile(r"[^a-z0-9]+")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)")


def slugify(name: str) -> str:
    """Returns the slug of a lane's name.

    Raises:
        InvalidName: the name is empty, longer than `NAME_LIMIT` characters or holds control characters.
    """
    if not name.strip():
        raise InvalidName(name, "it is empty")
    if len(name) > NAME_LIMIT:
        raise InvalidName(name[:40] + "…", f"it is longer than {NAME_LIMIT} characters")
    if any(not character.isprintable() for character in name):
        raise InvalidName(name, "it holds characters that cannot be printed")
    return _RUN.sub("-", name.lower()).strip("-") or "lane"


def numbered(slug: str, attempt: int) -> str:
    """Returns the slug for the attempt-th try (1, 2, …): `fix`, `fix-2`, `fix-3`."""
    return slug if attempt == 1 else f"{slug}-{attempt}"


def branch_ref(name: str) -> str:
    """Returns the full name of a branch.

    Raises:
        InvalidBranchName: git would not take the name.
    """
    short = name.removeprefix("refs/heads/")
    flawed = (
        not short
        or short in ("@", "HEAD")
        or short[0] in "-./"
        or short[-1] in "./"
        or _FORBIDDEN.search(short)
        or any("\ud800" <= character <= "\udfff" for character in short)
        or len(short.encode("utf-8")) > BRANCH_LIMIT
    )
    if flawed:
        raise InvalidBranchName(name)
    return f"refs/heads/{short}"


def short_branch(ref: str | None) -> str | None:
    """Returns a branch as people call it."""
    return None if ref is None else ref.removeprefix("refs/heads/")
