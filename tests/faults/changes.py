"""What somebody else may do to a lane between two of our steps, and how he takes it back."""

from __future__ import annotations

import datetime
import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from adapters import clock
from domain.events import CreationPlanned, RemovalPlanned
from tests.sagas.trees import write

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sagas.worlds import World

    Undo = Callable[[], object]
    Do = Callable[["Scene"], Undo | None]

REF = b"refs/heads/work"
LATE = b"written by somebody else\n"
MANAGED, QUARANTINE = b".laneyard/worktrees", b".laneyard/quarantine"


class Scene:
    """The lane `work` as somebody else finds it; `spoilt` are blobs that he has deleted himself."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.elsewhere = os.path.join(os.fsencode(world.home), b"elsewhere")
        self.spoilt: set[str] = set()
        self.added: set[str] = set()

    @property
    def tree(self) -> bytes | None:
        """Returns where the lane's tree is: in its place or at rest."""
        place = os.path.join(self.world.root, MANAGED, b"work")
        if os.path.isdir(place):
            return place
        rest = os.path.join(self.world.root, QUARANTINE)
        names = os.listdir(rest) if os.path.isdir(rest) else []
        return next((os.path.join(rest, each) for each in names if each.startswith(b"work-")), None)

    @property
    def admin(self) -> bytes | None:
        """Returns the lane's registration."""
        admin = os.path.join(self.world.common, b"worktrees/work")
        return admin if os.path.isdir(admin) else None

    @property
    def snapshots(self) -> list[bytes]:
        """Returns the directories of snapshots."""
        place = os.path.join(self.world.settings.state_dir, b"snapshots")
        return [each.path for each in os.scandir(place) if each.is_dir()] if os.path.isdir(place) else []

    def git(self, *arguments: str | bytes, place: bytes = b"", check: bool = True) -> bytes:
        """Runs the plain git program in the main checkout, or where it is told."""
        return self.world.git(place or self.world.root, *arguments, check=check).strip()

    def other_commit(self) -> bytes:
        """Returns a commit of somebody else's."""
        return self.git("commit-tree", "-m", "theirs", "-p", "main", "main^{tree}")

    def ref(self, name: bytes) -> bytes:
        """Returns what a ref names, or nothing."""
        return self.git("rev-parse", "--verify", "--quiet", name, check=False)

    def written(self, path: bytes) -> None:
        """Writes a file that must not be lost."""
        write(path, LATE)
        self.added.add(self.git("hash-object", "--no-filters", path).decode())

    def deleted(self, path: bytes) -> None:
        """Deletes a file."""
        self.spoilt.add(self.git("hash-object", "--no-filters", path).decode())
        os.unlink(path)


class Change(msgspec.Struct, frozen=True):
    """One thing done to a lane; `do` returns how it is taken back, or None where it cannot be done.

    What is `forever` cannot be taken back whole; `destroys` says that bytes of the lane go with it.
    """

    name: str
    do: Do
    forever: bool = False
    destroys: bool = False


def _nothing() -> None:
    pass


def _unlink(path: bytes) -> None:
    with suppress(FileNotFoundError):  # gone with its registration
        os.unlink(path)


def _set_ref(scene: Scene, ref: bytes, to: bytes) -> None:
    scene.git("update-ref", ref, to) if to else scene.git("update-ref", "-d", ref)


def branch_moved(scene: Scene) -> Undo | None:
    before = scene.ref(REF)
    scene.git("update-ref", REF, scene.other_commit())
    return lambda: _set_ref(scene, REF, before)


def branch_deleted(scene: Scene) -> Undo | None:
    before = scene.ref(REF)
    if not before:
        return None
    scene.git("update-ref", "-d", REF)
    return lambda: _set_ref(scene, REF, before)


def branch_reset_elsewhere(scene: Scene) -> Undo | None:
    before, other = scene.ref(REF), scene.other_commit()
    scene.git("worktree", "add", "-q", "--detach", scene.elsewhere, "main")
    checkout = ("checkout", "-q", "--ignore-other-worktrees", "-B", "work", other)
    scene.git(*checkout, place=scene.elsewhere)

    def undo() -> None:
        scene.git("worktree", "remove", "--force", scene.elsewhere)
        _set_ref(scene, REF, before)

    return undo


def branch_used_elsewhere(scene: Scene) -> Undo | None:
    if not scene.ref(REF):
        return None
    scene.git("worktree", "add", "-q", "--force", scene.elsewhere, "work")
    return lambda: scene.git("worktree", "remove", "--force", scene.elsewhere)


def lock_left(which: Callable[[Scene], bytes | None]) -> Do:
    """Somebody's git has a file locked, or was killed while it had."""

    def do(scene: Scene) -> Undo | None:
        path = which(scene)
        if path is None or not os.path.isdir(os.path.dirname(path)) or os.path.lexists(path):
            return None
        write(path, b"")
        return lambda: _unlink(path)

    return do


