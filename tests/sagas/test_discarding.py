"""A consent covers what was seen and named, and nothing that comes later or that nobody has looked at."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapters.ignored.wanted import Wanted
from adapters.wiring import new_request
from adapters.yard import putting_away
from adapters.yard.capturing import SnapshotNotMade
from domain.errors import TooManyToName, WrongState
from domain.events import ReapingPlanned
from domain.evidence import Consent
from domain.paths import unpack
from domain.states import Active, NeedsReview, Quarantined, Reaped
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from pathlib import Path

    from adapters.yard.yard import Done
    from tests.sagas.worlds import Open

TAG = b"Signature: 8a477f597d28d172789f06886806bc55\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def write(place: bytes, name: bytes, data: bytes = b"late\n") -> None:
    path = os.path.join(place, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def read(place: bytes, name: bytes) -> bytes:
    with open(os.path.join(place, name), "rb") as file:
        return file.read()


def at(opened: Open) -> bytes:
    """Returns where the lane's tree is."""
    lane = opened.lane()
    if isinstance(lane, NeedsReview):
        return unpack(lane.demolition.place.path)
    assert isinstance(lane, Active | Quarantined)
    return unpack(lane.place.path)


def reviewed(opened: Open) -> NeedsReview:
    lane = opened.lane()
    assert isinstance(lane, NeedsReview)
    return lane


def consents(world: World) -> list[Consent | None]:
    """Returns the consents of the plans to reap, the last one last."""
    return [each.fact.consent for each in world.events() if isinstance(each.fact, ReapingPlanned)]


async def rests(opened: Open, ignored: bytes = b"", *, work: bool = True) -> bytes:
    """Puts a lane away, with work in it so that it has a snapshot, and returns where it rests."""
    await opened.create()
    place = at(opened)
    if ignored:
        write(place, b".gitignore", ignored)
        opened.world.git(place, "add", ".gitignore")
        opened.world.git(place, "commit", "-q", "-m", "ignored")
    if work:
        write(place, b"work")
    await opened.remove()
    return at(opened)


async def keeps(opened: Open) -> Done:
    """Puts a lane away with everything ignored in its snapshot."""
    asked = await opened.repository()
    request = new_request(opened.world.settings)
    arguments = (opened.yard, asked, opened.row(), request)
    return await putting_away.remove(*arguments, mode="safe", delete_branch=False, include=True)


async def test_a_consent_to_lose_a_directory_is_none_for_what_is_written_into_it_later(world: World) -> None:
    async with world.open() as opened:
        place = await rests(opened)
        write(place, b"new/one")
        await opened.reap()
        assert reviewed(opened).paths == ("new", "new/one")
        write(place, b"new/two")
        await opened.discard()
        assert (reviewed(opened).paths, consents(world)[-1]) == (
            ("new/two",),
            Consent((), "review --discard", ("new", "new/one")),
        )
        assert isinstance((await opened.discard()).lane, Reaped)


async def test_a_consent_about_a_directorys_mode_is_none_for_what_is_in_it(world: World) -> None:
    async with world.open() as opened:
        await opened.create()
        write(at(opened), b"src/deep/file")
        await opened.remove()
        place = at(opened)
        os.chmod(os.path.join(place, b"src"), 0o700)
        await opened.reap()
        assert reviewed(opened).paths == ("src",)
        write(place, b"src/hours", b"of work\n")
        await opened.discard()
        assert reviewed(opened).paths == ("src/hours",)


@pytest.mark.slow
async def test_however_many_entries_there_are_a_consent_names_each(world: World) -> None:
    async with world.open() as opened:
        place = await rests(opened)
        for number in range(1_201):
            write(place, b"tmp%d" % number)
        await opened.reap()
        assert len(reviewed(opened).paths) == 1_201
        world.git(place, "commit", "-q", "--allow-empty", "-m", "at rest")
        head = world.git(place, "rev-parse", "HEAD").decode().strip()
        await opened.discard()
        assert (reviewed(opened).detail, reviewed(opened).paths[0]) == (
            "registration_changed",
            f".git/HEAD at {head}",
        )
        agreed = consents(world)[-1]
        assert agreed is not None
        assert (agreed.paths, len(agreed.exact)) == ((), 1_201)
        assert isinstance((await opened.discard()).lane, Reaped)
        assert f".git/HEAD at {head}" in consents(world)[-1].paths  # type: ignore[union-attr]


@pytest.mark.slow
async def test_what_is_too_much_to_name_is_not_agreed_to(world: World) -> None:
    async with world.open() as opened:
        place = await rests(opened)
        for number in range(10_001):
            write(place, b"many/%d" % number)
        await opened.reap()
        with pytest.raises(TooManyToName) as caught:
            await opened.discard()
        assert (caught.value.count, caught.value.limit) == (10_002, 10_000)
        assert reviewed(opened).count == 10_002
        for number in range(5):
            os.unlink(os.path.join(place, b"many/%d" % number))
        assert isinstance((await opened.discard()).lane, Reaped)


