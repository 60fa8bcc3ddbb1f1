"""A failure has a stable code, and says whether trying again may help."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from adapters.files.errors import LockFileHeld, LockHeld, NotRegular, Unstable
from adapters.files.oslock import OsLock
from adapters.git.errors import (
    ForeignLock,
    GitFailed,
    GitMissing,
    GitNotStarted,
    GitTimedOut,
    RegistrationUnreadable,
)
from adapters.performer import world as means
from adapters.performer.world import not_done
from domain.effects import Lock, Locked, NotDone
from tests.adapters.snapshots.lanes import REASON
from tests.sagas.trees import walk

if TYPE_CHECKING:
    from tests.adapters.snapshots.lanes import Lane

CALL = (b"update-ref",)
CODES: list[tuple[Exception, str, bool]] = [
    (LockHeld(b"/lock", "1 other"), "locked", True),
    (LockFileHeld(b"/index"), "locked", True),
    (Unstable(b"/file"), "changing", True),
    (ForeignLock(b"theirs"), "foreign_lock", False),
    (GitTimedOut(CALL, 1.0), "git_timed_out", False),
    (GitFailed(CALL, 128, b"fatal: write error: No space left on device\n"), "disk_full", False),
    (GitFailed(CALL, 128, b"error: unable to write file objects/aa/bb\n"), "disk_full", False),
    (GitFailed(CALL, 128, b"fatal: Disk quota exceeded\n"), "disk_full", False),
    (GitFailed(CALL, 128, b"fatal: bad object\n"), "git_failed", False),
    (GitFailed(CALL, -9, b""), "git_failed", True),
    (GitFailed(CALL, 128, b"fatal: Unable to create '/r/refs/x.lock': File exists.\n"), "locked", True),
    (GitFailed(CALL, 128, b"fatal: Unable to create '/r/x.lock': Not a directory\n"), "git_failed", False),
    (GitFailed(CALL, 128, b"error: cannot lock ref 'x': is at 1 but expected 2\n"), "git_failed", False),
    (GitNotStarted(CALL, OSError(errno.EMFILE, "many")), "git_failed", True),
    (OSError(errno.EMFILE, "many"), "io_failed", True),
    (OSError(errno.ENFILE, "many"), "io_failed", True),
    (GitMissing(CALL, FileNotFoundError(errno.ENOENT, "none", "git")), "git_failed", False),
    (RegistrationUnreadable(b"/admin", "missing"), "git_failed", False),
    (OSError(errno.ENOSPC, "full"), "disk_full", False),
    (OSError(errno.EDQUOT, "quota"), "disk_full", False),
    (OSError(errno.EACCES, "no"), "not_permitted", False),
    (OSError(errno.EPERM, "no"), "not_permitted", False),
    (OSError(errno.EROFS, "no"), "read_only", False),
    (OSError(errno.EXDEV, "no"), "crosses_file_systems", False),
    (OSError(errno.EEXIST, "no"), "path_in_use", False),
    (OSError(errno.ENOTEMPTY, "no"), "path_in_use", False),
    (OSError(errno.ENOENT, "no"), "missing", False),
    (OSError(errno.EIO, "no"), "io_failed", False),
    (OSError("without a number"), "io_failed", False),
    (NotRegular(b"/file"), "io_failed", False),
]


@pytest.mark.parametrize(("error", "code", "transient"), CODES, ids=lambda each: str(each)[:40])
def test_a_failure_has_its_code(error: Exception, code: str, transient: bool) -> None:
    outcome = not_done("move", error)
    assert (outcome.step, outcome.code, outcome.transient) == ("move", code, transient)
    assert outcome.reason


def test_a_reason_can_be_written_down_whatever_the_path(tmp_path: object) -> None:
    error = FileNotFoundError(errno.ENOENT, "No such file", b"/a\xff")
    not_done("move", error).reason.encode()


async def test_a_repository_that_another_process_keeps_is_locked(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(means, "LOCK_PATIENCE", 0.01)
    effect = Lock(repository=lane.repository, admin=lane.place.admin, reason=REASON)
    assert isinstance(await lane.perform(effect), Locked)
    before = walk(lane.admin)
    with OsLock(os.path.join(lane.world.common, b"laneyard/lock")).acquire(0):
        outcome = await lane.perform(effect)
    assert isinstance(outcome, NotDone)
    assert (outcome.code, outcome.transient) == ("locked", True)
    assert walk(lane.admin) == before
