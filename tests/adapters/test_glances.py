"""What is remembered of lanes must never differ from what a reading of all files says now."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from adapters.glances import TURN, Glances, glance
from domain.paths import pack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from adapters.glances import Glance
    from adapters.store.reader import Record

AT = "2024-05-06T07:08:09Z"
SETTLED = 0.06  # seconds, after which what was read before can be believed


class Scene:
    """A repository with lanes at the usual places, and what is remembered of them."""

    def __init__(self, home: Path, lanes: int, *options: str) -> None:
        self.home = home
        self.root = home / "root"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_NAME": "Ada" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "ada@example.org" for who in ("AUTHOR", "COMMITTER")},
        }
        self.root.mkdir()
        self.git(self.root, "init", "-q", "-b", "main", *options)
        self.commit(self.root)
        self.common = self.root / self.git(self.root, "rev-parse", "--git-common-dir")
        self.rows = [self.row("root", self.root, "primary")]
        self.rows += [self.add(f"lane-{number}") for number in range(lanes)]
        self.glances = Glances()

    def git(self, place: Path, *arguments: str, check: bool = True) -> str:
        """Runs the plain git program."""
        ran = subprocess.run(
            ["git", *arguments], cwd=place, env=self.environment, capture_output=True, check=False
        )
        assert not check or ran.returncode == 0, (arguments, ran.stderr)
        return os.fsdecode(ran.stdout).strip()

    def commit(self, place: Path, *, check: bool = True) -> None:
        """Makes a commit without touching files."""
        message = f"{time.monotonic_ns()}"
        self.git(place, "commit", "-q", "--allow-empty", "-m", message, check=check)

    def place(self, name: str) -> Path:
        """Returns where a lane is made."""
        return self.root / ".laneyard" / "worktrees" / name

    def add(self, name: str, *, branch: str | None = None) -> Record:
        """Makes a lane."""
        self.git(self.root, "worktree", "add", "-q", "-b", branch or name, str(self.place(name)))
        return self.row(name, self.place(name))

    def row(self, name: str, path: Path, kind: str = "managed", state: str = "active") -> Record:
        """Returns the columns of the lanes table that matter here."""
        common = pack(os.fsencode(self.common))
        return {
            "id": name,
            "slug": name,
            "repository": common,
            "path": pack(os.fsencode(path)),
            "kind": kind,
            "state": state,
        }

    def admin(self, name: str) -> Path:
        """Returns a lane's registration."""
        return self.common / "worktrees" / name

    def look(self) -> dict[str, Glance]:
        """Looks, and requires that reading everything says the same."""
        seen = self.glances.look(self.rows, AT)
        assert seen == {str(row["id"]): glance(row, AT) for row in self.rows}
        return seen

    def settle(self) -> None:
        """Looks until everything that can be remembered is."""
        self.look()
        time.sleep(SETTLED)
        self.look()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path, 2)


def test_a_lane_is_seen_with_its_branch_and_its_commit(scene: Scene) -> None:
    head = scene.git(scene.root, "rev-parse", "HEAD")
    for _ in range(2):
        seen = scene.look()["lane-0"]
        assert (seen.present.value, seen.branch_now.value) == (True, "refs/heads/lane-0")
        assert (seen.head_now.value, seen.head_now.at) == (head, AT)
        scene.settle()


def test_what_is_seen_again_has_the_time_of_the_new_look(scene: Scene) -> None:
    scene.settle()
    seen = scene.glances.look(scene.rows, "later")["lane-0"]
    assert {seen.present.at, seen.branch_now.at, seen.head_now.at} == {"later"}


def test_unchanged_lanes_are_not_read_again(scene: Scene) -> None:
    scene.settle()
    opened = opened_by(scene, scene.root.parent)
    assert opened == []


def test_of_many_lanes_only_the_changed_one_is_read_again(scene: Scene) -> None:
    scene.settle()
    scene.commit(scene.place("lane-1"))
    opened = opened_by(scene, scene.root.parent)
    assert opened
    assert not [path for path in opened if "lane-0" in path]