async def test_a_consent_to_one_commit_made_at_rest_is_none_for_the_next(world: World) -> None:
    async with world.open() as opened:
        place = await rests(opened)
        for _ in range(2):
            world.git(place, "commit", "-q", "--allow-empty", "-m", "at rest")
            await (opened.reap if isinstance(opened.lane(), Quarantined) else opened.discard)()
            assert reviewed(opened).detail == "registration_changed"
        assert len({path for path in reviewed(opened).paths if path.startswith(".git/HEAD at")}) == 1
        assert isinstance((await opened.discard()).lane, Reaped)


async def test_a_tree_that_came_back_is_not_agreed_to_for_having_been_away(world: World) -> None:
    async with world.open() as opened:
        place = await rests(opened)
        os.rename(place, place + b".away")
        await opened.reap()
        assert reviewed(opened).detail == "tree_missing"
        os.rename(place + b".away", place)
        write(place, b"late")
        await opened.discard()
        assert (reviewed(opened).paths, os.path.exists(os.path.join(place, b"late"))) == (("late",), True)


async def test_a_new_snapshot_keeps_what_the_earlier_one_held_on_request(world: World) -> None:
    async with world.open() as opened:
        await opened.create()
        write(at(opened), b".gitignore", b".env\n")
        write(at(opened), b".env", b"SECRET\n")
        await keeps(opened)
        write(at(opened), b"late")
        await opened.reap()
        assert isinstance((await opened.resnapshot()).lane, Reaped)
        done = await opened.restore()
        assert (world.git(at(opened), "check-ignore", ".env"), done.warnings) == (b".env\n", ())
        assert read(at(opened), b".env") == b"SECRET\n"


async def test_a_lane_that_is_captured_again_at_rest_keeps_what_its_removal_has_captured(
    world: World,
) -> None:
    async with world.open() as opened:
        await opened.create()
        write(at(opened), b".gitignore", b".env\n")
        write(at(opened), b".env", b"SECRET\n")
        await keeps(opened)
        await opened.snapshot()
        assert isinstance((await opened.reap()).lane, Reaped)
        await opened.restore()
        assert read(at(opened), b".env") == b"SECRET\n"


async def test_a_restore_says_which_earlier_snapshot_holds_more(world: World) -> None:
    async with world.open() as opened:
        await opened.create()
        write(at(opened), b".gitignore", b".env\n")
        write(at(opened), b".env", b"SECRET\n")
        await keeps(opened)
        os.unlink(os.path.join(at(opened), b".env"))
        write(at(opened), b"late")
        await opened.reap()
        await opened.resnapshot()
        first = opened.lane().record.snapshots[0].id[:8]  # type: ignore[union-attr]
        [said] = (await opened.restore()).warnings
        assert f"the earlier snapshot {first} also holds .env" in said


async def test_ignored_content_that_nobody_has_agreed_to_lose_holds_the_reap(world: World) -> None:
    async with world.open() as opened:
        place = await rests(opened, b".env\n", work=False)
        write(place, b".env", b"SECRET\n")
        with pytest.raises(SnapshotNotMade) as caught:
            await opened.reap()
        assert (caught.value.code, caught.value.details["paths"]) == ("unknown_ignored", (".env",))
        assert "laneyard review work --discard" in str(caught.value)
        assert isinstance((await opened.discard()).lane, Reaped)
        assert consents(world)[-1] == Consent((".env",), "review --discard")


@pytest.mark.parametrize("late", ["secret", "repository"])
async def test_what_came_into_a_directory_that_was_let_go_holds_the_reap(world: World, late: str) -> None:
    async with world.open() as opened:
        await opened.create()
        place = at(opened)
        write(place, b".gitignore", b"build/\n")
        world.git(place, "add", ".gitignore")
        world.git(place, "commit", "-q", "-m", "ignored")
        write(place, b"build/CACHEDIR.TAG", TAG)
        await opened.remove()
        if late == "secret":
            write(at(opened), b"build/.env", b"SECRET\n")
        else:
            world.git(at(opened), "init", "-q", "build/scratch")
        with pytest.raises(SnapshotNotMade) as caught:
            await opened.reap()
        assert caught.value.code == "unknown_ignored"
        assert isinstance((await opened.discard()).lane, Reaped)


