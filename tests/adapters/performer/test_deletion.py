"""The one effect that deletes: only what is explained, only from the very directory, and found done."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from adapters.performer import proof
from domain.effects import Destroy, Destroyed, Explain, Explained, NotDone, Unexplained
from tests.sagas.trees import walk, write

if TYPE_CHECKING:
    from domain.states import Basis
    from tests.adapters.snapshots.lanes import Lane


def explaining(lane: Lane, basis: Basis) -> Explain:
    return Explain(repository=lane.repository, place=lane.place, basis=basis)


def destroying(lane: Lane, basis: Basis) -> Destroy:
    return Destroy(repository=lane.repository, place=lane.place, basis=basis, digest="")


async def captured(lane: Lane) -> Basis:
    lane.world.dirty(lane.path)
    return lane.basis(await lane.captured())


async def test_explaining_deletes_nothing_and_says_the_same_twice(lane: Lane) -> None:
    basis = await captured(lane)
    before = walk(lane.path)
    first = await lane.perform(explaining(lane, basis))
    assert isinstance(first, Explained)
    assert first.entries == len(before)
    assert await lane.perform(explaining(lane, basis)) == first
    assert walk(lane.path) == before


async def test_an_explained_tree_is_deleted_once(lane: Lane) -> None:
    effect = destroying(lane, await captured(lane))
    assert await lane.perform(effect) == Destroyed()
    assert not os.path.lexists(lane.path)
    assert await lane.perform(effect) == Destroyed()


@pytest.mark.parametrize("gone", [1, 5, 15])
async def test_a_deletion_that_died_half_way_is_finished(lane: Lane, gone: int) -> None:
    effect = destroying(lane, await captured(lane))
    files = sorted(path for path, entry in walk(lane.path).items() if entry[0] != "directory")
    for path in files[:gone]:
        os.unlink(lane.at(path))
    assert await lane.perform(effect) == Destroyed()
    assert not os.path.lexists(lane.path)


async def test_a_tree_that_was_moved_away_is_missing_and_not_deleted(lane: Lane) -> None:
    effect = destroying(lane, await captured(lane))
    os.rename(lane.path, lane.path + b"-away")
    outcome = await lane.perform(effect)
    assert isinstance(outcome, Unexplained)
    assert outcome.cause == "tree_missing"
    os.rename(lane.path + b"-away", lane.path)
    assert await lane.perform(effect) == Destroyed()


async def test_what_was_proved_of_one_explanation_is_not_proved_of_another(lane: Lane) -> None:
    effect = destroying(lane, await captured(lane))
    assert await lane.perform(effect) == Destroyed()
    outcome = await lane.perform(replace(effect, digest="another"))
    assert isinstance(outcome, Unexplained)
    assert outcome.cause == "tree_missing"


async def test_a_tree_that_stays_proves_nothing(lane: Lane) -> None:
    basis = await captured(lane)
    effect = destroying(lane, basis)
    proof.give(effect)
    lane.write(b"deep/late", b"late\n")
    assert isinstance(await lane.perform(effect), Unexplained)
    os.rename(lane.path, lane.path + b"-away")
    outcome = await lane.perform(effect)
    assert isinstance(outcome, Unexplained)
    assert outcome.cause == "tree_missing"


async def test_a_registration_that_is_another_trees_by_now_proves_nothing(lane: Lane) -> None:
    effect = destroying(lane, await captured(lane))
    write(os.path.join(lane.admin, b"gitdir"), lane.path + b"-other/.git\n")
    proof.give(effect)
    assert os.listdir(lane.admin).count(proof.NAME) == 0
    assert not proof.is_given(effect)


async def test_a_consent_to_all_of_a_tree_that_is_gone_deletes_nothing_that_comes_back(lane: Lane) -> None:
    basis = lane.basis(await lane.captured(), b".")
    effect, look = destroying(lane, basis), explaining(lane, basis)
    os.rename(lane.path, lane.path + b"-away")
    outcome = await lane.perform(look)
    assert isinstance(outcome, Explained)
    assert (outcome.entries, outcome.bytes) == (0, 0)
    gone = replace(effect, digest=outcome.digest)
    assert await lane.perform(gone) == Destroyed()
    os.rename(lane.path + b"-away", lane.path)
    before = walk(lane.path)
    assert isinstance(await lane.perform(gone), Unexplained)
    assert walk(lane.path) == before


async def test_a_directory_that_a_killed_deletion_has_opened_is_as_it_was(lane: Lane) -> None:
    lane.write(b"cache/one", b"one\n")
    os.chmod(lane.at(b"cache"), 0o555)
    basis = await captured(lane)
    effect = destroying(lane, basis)
    os.chmod(lane.at(b"cache"), 0o755)
    os.unlink(lane.at(b"cache/one"))
    outcome = await lane.perform(explaining(lane, basis))
    assert isinstance(outcome, Unexplained)
    assert outcome.paths == ("cache",)
    assert isinstance(await lane.perform(explaining(lane, replace(basis, worn=True))), Explained)
    assert await lane.perform(effect) == Destroyed()


async def test_a_tree_that_stays_gets_its_pointer_again(lane: Lane) -> None:
    effect = destroying(lane, await captured(lane))
    os.unlink(lane.at(b".git"))
    proof.keep_pointer(effect)
    assert lane.git("rev-parse", "--show-toplevel").strip() == lane.path


async def test_what_comes_after_the_explanation_is_kept_with_what_leads_to_it(lane: Lane) -> None:
    effect = destroying(lane, await captured(lane))
    lane.write(b"deep/late", b"late\n")
    outcome = await lane.perform(effect)
    assert isinstance(outcome, Unexplained)
    assert (outcome.cause, outcome.paths) == ("changed_while_reaping", ("deep/late",))
    assert walk(lane.path).keys() == {b".git", b"deep", b"deep/late"}


async def test_unexplained_entries_are_named_and_counted(lane: Lane) -> None:
    basis = await captured(lane)
    for number in range(150):
        lane.write(b"late%03d" % number, b"late\n")
    outcome = await lane.perform(explaining(lane, basis))
    assert isinstance(outcome, Unexplained)
    assert (outcome.cause, outcome.count, len(outcome.paths)) == ("unexplained_entries", 150, 150)


async def test_another_directory_in_the_trees_place_is_neither_explained_nor_deleted(lane: Lane) -> None:
    basis = await captured(lane)
    effects = explaining(lane, basis), destroying(lane, basis)
    os.rename(lane.path, lane.path + b"-away")
    write(lane.at(b".git"), walk(lane.path + b"-away")[b".git"][2])
    causes = []
    for effect in effects:
        outcome = await lane.perform(effect)
        assert isinstance(outcome, Unexplained)
        causes.append(outcome.cause)
    assert causes == ["identity_changed", "changed_while_reaping"]
    assert walk(lane.path).keys() == {b".git"}


async def test_a_snapshot_that_is_damaged_by_then_deletes_nothing(lane: Lane) -> None:
    basis = await captured(lane)
    assert basis.snapshot is not None
    lane.git("update-ref", "-d", basis.snapshot.ref)
    before = walk(lane.path)
    for effect in (explaining(lane, basis), destroying(lane, basis)):
        assert isinstance(await lane.perform(effect), Unexplained)
    assert walk(lane.path) == before


async def test_work_that_went_on_in_the_tree_deletes_nothing(lane: Lane) -> None:
    basis = await captured(lane)
    lane.git("commit", "-q", "-m", "late")
    before = walk(lane.path)
    outcome = await lane.perform(explaining(lane, basis))
    assert isinstance(outcome, Unexplained)
    assert outcome.cause == "registration_changed"
    assert isinstance(await lane.perform(destroying(lane, basis)), Unexplained)
    assert walk(lane.path) == before


async def test_a_git_that_gives_no_answer_deletes_nothing(lane: Lane) -> None:
    basis = await captured(lane)
    before = walk(lane.path)
    lane.world.fake('case " $* " in *" cat-file "*) exit 128; esac')
    for effect in (explaining(lane, basis), destroying(lane, basis)):
        outcome = await lane.perform(effect)
        assert isinstance(outcome, NotDone)
        assert outcome.code == "git_failed"
    assert walk(lane.path) == before


async def test_an_interrupted_checkout_is_deleted_and_a_strangers_file_in_it_is_not(lane: Lane) -> None:
    basis = lane.basis(None, partial=True)
    write(lane.at(b"file"), b"on")
    lane.write(b"theirs", b"theirs\n")
    outcome = await lane.perform(explaining(lane, basis))
    assert isinstance(outcome, Unexplained)
    assert outcome.paths == ("theirs",)
    os.unlink(lane.at(b"theirs"))
    assert isinstance(await lane.perform(explaining(lane, basis)), Explained)
    assert await lane.perform(destroying(lane, replace(basis))) == Destroyed()
