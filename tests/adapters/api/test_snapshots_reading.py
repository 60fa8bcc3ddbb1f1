"""A snapshot that is looked into: each class of what it holds, its entries, its difference, its content."""

from __future__ import annotations

import hashlib
import os
import struct
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from adapters.api import choosing, snapshots
from adapters.files.blob import blob_hash
from adapters.snapshots import differences
from adapters.snapshots.files import Files, SnapshotDamaged
from adapters.snapshots.manifest import Held, Registered, load, save, snapshot_dir
from adapters.snapshots.reading import contents
from adapters.snapshots.reading.reading import relative
from domain.errors import NotARepository, NotInSnapshot, SnapshotUnusable
from domain.paths import unpack
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from adapters.api.snapshots import Shelf
    from adapters.snapshots.manifest import Manifest
    from tests.sagas.worlds import Open

BIG = b"\0\xff" * 40_000


class Look:
    """A lane with work of every kind, its snapshot, and who looks at it."""

    def __init__(self, opened: Open) -> None:
        yard = opened.yard
        self.world, self.state_dir = opened.world, yard.settings.state_dir
        self.shelf: Shelf = snapshots.Shelf(yard.git, self.state_dir, yard.reader)
        self.chosen = choosing.find(yard.reader, self.state_dir, "work", None, None)
        self.directory = snapshot_dir(self.state_dir, self.chosen.taken.id)

    def rewrite(self, change: Callable[[Manifest], Manifest]) -> None:
        """Puts another manifest in place of the snapshot's, as a capture of another format would have."""
        digest = save(self.directory, change(load(self.directory, None)))
        self.chosen = choosing.Chosen(replace(self.chosen.taken, manifest=digest), self.chosen.lane)

    async def show(self, *, whole: bool = False, read_back: bool = False) -> Any:  # noqa: ANN401
        answer = await snapshots.show(self.shelf, self.chosen, whole=whole, read_back=read_back)
        assert answer.text
        return answer.document

    async def parts(self) -> dict[str, tuple[str, ...]]:
        return {each.name: each.paths for each in (await self.show()).parts}

    async def read(self, path: bytes, *, staged: bool = False) -> bytes:
        (found,) = await snapshots.content(self.shelf, self.chosen, [path], staged=staged)
        with found:
            return found.read()

    async def diff(self, *paths: bytes, staged: bool = False) -> bytes:
        pieces = snapshots.diff(self.shelf, self.chosen, paths, staged=staged)
        return b"".join([piece async for piece in pieces])

    async def entries(self, *below: bytes, after: str | None = None, limit: int = 100) -> Any:  # noqa: ANN401
        return (await snapshots.entries(self.shelf, self.chosen, below, after, limit)).document


@asynccontextmanager
async def look(home: Path, work: Callable[[World, bytes], None]) -> AsyncIterator[Look]:
    """Makes a lane, does some work in it, and captures it."""
    world = World(home)
    async with world.open() as opened:
        await opened.create()
        work(world, unpack(str(opened.row()["path"])))
        await opened.snapshot()
        yield Look(opened)