def _in_admin(name: bytes) -> Callable[[Scene], bytes | None]:
    return lambda scene: os.path.join(scene.admin, name) if scene.admin else None


def _in_common(name: bytes) -> Callable[[Scene], bytes | None]:
    return lambda scene: os.path.join(scene.world.common, name)


def _snapshot_ref(scene: Scene) -> bytes | None:
    names = scene.git("for-each-ref", "--format=%(refname)", "refs/laneyard").splitlines()
    return names[-1] if names else None


def _snapshot_lock(scene: Scene) -> bytes | None:
    ref = _snapshot_ref(scene)
    return os.path.join(scene.world.common, ref + b".lock") if ref else None


def tree_moved(scene: Scene) -> Undo | None:
    tree = scene.tree
    if tree is None:
        return None
    os.rename(tree, scene.elsewhere)
    return lambda: os.rename(scene.elsewhere, tree)


def tree_replaced(scene: Scene) -> Undo | None:
    tree = scene.tree
    if tree is None:
        return None
    os.rename(tree, scene.elsewhere)
    scene.written(os.path.join(tree, b"theirs"))
    stranger = scene.elsewhere + b"-stranger"

    def undo() -> None:
        os.rename(tree, stranger)
        os.rename(scene.elsewhere, tree)

    return undo


def tree_made_anew(scene: Scene) -> Undo | None:
    """Another directory with the same name and, where the file system gives it again, the same inode."""
    tree = scene.tree
    if tree is None:
        return None
    inode = os.stat(tree).st_ino
    os.mkdir(scene.elsewhere)
    for name in os.listdir(tree):
        os.rename(os.path.join(tree, name), os.path.join(scene.elsewhere, name))
    os.rmdir(tree)
    os.mkdir(tree)
    for number in range(20):
        if os.stat(tree).st_ino == inode:
            break
        os.rename(tree, scene.elsewhere + b"-%d" % number)
        os.mkdir(tree)
    scene.written(os.path.join(tree, b"theirs"))
    return _nothing


def removed_by_git(scene: Scene) -> Undo | None:
    if scene.tree is None:
        return None
    scene.git("worktree", "remove", "--force", "--force", scene.tree, check=False)
    return None if scene.tree else _nothing


def by_git(*arguments: str) -> Do:
    def do(scene: Scene) -> Undo:
        scene.git(*arguments, check=False)
        return _nothing

    return do


def unlocked(scene: Scene) -> Undo | None:
    if scene.tree is None:
        return None
    scene.git("worktree", "unlock", scene.tree, check=False)
    return _nothing


def locked_by_them(scene: Scene) -> Undo | None:
    tree, admin = scene.tree, scene.admin
    if tree is None or admin is None:
        return None
    write(os.path.join(admin, b"locked"), b"theirs\n")
    return lambda: _unlink(os.path.join(admin, b"locked"))


def snapshot_ref_deleted(scene: Scene) -> Undo | None:
    ref = _snapshot_ref(scene)
    if ref is None:
        return None
    before = scene.ref(ref)
    scene.git("update-ref", "-d", ref)
    return lambda: _set_ref(scene, ref, before)


def snapshot_ref_moved(scene: Scene) -> Undo | None:
    ref = _snapshot_ref(scene)
    if ref is None:
        return None
    before = scene.ref(ref)
    scene.git("update-ref", ref, "main")
    return lambda: _set_ref(scene, ref, before)


def manifest_damaged(scene: Scene) -> Undo | None:
    return _spoil([os.path.join(each, b"manifest.json") for each in scene.snapshots], b"{}")


def manifest_deleted(scene: Scene) -> Undo | None:
    return _spoil([os.path.join(each, b"manifest.json") for each in scene.snapshots], None)


def _kept(scene: Scene) -> list[bytes]:
    files = [os.path.join(each, b"files") for each in scene.snapshots]
    return [os.path.join(each, name) for each in files if os.path.isdir(each) for name in os.listdir(each)]


def files_damaged(scene: Scene) -> Undo | None:
    return _spoil(_kept(scene), b"damaged")


def files_deleted(scene: Scene) -> Undo | None:
    return _spoil(_kept(scene), None)


def _spoil(paths: list[bytes], instead: bytes | None) -> Undo | None:
    aside = [(path, path + b".aside") for path in paths if os.path.exists(path)]
    for path, other in aside:
        os.rename(path, other)
        if instead is not None:
            write(path, instead, 0o600)

    def undo() -> None:
        for path, other in aside:
            if os.path.isdir(os.path.dirname(other)):
                os.replace(other, path)

    return undo if aside else None


def file_written(scene: Scene) -> Undo | None:
    if scene.tree is None:
        return None
    scene.written(os.path.join(scene.tree, b"later"))
    return _nothing


def file_changed(scene: Scene) -> Undo | None:
    path = os.path.join(scene.tree or b"/nowhere", b"plain")
    if not os.path.exists(path):
        return None
    scene.written(path)
    return _nothing