def opened_by(scene: Scene, below: Path) -> list[str]:
    """Returns the files that a look opens, by the interpreter's own account of them."""
    opened: list[str] = []
    auditors.append(opened)
    try:
        scene.glances.look(scene.rows, AT)
    finally:
        auditors.remove(opened)
    return [path for path in opened if path.startswith(str(below))]


auditors: list[list[str]] = []


def hear(event: str, arguments: tuple[object, ...]) -> None:
    if auditors and event == "open" and isinstance(arguments[0], bytes | str):
        auditors[-1].append(os.fsdecode(arguments[0]))


sys.addaudithook(hear)


@pytest.mark.slow
def test_a_second_write_at_once_with_the_same_size_is_seen(scene: Scene) -> None:
    path = scene.admin("lane-0") / "HEAD"
    for number in range(200):
        path.write_text(f"{number % 10}" * 40 + "\n")
        assert scene.look()["lane-0"].head_now.value == f"{number % 10}" * 40


def test_a_write_of_the_same_size_that_hides_its_time_is_seen(scene: Scene) -> None:
    path = scene.admin("lane-0") / "HEAD"
    path.write_text("1" * 40 + "\n")
    scene.settle()
    times = path.stat()
    path.write_text("2" * 40 + "\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert scene.look()["lane-0"].head_now.value == "2" * 40


@pytest.mark.slow
def test_a_write_within_one_tick_of_the_clock_is_seen(coarse: Path) -> None:
    scene = Scene(coarse, 1)
    scene.settle()
    path = scene.admin("lane-0") / "HEAD"
    one, other, same = "1" * 40, "2" * 40, 0
    for _ in range(200):
        path.write_text(f"{one}\n")
        before = path.stat()
        assert scene.look()["lane-0"].head_now.value == one
        path.write_text(f"{other}\n")
        same += path.stat().st_ctime_ns == before.st_ctime_ns
        assert scene.look()["lane-0"].head_now.value == other
    assert same > 0, "no two writes had the same time: this proves nothing"


@pytest.fixture
def coarse(tmp_path: Path) -> Iterator[Path]:
    """A file system whose times are those of the kernel's ticks; newer kernels are finer on most others."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    place = tmp_path / "coarse"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "ramfs", "laneyard-test", place], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {done.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.slow
def test_lanes_that_are_gone_are_forgotten(scene: Scene) -> None:
    scene.rows += [dict(scene.rows[-1], id=f"gone-{number}") for number in range(500)]
    scene.settle()
    del scene.rows[3:]
    for _ in range(2 * TURN):
        scene.glances.look(scene.rows[:1], AT)
    assert "gone-7" not in retained(scene.glances)
    assert len(retained(scene.glances)) <= 3


def retained(glances: Glances) -> set[str]:
    """Returns the lanes that anything inside still has under a name."""
    return {name for held in vars(glances).values() if isinstance(held, dict) for name in held}


def test_a_look_at_one_lane_does_not_forget_the_others(scene: Scene) -> None:
    scene.settle()
    scene.glances.look(scene.rows[:1], AT)
    assert opened_by(scene, scene.home) == []


def test_a_lane_without_a_tree_costs_nothing(scene: Scene) -> None:
    reaped = [
        scene.row("reaped", scene.place("reaped"), state="reaped"),
        dict(scene.row("none", scene.root), path=None),
    ]
    seen = scene.glances.look(reaped, AT)
    assert {each.present.value for each in seen.values()} == {False}
    assert {each.head_now.unknown for each in seen.values()} == {"the lane has no tree"}
    scene.rows = reaped
    assert opened_by(scene, scene.home) == []


def test_a_repository_with_a_reftable_is_unknown(scene: Scene) -> None:
    scene.settle()
    (scene.common / "reftable").mkdir()
    assert "reftable" in str(scene.look()["lane-0"].head_now.unknown)
    (scene.common / "reftable").rmdir()
    assert scene.look()["lane-0"].head_now.value


def test_a_primary_lane_in_a_separate_git_directory(tmp_path: Path) -> None:
    separate = tmp_path / "separate"
    scene = Scene(tmp_path, 1, f"--separate-git-dir={separate}")
    assert scene.common == separate
    scene.settle()
    scene.commit(scene.root)
    assert scene.look()["root"].head_now.value == scene.git(scene.root, "rev-parse", "HEAD")
    shutil.rmtree(scene.root)
    gone = scene.look()
    assert gone["root"].present.value is False
    assert gone["root"].branch_now.value == "refs/heads/main"


def test_a_bare_repository_and_its_lane(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0)
    bare = tmp_path / "bare.git"
    scene.git(tmp_path, "clone", "-q", "--bare", str(scene.root), str(bare))
    scene.git(bare, "worktree", "add", "-q", "-b", "lane", str(tmp_path / "lane"))
    scene.common = bare
    scene.rows = [scene.row("bare", bare, "primary"), scene.row("lane", tmp_path / "lane")]
    scene.settle()
    scene.commit(tmp_path / "lane")
    assert scene.look()["lane"].head_now.value == scene.git(tmp_path / "lane", "rev-parse", "HEAD")
    scene.git(bare, "symbolic-ref", "HEAD", "refs/heads/lane")
    assert scene.look()["bare"].branch_now.value == "refs/heads/lane"


def test_relative_pointers_are_followed_and_proven(scene: Scene) -> None:
    admin, place = scene.admin("lane-0"), scene.place("lane-0")
    (admin / "gitdir").write_text(os.path.relpath(place / ".git", admin) + "\n")
    (place / ".git").write_text(f"gitdir: {os.path.relpath(admin, place)}\n")
    scene.settle()
    assert scene.look()["lane-0"].head_now.value
    scene.home.joinpath("elsewhere").mkdir()
    place.rename(scene.home / "elsewhere" / "lane")
    place.symlink_to(scene.home / "elsewhere" / "lane")
    assert scene.look()["lane-0"].present.value is True


def test_a_registration_that_became_a_link_is_noticed(scene: Scene) -> None:
    scene.settle()
    scene.admin("lane-0").rename(scene.home / "lane-0")
    scene.admin("lane-0").symlink_to(scene.home / "lane-0")
    assert "another repository" in str(scene.look()["lane-0"].head_now.unknown)


def test_a_root_that_was_moved_behind_a_link_is_noticed(scene: Scene) -> None:
    scene.settle()
    scene.root.rename(scene.home / "moved")
    scene.root.symlink_to(scene.home / "moved")
    assert "another repository" in str(scene.look()["lane-0"].head_now.unknown)


def test_an_empty_directory_hides_no_packed_branch(scene: Scene) -> None:
    scene.git(scene.root, "pack-refs", "--all")
    scene.settle()
    (scene.common / "refs" / "heads" / "lane-0").mkdir()
    head = scene.git(scene.place("lane-0"), "rev-parse", "HEAD")
    assert scene.look()["lane-0"].head_now.value == head
    scene.settle()
    assert scene.look()["lane-0"].head_now.value == head


@pytest.mark.parametrize("name", ["HEAD", "gitdir", "commondir"])
@pytest.mark.parametrize("become", ["fifo", "link", "huge", "directory"])
def test_a_file_that_became_something_else_makes_no_answer_hang(scene: Scene, name: str, become: str) -> None:
    scene.settle()
    path = scene.admin("lane-0") / name
    other = path.rename(path.with_name("kept"))
    if become == "fifo":
        os.mkfifo(path)
    elif become == "link":
        path.symlink_to(other)
    elif become == "huge":
        path.write_text("x" * (1 << 20))
    else:
        path.mkdir()
    assert scene.look()["lane-0"].head_now.unknown


def test_a_file_that_may_not_be_read_is_unknown(scene: Scene) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read every file")
    scene.settle()
    for path in (scene.admin("lane-0") / "HEAD", scene.place("lane-0"), scene.admin("lane-0")):
        mode = path.stat().st_mode
        path.chmod(0)
        try:
            assert scene.look()["lane-0"].head_now.unknown
        finally:
            path.chmod(mode)
        assert scene.look()["lane-0"].head_now.value


class Walk:
    """Does at random what people, git and accidents do to lanes; every step may fail like theirs."""

    def __init__(self, scene: Scene, chance: random.Random) -> None:
        self.scene = scene
        self.chance = chance
        self.made = 0
        self.acts: list[Callable[[], None]] = [
            *(self.commit, self.commit, self.switch, self.detach, self.rename_branch, self.nested_branch),
            *(self.pack, self.collect, self.delete_branch, self.alias, self.write_ref, self.unborn),
            *(self.move, self.repair, self.remove_lane, self.add_lane, self.mend),
            *(self.delete_folder, self.replace_folder, self.swap, self.link_folder, self.hollow),
            *(self.edit_pointer, self.edit_registration, self.break_head, self.edit_head, self.edit_packed),
            *(self.restrict, self.touch, self.lock),
        ]

    def step(self) -> str:
        """Does one thing, mostly to one lane, and tells which."""
        act = self.chance.choice(self.acts)
        act()
        return act.__name__

    @property
    def row(self) -> Record:
        return self.chance.choice(self.scene.rows[1:])

    @property
    def lane(self) -> Path:
        return self.scene.home / str(self.row["path"])

    def admin(self) -> Path:
        found = sorted((self.scene.common / "worktrees").iterdir())
        return self.chance.choice(found) if found else self.scene.common

    def name(self) -> str:
        self.made += 1
        return f"b{self.made}"

    def git(self, place: Path, *arguments: str) -> str:
        inside = place if place.is_dir() else self.scene.root
        return self.scene.git(inside, *arguments, check=False)

    def head(self) -> str:
        return self.scene.git(self.scene.root, "rev-parse", "--verify", "main", check=False)

    def branches(self) -> list[str]:
        listed = self.git(self.scene.root, "for-each-ref", "--format=%(refname)", "refs/heads")
        return [each for each in listed.split() if each != "refs/heads/main"] or ["refs/heads/main"]

    def commit(self) -> None:
        place = self.lane
        self.scene.commit(place if place.is_dir() else self.scene.root, check=False)

    def switch(self) -> None:
        self.git(self.lane, "checkout", "-q", "-b", self.name())

    def detach(self) -> None:
        self.git(self.lane, "checkout", "-q", "--detach")

    def rename_branch(self) -> None:
        old = self.chance.choice(self.branches()).removeprefix("refs/heads/")
        self.git(self.scene.root, "branch", "-m", old, self.name())

    def nested_branch(self) -> None:
        self.git(self.lane, "checkout", "-q", "-b", f"{self.name()}/c/d")

    def pack(self) -> None:
        self.git(self.scene.root, "pack-refs", "--all")

    def collect(self) -> None:
        self.git(self.scene.root, "gc", "-q")

    def delete_branch(self) -> None:
        self.git(self.scene.root, "update-ref", "-d", self.chance.choice(self.branches()))

    def alias(self) -> None:
        alias = f"refs/heads/{self.name()}"
        self.git(self.scene.root, "symbolic-ref", alias, self.chance.choice(self.branches()))
        self.git(self.lane, "symbolic-ref", "HEAD", alias)

    def write_ref(self) -> None:
        path = self.scene.common / self.chance.choice(self.branches())
        if path.is_file():
            path.write_text(
                self.chance.choice([self.head(), "", "0" * 39, "f" * 40, "ref: refs/heads/main"]) + "\n"
            )

    def unborn(self) -> None:
        self.git(self.lane, "symbolic-ref", "HEAD", f"refs/heads/{self.name()}")

    def move(self) -> None:
        row = self.row
        target = self.scene.place(self.name())
        self.git(self.scene.root, "worktree", "move", "-f", "-f", str(row["path"]), str(target))
        if target.exists() and self.chance.random() < 0.8:
            row["path"] = pack(os.fsencode(target))

    def repair(self) -> None:
        self.git(self.scene.root, "worktree", "repair", str(self.lane))

    def remove_lane(self) -> None:
        self.git(self.scene.root, "worktree", "remove", "-f", "-f", str(self.lane))

    def add_lane(self) -> None:
        row, name = self.row, self.name()
        self.git(self.scene.root, "worktree", "add", "-q", "-b", name, str(self.scene.place(name)))
        row["path"] = pack(os.fsencode(self.scene.place(name)))

    def mend(self) -> None:
        """Puts a lane that was damaged in order by making it anew, so that the walk does not run dry."""
        for _ in range(3):
            self.add_lane()

    def delete_folder(self) -> None:
        away(self.lane)

    def replace_folder(self) -> None:
        place = self.lane
        pointer = (place / ".git").read_bytes() if (place / ".git").is_file() else b"gitdir: nowhere\n"
        away(place)
        place.mkdir(parents=True, exist_ok=True)
        if self.chance.random() < 0.5:
            (place / ".git").write_bytes(pointer)

    def swap(self) -> None:
        one, other = self.lane, self.lane
        if one != other and one.is_dir() and other.is_dir():
            spare = self.scene.home / self.name()
            one.rename(spare)
            other.rename(one)
            spare.rename(other)

    def link_folder(self) -> None:
        place = self.lane
        if place.is_dir() and not place.is_symlink():
            target = place.rename(self.scene.home / self.name())
            place.symlink_to(target)

    def hollow(self) -> None:
        (self.lane / ".git").unlink(missing_ok=True) if self.lane.is_dir() else None

    def edit_pointer(self) -> None:
        place = self.lane
        if place.is_dir():
            texts = [f"gitdir: {self.admin()}\n", f"gitdir: {self.scene.common}\n", "", "gitdir: ", "\0", "x"]
            (place / ".git").write_text(self.chance.choice(texts))

    def edit_registration(self) -> None:
        name = self.chance.choice(["gitdir", "commondir"])
        texts = [f"{self.lane}/.git\n", "../..\n", "..\n", str(self.scene.common), "", "\0\n"]
        (self.admin() / name).write_text(self.chance.choice(texts))

    def break_head(self) -> None:
        path = self.admin() / "HEAD"
        path.write_bytes(
            self.chance.choice([b"", b"ref:\n", b"ref: ../x\n", b"\xff\n", b"ref: a\0b\n", b"ref: r\xff\n"])
        )

    def edit_head(self) -> None:
        (self.admin() / "HEAD").write_text(f"ref: {self.chance.choice(self.branches())}\n")

    def edit_packed(self) -> None:
        path = self.scene.common / "packed-refs"
        if path.exists():
            lines = path.read_text().splitlines()
            path.write_text("".join(f"{line}\n" for line in lines if self.chance.random() < 0.9))

    def restrict(self) -> None:
        path = self.chance.choice([self.lane / ".git", self.admin() / "HEAD"])
        if path.is_file():
            path.chmod(self.chance.choice([0o000, 0o644]))

    def touch(self) -> None:
        path = self.admin() / "HEAD"
        if path.exists():
            os.utime(path)

    def lock(self) -> None:
        self.git(self.scene.root, "worktree", "lock", str(self.lane))


def away(place: Path) -> None:
    """Deletes what is there, whatever it is."""
    if place.is_symlink():
        place.unlink()
    elif place.exists():
        shutil.rmtree(place)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_remembered_look_never_differs_from_a_fresh_one(tmp_path: Path, seed: int) -> None:
    scene, chance = Scene(tmp_path, 12), random.Random(seed)
    walk = Walk(scene, chance)
    known = unknown = 0
    for number in range(300):
        act = walk.step()
        plain = {str(row["id"]): glance(row, AT) for row in scene.rows}
        seen = scene.glances.look(scene.rows, AT)
        assert seen == plain, (number, act)
        agrees_with_git(scene, seen)
        known += sum(isinstance(each.head_now.value, str) for each in seen.values())
        unknown += sum(isinstance(each.head_now.unknown, str) for each in seen.values())
        if chance.random() < 0.3:
            time.sleep(SETTLED)
            scene.look()
    assert min(known, unknown) > 600, "the walk has seen too little of one of the two"


def agrees_with_git(scene: Scene, seen: dict[str, Glance]) -> None:
    """Requires that a commit that is known is one that git lists for the same place.

    More than one where a damaged registration names a place that is not its own.
    """
    listed = scene.git(scene.root, "worktree", "list", "--porcelain", "-z", check=False)
    heads: dict[str, set[str]] = {}
    for record in listed.split("\0\0"):
        fields = dict(line.partition(" ")[::2] for line in record.split("\0"))
        if fields.get("HEAD", "").strip("0"):
            heads.setdefault(fields["worktree"], set()).add(fields["HEAD"])
    for row in scene.rows:
        found, told = seen[str(row["id"])].head_now.value, heads.get(str(row["path"]))
        assert not isinstance(found, str) or told is None or found in told, row