def write(place: bytes, name: bytes, data: bytes) -> None:
    path = os.path.join(place, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def everything(world: World, place: bytes) -> None:
    """Leaves work of every class in a lane whose commit has some files."""
    write(place, b"base", b"committed\n")
    write(place, b"below/base", b"below\n")
    write(place, b"gone", b"soon\n")
    world.git(place, "add", ".")
    world.git(place, "commit", "-q", "-m", "base")
    write(place, b"base", b"changed\n")
    os.unlink(os.path.join(place, b"gone"))
    write(place, b"new\n\xff", BIG)
    write(place, b"staged", b"of the index\n")
    world.git(place, "add", "staged")
    write(place, b"staged", b"of the worktree\n")
    os.mkdir(os.path.join(place, b"empty"))
    os.symlink(b"nowhere/\xfe", os.path.join(place, b"arrow"))


async def test_each_class_has_its_paths(tmp_path: Path) -> None:
    async with look(tmp_path, everything) as seen:
        parts = await seen.parts()
        assert parts["changed"] == ("base", "staged")
        assert set(parts["untracked"]) == {"new\n%FF", "arrow"}
        assert parts["deleted"] == ("gone",)
        assert parts["staged"] == ("staged",)
        assert parts["empty"] == ("empty",)
        assert "index" in parts["registration"]


async def test_it_says_who_took_it_when_and_why(tmp_path: Path) -> None:
    async with look(tmp_path, everything) as seen:
        shown = await seen.show(read_back=True)
        event = next(each for each in seen.world.events() if each.type.startswith("lane.snapshotted@"))
        assert (shown.taken_at, shown.cause, shown.why) == (event.time, event.cause, "asked")
        assert (shown.actor.client, shown.actor.uid, shown.verified) == ("test", os.getuid(), True)
        assert (shown.branch, shown.edition) == ("refs/heads/work", None)


@pytest.mark.slow
async def test_what_was_captured_on_the_way_says_so(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await opened.create()
        write(unpack(str(opened.row()["path"])), b"new", b"x")
        await opened.remove()
        seen = Look(opened)
        shown = await seen.show()
        assert (shown.why, shown.edition) == ("removal", 1)
        await opened.reap()
        assert await seen.read(b"new") == b"x"
        await opened.restore()
        await opened.remove()
        await opened.reap()
        assert (await Look(opened).show()).why == "removal"


async def test_only_the_first_paths_are_named_unless_all_are_asked_for(tmp_path: Path) -> None:
    def many(world: World, place: bytes) -> None:
        for number in range(30):
            write(place, b"new-%02d" % number, b"x")

    async with look(tmp_path, many) as seen:
        (part,) = [each for each in (await seen.show()).parts if each.name == "untracked"]
        assert (part.count, part.bytes, len(part.paths)) == (30, 30, 20)
        (part,) = [each for each in (await seen.show(whole=True)).parts if each.name == "untracked"]
        assert len(part.paths) == 30
        answer = await snapshots.show(seen.shelf, seen.chosen, whole=False, read_back=False)
        assert "    and 10 more" in answer.text.splitlines()


async def test_content_is_as_it_was_captured_committed_or_staged(tmp_path: Path) -> None:
    async with look(tmp_path, everything) as seen:
        assert await seen.read(b"base") == b"changed\n"
        assert await seen.read(b"./below//base") == b"below\n"
        assert await seen.read(b"new\n\xff") == BIG
        assert await seen.read(b"arrow") == b"nowhere/\xfe"
        assert await seen.read(b"staged") == b"of the worktree\n"
        assert await seen.read(b"staged", staged=True) == b"of the index\n"
        assert await seen.read(b"gone", staged=True) == b"soon\n"


@pytest.mark.parametrize(
    ("path", "staged", "why"),
    [
        (b"gone", False, "it was deleted"),
        (b"never", False, "nothing was there"),
        (b"below/never", False, "nothing was there"),
        (b"below", False, "it is a directory"),
        (b"empty", False, "it is a directory"),
        (b"", False, "it is a directory"),
        (b"new\n\xff", True, "nothing is staged there"),
        (b"../base", False, "a path is relative to the lane, and stays in it"),
        (b"/base", False, "a path is relative to the lane, and stays in it"),
        (b":(top)base", False, "nothing was there"),
        (b"b*", False, "nothing was there"),
    ],
)
async def test_what_has_no_content_is_refused_and_says_why(
    tmp_path: Path,
    path: bytes,
    staged: bool,
    why: str,
) -> None:
    async with look(tmp_path, everything) as seen:
        with pytest.raises(NotInSnapshot) as refused:
            await seen.read(path, staged=staged)
        assert refused.value.why == why


async def test_the_entries_are_what_a_restore_would_make(tmp_path: Path) -> None:
    async with look(tmp_path, everything) as seen:
        page = await seen.entries()
        found = {each.path: (each.kind, each.size, each.committed) for each in page.entries}
        assert found["base"] == ("file", 8, False)
        assert found["below/base"] == ("file", 6, True)
        assert found["below"] == ("directory", 0, True)
        assert found["arrow"] == ("link", 9, False)
        assert "gone" not in found
        odd = next(each for each in page.entries if each.size == len(BIG))
        assert (odd.path_encoded, odd.mode) == ("new\n%FF", "0644")
        seen.rewrite(lambda old: replace(old, times=""))  # as format 1 has it
        assert {each.mtime_ns for each in (await seen.entries()).entries} == {None}


async def test_many_contents_cost_one_opening_and_one_git_each_time(tmp_path: Path) -> None:
    def many(world: World, place: bytes) -> None:
        for number in range(200):
            write(place, b"new-%03d" % number, b"%d" % number)

    async with look(tmp_path, many) as seen:
        names = [b"new-%03d" % number for number in range(200)]
        await seen.entries()
        before = seen.shelf.git.started
        for some in (names[:100], names[100:]):
            found = await snapshots.content(seen.shelf, seen.chosen, some, staged=False)
            assert [each.read() for each in found] == [b"%d" % int(name[4:]) for name in some]
            for each in found:
                each.close()
        assert seen.shelf.git.started == before + 2


async def test_entries_come_in_pages_without_a_gap(tmp_path: Path) -> None:
    async with look(tmp_path, everything) as seen:
        whole = (await seen.entries()).entries
        got, after = [], None
        while True:
            page = await seen.entries(after=after, limit=2)
            got += page.entries
            after = page.next
            if after is None:
                break
        assert tuple(got) == whole
        below = (await seen.entries(b"below")).entries
        assert [each.path for each in below] == ["below", "below/base"]
        with pytest.raises(NotInSnapshot):
            await seen.entries(b"gone")


async def test_the_difference_is_that_of_git_without_its_programs(tmp_path: Path) -> None:
    def attributed(world: World, place: bytes) -> None:
        everything(world, place)
        world.git(world.root, "config", "diff.evil.textconv", "touch TEXTCONV; cat")
        world.git(world.root, "config", "diff.evil.command", "touch COMMAND; cat")
        world.git(world.root, "config", "diff.external", "touch EXTERNAL; cat")
        world.git(world.root, "config", "color.ui", "always")
        write(world.common, b"info/attributes", b"* diff=evil\n")

    async with look(tmp_path, attributed) as seen:
        found = await seen.diff()
        assert b"-committed\n+changed\n" in found
        assert b"\x1b[" not in found
        assert b"of the index" not in found
        staged = await seen.diff(staged=True)
        assert b"+of the index\n" in staged
        assert b"changed" not in staged
        only = await seen.diff(b"base", b"below")
        assert only.count(b"diff --git") == 1
        made = {path.name for path in tmp_path.rglob("*")}
        assert made.isdisjoint({"TEXTCONV", "COMMAND", "EXTERNAL"})


@pytest.mark.parametrize("path", [b"never", b"b*", b":(top)base", b"new"])
async def test_a_difference_at_what_is_nowhere_is_refused(tmp_path: Path, path: bytes) -> None:
    async with look(tmp_path, everything) as seen:
        with pytest.raises(NotInSnapshot, match="nothing was there"):
            await seen.diff(b"base", path)
        for known in (b"gone", b"empty", b"below/base", b"below", b"staged", b".", b"new\n\xff"):
            await seen.diff(known)


@pytest.mark.slow
async def test_a_difference_of_any_length_is_shown(tmp_path: Path) -> None:
    line, lines = b"a line that is a good deal longer than its number: %d\n", 100_000

    def large(world: World, place: bytes) -> None:
        for number in range(14):
            write(place, b"new-%d" % number, b"".join(line % each for each in range(lines)))

    async with look(tmp_path, large) as seen:
        length = 0
        async for piece in snapshots.diff(seen.shelf, seen.chosen, [], staged=False):
            assert len(piece) <= 8 << 20
            length += len(piece)
        assert length > 64 << 20


def conflicting(world: World, place: bytes) -> None:
    """Leaves conflicts of two kinds: both have changed a file, and one has deleted what the other changed."""
    for name in (b"both", b"odd\n\xff", b"ours", b"theirs"):
        write(place, name, b"base\n")
    world.git(place, "add", ".")
    world.git(place, "commit", "-q", "-m", "base")
    world.git(place, "branch", "theirs")
    for own, deleted, changed in ((b"ours\n", "theirs", b"ours"), (b"theirs\n", "ours", b"theirs")):
        for name in (b"both", b"odd\n\xff", changed):
            write(place, name, own)
        world.git(place, "rm", "-q", deleted)
        world.git(place, "add", ".")
        world.git(place, "commit", "-q", "-m", own)
        world.git(place, "checkout", "-q", "theirs" if own == b"ours\n" else "work")
    world.git(place, "merge", "-q", "theirs", check=False)
    write(place, b"staged", b"staged\n")
    world.git(place, "add", "staged")


async def test_a_conflict_is_told_as_git_tells_it(tmp_path: Path) -> None:
    expected: list[bytes] = []

    def work(world: World, place: bytes) -> None:
        conflicting(world, place)
        expected.append(world.git(place, "diff", "--cached"))

    async with look(tmp_path, work) as seen:
        said = await seen.diff(staged=True)
        plain = expected[0].replace(b"odd\n\xff", b'"odd\\n\\377"')  # which git writes as it is, here alone
        assert sorted(said.splitlines()) == sorted(plain.splitlines())
        assert said.count(b"* Unmerged path") == 4
        assert await seen.diff(b"both", staged=True) == b"* Unmerged path both\n"
        for path, stages in (
            (b"both", "stage 1 (the base) and stage 2 (ours) and stage 3 (theirs)"),
            (b"ours", "stage 1 (the base) and stage 2 (ours)"),
            (b"theirs", "stage 1 (the base) and stage 3 (theirs)"),
        ):
            with pytest.raises(NotInSnapshot) as refused:
                await seen.read(path, staged=True)
            assert refused.value.why == f"it is unmerged, with {stages}"
        tree = seen.world.git(seen.world.common, "ls-tree", "-r", seen.chosen.taken.commit + "^2")
        names = {line.split(b"\t")[1] for line in tree.splitlines()}
        assert {b"both", b"ours", b"theirs", b"staged"} <= names


def held_apart(seen: Look, path: str, data: bytes, **more: Any) -> Held:  # noqa: ANN401
    """Keeps content beside git, and returns the entry that says so."""
    kept = Files(seen.directory).keep(data)
    oid = blob_hash("sha1", len(data), data).hexdigest()
    return Held(path, "file", 0o640, len(data), oid, apart=kept, **more)


async def with_format_2(seen: Look) -> None:
    """Gives the snapshot what the next format has: content apart, times, twins, attributes, an operation."""
    apart = held_apart(seen, "ignored.env", BIG, xattrs=(("user.a", "YQ=="),))
    twin = replace(apart, path="twin.env", twin="ignored.env")
    registered = Registered("rebase-merge/done", Files(seen.directory).keep(b"pick\n"), 0o644)
    seen.rewrite(
        lambda old: replace(
            old, entries=(*old.entries, apart, twin), registration=(*old.registration, registered)
        )
    )
    opened = await seen.shelf.open(seen.chosen)
    wanted = len(await opened.wanted())
    times = Files(seen.directory).keep(struct.pack(f"<{wanted + 1}q", *range(-1, wanted)))
    seen.rewrite(lambda old: replace(old, times=times))


async def test_content_that_is_apart_is_shown_and_read(tmp_path: Path) -> None:
    async with look(tmp_path, everything) as seen:
        await with_format_2(seen)
        shown = await seen.show()
        parts = {each.name: each.paths for each in shown.parts}
        assert parts["apart"] == parts["attributed"] == ("ignored.env", "twin.env")
        assert parts["linked"] == ("twin.env",)
        assert shown.operation == "rebase"
        assert await seen.read(b"ignored.env") == BIG
        found = await seen.diff()
        listed = found.partition(b"held apart from git:\n")[2].decode().splitlines()
        assert [line.split() for line in listed] == [
            [hashlib.sha256(BIG).hexdigest(), "80000", "bytes", name] for name in ("ignored.env", "twin.env")
        ]
        only = await seen.diff(b"base")
        assert b"apart" not in only


async def test_entries_have_the_times_that_were_captured(tmp_path: Path) -> None:
    async with look(tmp_path, everything) as seen:
        await with_format_2(seen)
        entries = (await seen.entries()).entries
        assert [each.mtime_ns for each in entries] == [str(number) for number in range(len(entries))]
        seen.rewrite(lambda old: replace(old, times=Files(seen.directory).keep(b"12345678")))
        with pytest.raises(SnapshotUnusable):
            await seen.entries()


async def test_an_unborn_branch_is_compared_with_nothing(tmp_path: Path) -> None:
    async with look(tmp_path, everything) as seen:
        common, staged = seen.world.common, seen.world.git(seen.world.common, "rev-parse", "HEAD")
        tree = seen.world.git(common, "rev-parse", seen.chosen.taken.commit + "^{tree}").strip()
        made = seen.world.git(common, "commit-tree", tree, "-p", staged.strip(), stdin=b"x").strip()
        seen.world.git(common, "update-ref", seen.chosen.taken.ref, made)
        seen.rewrite(lambda old: replace(old, head="", commit=made.decode(), entries=(), times=""))
        taken = replace(seen.chosen.taken, commit=made.decode())
        seen.chosen = choosing.Chosen(taken, seen.chosen.lane)
        assert (await seen.show()).head is None
        found = await seen.diff(b"base")
        assert b"new file mode" in found
        assert (await seen.entries()).entries == ()


async def test_damage_is_a_refusal_whatever_is_asked(tmp_path: Path) -> None:
    async with look(tmp_path, everything) as seen:
        await with_format_2(seen)
        opened = await seen.shelf.open(seen.chosen)
        apart = opened.held[b"ignored.env"].apart or ""
        kept = os.path.join(seen.directory, b"files", apart.encode())
        write(seen.directory, b"files/" + apart.encode(), b"!" + BIG[1:])
        with pytest.raises(SnapshotUnusable, match="damaged"):
            await seen.read(b"ignored.env")
        os.unlink(kept)
        with pytest.raises(SnapshotUnusable, match="cannot be read"):
            await seen.read(b"ignored.env")
        async with aclosing(contents.contents(opened, [("1" * 40, None)])) as found:
            with pytest.raises(SnapshotDamaged, match="missing"):
                await anext(found)


async def test_a_snapshot_without_its_ref_or_its_manifest_is_refused(tmp_path: Path) -> None:
    async with look(tmp_path, everything) as seen:
        seen.world.git(seen.world.common, "update-ref", "-d", seen.chosen.taken.ref)
        with pytest.raises(SnapshotUnusable, match=" is not there"):
            await seen.show()
        os.unlink(os.path.join(seen.directory, b"manifest.json"))
        with pytest.raises(SnapshotUnusable, match="manifest cannot be read"):
            await seen.show()
        assert choosing.by_id(seen.shelf.reader, seen.state_dir, seen.chosen.taken.id).lane.slug == "work"


async def test_a_repository_that_is_gone_is_a_refusal(tmp_path: Path) -> None:
    async with look(tmp_path, everything) as seen:
        os.rename(seen.world.root, seen.world.root + b"-away")
        with pytest.raises(NotARepository, match="it is not there"):
            await seen.show()


async def test_what_was_left_out_is_not_told_as_deleted(tmp_path: Path) -> None:
    async with look(tmp_path, everything) as seen:
        seen.rewrite(lambda old: replace(old, omitted=("gone",)))
        assert "deleted" not in await seen.parts()
        with pytest.raises(NotInSnapshot, match="it was left out"):
            await seen.read(b"gone")


@pytest.mark.slow
async def test_what_is_too_large_for_memory_is_read_and_leaves_nothing(tmp_path: Path) -> None:
    committed, untracked = (letter * (contents.IN_MEMORY + 7) for letter in (b"c", b"u"))

    def large(world: World, place: bytes) -> None:
        write(place, b"committed", committed)
        world.git(place, "add", "committed")
        world.git(place, "commit", "-q", "-m", "large")
        write(place, b"untracked", untracked)

    async with look(tmp_path, large) as seen:
        before = os.listdir(seen.directory)
        assert await seen.read(b"committed") == committed
        assert await seen.read(b"untracked") == untracked
        assert os.listdir(seen.directory) == before


def test_a_path_is_taken_in_its_plain_form() -> None:
    assert relative(b"./a//b/", "s") == b"a/b"
    assert relative(b".", "s") == relative(b"", "s") == b""
    with pytest.raises(NotInSnapshot):
        relative(b"a/../../b", "s")


def test_git_knows_the_empty_tree_of_each_algorithm() -> None:
    for algorithm, oid in differences.EMPTY_TREE.items():
        assert hashlib.new(algorithm, b"tree 0\0").hexdigest() == oid
