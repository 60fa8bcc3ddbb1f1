from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import trio

from adapters.git.conversation import WHOLE
from adapters.git.door import Location
from adapters.git.errors import GitFailed, GitTalksTooMuch, GitTimedOut

if TYPE_CHECKING:
    from adapters.git.door import Git
    from tests.adapters.git.conftest import Workshop


async def test_objects_are_asked_for_one_by_one(workshop: Workshop, door: Git) -> None:
    git_dir = Location(os.fsencode(workshop.repository() / ".git"))
    async with door.converse(b"cat-file", b"--batch", repository=git_dir) as asked:
        await asked.send(b"HEAD:file\n")
        assert (await asked.line()).endswith(b" blob 4")
        assert await asked.exactly(5) == b"one\n\n"
        await asked.send(b"none\n")
        assert await asked.line() == b"none missing"
        assert await asked.finish() == (0, b"")
    assert door.started == 1


@pytest.mark.parametrize("size", [0, 1, WHOLE, WHOLE + 1, 3 * WHOLE])
async def test_an_object_has_one_end_however_much_of_it_has_arrived(workshop: Workshop, size: int) -> None:
    blobs = f'printf "one blob {size}\\n"; head -c {size} /dev/zero; printf "\\ntwo blob 3\\nend\\n"'
    door = workshop.fake(f"{blobs}; cat >&2")
    async with door.converse(repository=workshop.location) as asked:
        asked._child.expect(size)
        await asked._child.until(lambda: len(asked._child.out) > size + 20, 20)  # all of both is there
        found = [each async for each in asked.objects(["one", "two"])]
    assert [head for head, _, left in found if not left] == [b"blob %d" % size, b"blob 3"]
    assert b"".join(piece for _, piece, _ in found) == bytes(size) + b"end"


async def test_the_rest_comes_whole_however_long_it_is(workshop: Workshop) -> None:
    door = workshop.fake("head -c 3000000 /dev/zero; sleep 0.1; echo end")
    async with door.converse(repository=workshop.location) as asked:
        pieces = [each async for each in asked.rest()]
    assert b"".join(pieces) == bytes(3_000_000) + b"end\n"
    assert max(map(len, pieces)) < 3_000_000


async def test_the_rest_of_what_fails_is_no_success(workshop: Workshop) -> None:
    door = workshop.fake("echo begun; echo broken >&2; exit 3")
    async with door.converse(repository=workshop.location) as asked:
        pieces = asked.rest()
        assert await anext(pieces) == b"begun\n"
        with pytest.raises(GitFailed, match="broken"):
            await anext(pieces)


@pytest.mark.slow
async def test_asking_much_before_listening_does_not_block(workshop: Workshop, door: Git) -> None:
    git_dir = Location(os.fsencode(workshop.repository() / ".git"))
    async with door.converse(b"cat-file", b"--batch-check", repository=git_dir, timeout=20) as asked:
        await asked.send(b"HEAD\n" * 20_000)
        first = await asked.line()
        for _ in range(19_999):
            assert await asked.line() == first
        await asked.finish()


async def test_an_end_before_the_answer_is_a_failure(workshop: Workshop) -> None:
    door = workshop.fake("read line; printf half; echo sorry >&2; exit 4")
    async with door.converse(b"cat-file", repository=workshop.location) as asked:
        await asked.send(b"question\n")
        with pytest.raises(GitFailed, match="ended with 4: sorry"):
            await asked.line()
        with pytest.raises(GitFailed, match="ended with 4: sorry"):
            await asked.exactly(5)
        with pytest.raises(GitFailed, match="ended with 4: sorry"):
            await asked.send(b"question\n")
        with pytest.raises(GitFailed, match="ended with 4: sorry"):
            await asked.finish()


async def test_a_command_that_does_not_listen_has_failed(workshop: Workshop) -> None:
    async with workshop.fake("exit 0").converse(repository=workshop.location) as asked:
        with pytest.raises(GitFailed, match="ended with 0"):
            await asked.send(b"x" * 1_000_000)


async def test_what_was_said_before_the_end_can_be_read_after_it(workshop: Workshop) -> None:
    async with workshop.fake("echo one; echo two").converse(repository=workshop.location) as asked:
        await asked.finish()
        assert [await asked.line(), await asked.line()] == [b"one", b"two"]


async def test_leaving_early_ends_the_command(workshop: Workshop) -> None:
    door = workshop.fake("echo $$; exec sleep 1000")
    async with door.converse(repository=workshop.location) as asked:
        process = int(await asked.line())
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


async def test_silence_is_bounded(workshop: Workshop) -> None:
    door = workshop.fake("sleep 1000 & wait")
    async with door.converse(b"cat-file", repository=workshop.location, timeout=0.05) as asked:
        with pytest.raises(GitTimedOut, match="git cat-file"):
            await asked.line()


async def test_a_line_without_an_end_is_bounded(workshop: Workshop) -> None:
    door = workshop.fake("exec cat /dev/zero")
    async with door.converse(repository=workshop.location) as asked:
        with pytest.raises(GitTalksTooMuch):
            await asked.line()


async def test_an_error_in_the_block_is_the_one_that_is_seen(workshop: Workshop) -> None:
    with pytest.raises(KeyError):
        async with workshop.fake("exec sleep 1000").converse(repository=workshop.location):
            raise KeyError


async def test_cancelled_conversations_end_their_command(workshop: Workshop) -> None:
    door = workshop.fake("echo $$; exec sleep 1000")
    with trio.move_on_after(5) as scope:
        async with door.converse(repository=workshop.location) as asked:
            process = int(await asked.line())
            scope.cancel()
            await asked.line()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