def file_deleted(scene: Scene) -> Undo | None:
    for name in (b"untracked", b"plain"):
        path = os.path.join(scene.tree or b"/nowhere", name)
        if os.path.exists(path):
            scene.deleted(path)
            return _nothing
    return None


def rest_taken(scene: Scene) -> Undo | None:
    facts = [each.fact for each in scene.world.events()]
    made = [each for each in facts if isinstance(each, CreationPlanned) and each.slug == "work"]
    lane = made[0].lane if made else None
    taken = [each for each in facts if isinstance(each, RemovalPlanned)]
    if lane is None:
        return None
    name = b"work-%s-%d" % (lane[:8].encode(), max(len(taken), 1))
    return _take(os.path.join(scene.world.root, QUARANTINE, name))


def place_taken(scene: Scene) -> Undo | None:
    return _take(os.path.join(scene.world.root, MANAGED, b"work"))


def _take(place: bytes) -> Undo | None:
    if os.path.lexists(place):
        return None
    with suppress(FileExistsError):
        os.makedirs(os.path.dirname(place))
    if not os.path.isdir(os.path.dirname(place)):
        return None
    os.mkdir(place)

    def undo() -> None:
        with suppress(OSError):  # git makes worktrees in empty directories
            os.rmdir(place)

    return undo


def repository_moved(scene: Scene) -> Undo | None:
    os.rename(scene.world.root, scene.elsewhere)
    return lambda: os.rename(scene.elsewhere, scene.world.root)


def unmounted(which: Callable[[Scene], bytes]) -> Do:
    """An empty directory is where something else was; nothing may be put there."""

    def do(scene: Scene) -> Undo | None:
        place = which(scene)
        if not os.path.isdir(place):
            return None
        os.rename(place, scene.elsewhere)
        os.mkdir(place)

        def undo() -> None:
            for name in os.listdir(place):  # a snapshot that was made meanwhile
                assert place.endswith(b"snapshots"), f"put where nothing was mounted: {name!r}"
                begun = os.path.join(scene.elsewhere, name)
                if os.path.isdir(begun):  # before, and made anew meanwhile
                    shutil.rmtree(begun)
                os.rename(os.path.join(place, name), begun)
            os.rmdir(place)
            os.rename(scene.elsewhere, place)

        return undo

    return do


class Yesterday(datetime.datetime):
    """A clock that somebody has set back."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:  # noqa: ANN401
        """Returns the time of a day ago."""
        return datetime.datetime.now(tz) - datetime.timedelta(days=1)


def clock_set_back(scene: Scene) -> Undo:
    setattr(clock, "datetime", Yesterday)  # noqa: B010
    return _nothing


CHANGES = (
    Change("branch-moved", branch_moved),
    Change("branch-deleted", branch_deleted),
    Change("branch-reset-elsewhere", branch_reset_elsewhere),
    Change("branch-used-elsewhere", branch_used_elsewhere),
    Change("index-locked", lock_left(_in_admin(b"index.lock"))),
    Change("head-locked", lock_left(_in_admin(b"HEAD.lock"))),
    Change("packed-refs-locked", lock_left(_in_common(b"packed-refs.lock"))),
    Change("branch-locked", lock_left(_in_common(b"refs/heads/work.lock"))),
    Change("snapshot-ref-locked", lock_left(_snapshot_lock)),
    Change("config-locked", lock_left(_in_common(b"config.lock"))),
    Change("tree-moved", tree_moved),
    Change("tree-replaced", tree_replaced),
    Change("tree-made-anew", tree_made_anew, forever=True),
    Change("removed-by-git", removed_by_git, forever=True, destroys=True),
    Change("prune", by_git("worktree", "prune")),
    Change("prune-now", by_git("worktree", "prune", "--expire=now")),
    Change("repair", by_git("worktree", "repair")),
    Change("gc", by_git("gc", "-q", "--prune=now")),
    Change("pack-refs", by_git("pack-refs", "--all", "--prune")),
    Change("unlocked", unlocked),
    Change("locked-by-them", locked_by_them),
    Change("snapshot-ref-deleted", snapshot_ref_deleted),
    Change("snapshot-ref-moved", snapshot_ref_moved),
    Change("manifest-damaged", manifest_damaged),
    Change("manifest-deleted", manifest_deleted),
    Change("files-damaged", files_damaged),
    Change("files-deleted", files_deleted),
    Change("file-written", file_written),
    Change("file-changed", file_changed),
    Change("file-deleted", file_deleted),
    Change("rest-taken", rest_taken),
    Change("place-taken", place_taken),
    Change("repository-moved", repository_moved),
    Change("repository-unmounted", unmounted(lambda scene: scene.world.root)),
    Change(
        "snapshots-unmounted", unmounted(lambda s: os.path.join(s.world.settings.state_dir, b"snapshots"))
    ),
    Change("clock-set-back", clock_set_back),
)