async def test_the_looks_of_a_reap_use_the_users_rules(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    rules = Wanted.rules
    monkeypatch.setattr(Wanted, "rules", lambda self: asked.append(True) or rules(self))  # type: ignore[func-returns-value]
    async with world.open() as opened:
        place = await rests(opened, b".cache/\n", work=False)
        write(place, b".cache/CACHEDIR.TAG", TAG)
        asked.clear()
        await opened.reap()
        assert asked


def fifo(world: World, place: bytes) -> str:
    os.mkfifo(os.path.join(place, b"pipe"))
    return "pipe"


def private_tag(world: World, place: bytes) -> str:
    world.git(place, "tag", "-a", "-m", "t", "T")
    oid = world.git(place, "rev-parse", "T").decode().strip()
    world.git(place, "update-ref", "refs/worktree/t", oid)
    world.git(place, "tag", "-d", "T")
    return oid


def names_only(consent: Consent | None, name: str) -> bool:
    """Tells whether a consent is about one path, which ends in the name."""
    return consent is not None and not consent.exact and [p.endswith(name) for p in consent.paths] == [True]


@pytest.mark.parametrize("obstruct", [fifo, private_tag])
async def test_a_lane_at_rest_that_cannot_be_captured_is_discarded_by_name(
    world: World, obstruct: object
) -> None:
    async with world.open() as opened:
        await opened.create()
        named = obstruct(world, at(opened))  # type: ignore[operator]
        await opened.remove()
        with pytest.raises(SnapshotNotMade) as caught:
            await opened.reap()
        assert caught.value.code == "cannot_hold"
        assert "laneyard review work --discard" in str(caught.value)
        assert isinstance((await opened.discard()).lane, Reaped)
        assert names_only(consents(world)[-1], named)
        await opened.restore()


@pytest.mark.parametrize("obstruct", [fifo, private_tag])
async def test_a_forced_removal_of_a_clean_lane_names_what_no_snapshot_can_hold(
    world: World, obstruct: object
) -> None:
    async with world.open() as opened:
        await opened.create()
        named = obstruct(world, at(opened))  # type: ignore[operator]
        await opened.remove(mode="force")
        lane = opened.lane()
        assert isinstance(lane, Quarantined)
        assert names_only(lane.consent, named)
        assert isinstance((await opened.reap()).lane, Reaped)


async def test_a_lane_at_rest_that_nothing_stands_in_the_way_of_is_not_discarded(world: World) -> None:
    async with world.open() as opened:
        await rests(opened)
        with pytest.raises(WrongState):
            await opened.discard()
        assert isinstance(opened.lane(), Quarantined)


@pytest.mark.parametrize("end", [b"", b"\n\n", b"\r\n"])
async def test_a_pointer_that_says_the_same_is_still_the_pointer(world: World, end: bytes) -> None:
    async with world.open() as opened:
        place = await rests(opened)
        write(place, b".git", read(place, b".git").rstrip(b"\n") + end)
        assert isinstance((await opened.reap()).lane, Reaped)


async def test_a_pointer_that_somebody_has_replaced_can_be_agreed_to_by_name(world: World) -> None:
    async with world.open() as opened:
        place = await rests(opened)
        write(place, b".git", b"something else\n")
        await opened.reap()
        assert reviewed(opened).paths == (".git",)
        assert isinstance((await opened.discard()).lane, Reaped)
        assert not os.path.lexists(place)
        await opened.restore()


async def test_a_repository_in_the_pointers_place_is_named_entry_by_entry(world: World) -> None:
    async with world.open() as opened:
        place = await rests(opened)
        os.unlink(os.path.join(place, b".git"))
        world.git(place, "init", "-q")
        await opened.reap()
        assert {".git", ".git/HEAD"} <= set(reviewed(opened).paths)
        write(place, b".git/refs/heads/late", b"0" * 40)
        await opened.discard()
        assert reviewed(opened).paths == (".git/refs/heads/late",)
        assert isinstance((await opened.discard()).lane, Reaped)
        assert not os.path.lexists(place)


async def test_a_lane_whose_pointer_is_a_repository_is_told_what_to_do_to_be_put_back(world: World) -> None:
    async with world.open() as opened:
        place = await rests(opened)
        os.unlink(os.path.join(place, b".git"))
        world.git(place, "init", "-q")
        await opened.reap()
        problem = (await opened.restore()).problem
        assert problem is not None
        said = problem[1].partition("says '")[2].partition("'")[0]
        os.rename(os.path.join(place, b".git"), os.fsencode(world.home / "moved"))
        write(place, b".git", said.encode())
        await opened.restore()
        assert isinstance(opened.lane(), Active)


@pytest.mark.parametrize("agreed", [True, False])
async def test_a_directory_that_may_not_be_read_is_deleted_if_it_is_agreed_to(
    world: World, *, agreed: bool
) -> None:
    async with world.open() as opened:
        await opened.create()
        write(at(opened), b".gitignore", b"build/\n")
        if agreed:
            write(at(opened), b"build/CACHEDIR.TAG", TAG)
        await opened.remove()
        write(at(opened), b"build/locked/deep/file")
        os.chmod(locked := os.path.join(at(opened), b"build/locked"), 0)
        if os.access(locked, os.R_OK):
            pytest.skip("root may look into every directory")
        await opened.reap()
        if not agreed:
            assert (reviewed(opened).detail, reviewed(opened).paths) == ("unreadable", ("build/locked",))
            await opened.discard()
            assert reviewed(opened).paths == ("build",)
            await opened.discard()
        assert isinstance(opened.lane(), Reaped)
