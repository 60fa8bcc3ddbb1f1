"""What the files of a lane's registration say now, without a process: its branch and its HEAD."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from adapters.files.errors import words
from adapters.git.errors import GitError, RegistrationUnreadable
from adapters.git.heads import OID, read_head
from adapters.git.ref_files import from_files
from adapters.git.registration import pointers_agree
from adapters.git.repository import common_directory, pointer
from domain.paths import unpack

if TYPE_CHECKING:
    from adapters.store.reader import Record

Now = dict[str, Any]
NO_TREE = "the lane has no tree"
PRESENT, BRANCH, HEAD = "present", "branch_now", "head_now"


def glance(row: Record, at: str) -> dict[str, Now]:
    """Returns what is seen of a lane at a time, each value with it or why it is unknown."""
    if row["path"] is None or row["state"] == "reaped":
        gone = {"unknown": NO_TREE}
        return {PRESENT: {"value": False, "at": at}, BRANCH: gone, HEAD: gone}
    there, (branch, head) = _presence(unpack(str(row["path"])), at), _heads(row, at)
    return {PRESENT: there, BRANCH: branch, HEAD: head}


def _presence(path: bytes, at: str) -> Now:
    try:
        os.lstat(path)
    except FileNotFoundError:
        return {"value": False, "at": at}
    except OSError as error:
        return {"unknown": words(error)}
    return {"value": True, "at": at}


def _heads(row: Record, at: str) -> tuple[Now, Now]:
    """Returns the branch (null where HEAD is detached) and the commit."""
    try:
        common, git_dir = unpack(str(row["repository"])), _registration(row)
        text = _head(git_dir)
        if not text.startswith(b"ref:"):
            return {"value": None, "at": at}, _commit(text.decode("ascii", "replace"), at)
        ref = text.removeprefix(b"ref:").strip()
        _require_files(common)
        commit = _commit(from_files(common, ref), at)
    except (GitError, OSError, ValueError) as error:
        unknown = {"unknown": words(error)}
        return unknown, unknown
    try:
        return {"value": ref.decode("utf-8"), "at": at}, commit
    except UnicodeDecodeError:
        return {"unknown": "the branch's name is not UTF-8"}, commit


def _registration(row: Record) -> bytes:
    """Returns the lane's git directory; raises RegistrationUnreadable where it and the tree disagree."""
    common, path = unpack(str(row["repository"])), unpack(str(row["path"]))
    if row["kind"] == "primary":
        return common
    git_dir = pointer(os.path.join(path, b".git"))
    if why := pointers_agree(git_dir, path):
        raise RegistrationUnreadable(path, why)
    if common_directory(git_dir) != common:
        raise RegistrationUnreadable(path, "it belongs to another repository")
    return git_dir


def _head(git_dir: bytes) -> bytes:
    text = read_head(git_dir)
    if not text:
        raise RegistrationUnreadable(os.path.join(git_dir, b"HEAD"), "missing or empty")
    return text


def _require_files(common: bytes) -> None:
    if os.path.isdir(os.path.join(common, b"reftable")):
        raise RegistrationUnreadable(common, "its refs are kept in a reftable")


def _commit(found: str | None, at: str) -> Now:
    if found is None:
        return {"unknown": "HEAD is on a branch without a commit"}
    if not OID.fullmatch(found):
        return {"unknown": "HEAD or its branch is damaged"}
    return {"value": found, "at": at}
