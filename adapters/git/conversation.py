"""A git command that is asked and answers line by line, such as `cat-file --batch-check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.git.errors import GitFailed, GitOutputUnreadable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from adapters.git.child import Child

WHOLE = 1 << 20  # bytes of an object up to which it comes in one piece


class Conversation:
    """Both ends of a running command, for one task at a time; `timeout` is what each single wait may take."""

    def __init__(self, child: Child, arguments: Sequence[bytes], timeout: float) -> None:
        self._child = child
        self._arguments = arguments
        self._timeout = timeout

    @property
    def pid(self) -> int:
        """Returns the command's process id."""
        return self._child.pid

    async def send(self, data: bytes) -> None:
        """Writes all of the data, keeping what the command says meanwhile; raises GitFailed if it is gone."""
        if not self._child.hears:
            raise await self._failure()
        self._child.feed(data)
        await self._child.until(lambda: self._child.fed, self._timeout)
        if not (self._child.fed and self._child.hears):
            raise await self._failure()

    async def line(self) -> bytes:
        """Returns the next line without its line feed; raises GitFailed where the output ends."""
        looked = 0
        out = self._child.out

        def arrived() -> bool:
            nonlocal looked
            found = out.find(b"\n", looked)
            looked = len(out) if found < 0 else found
            return found >= 0 or not self._child.speaks

        await self._child.until(arrived, self._timeout)
        end = out.find(b"\n")
        if end < 0:
            raise await self._failure()
        return self._take(end + 1)[:-1]

    async def exactly(self, count: int) -> bytes:
        """Returns the next so many bytes; raises GitFailed where the output ends before."""
        out = self._child.out
        self._child.expect(count)
        await self._child.until(lambda: len(out) >= count or not self._child.speaks, self._timeout)
        if len(out) < count:
            raise await self._failure()
        return self._take(count)

    async def objects(self, oids: Sequence[str]) -> AsyncGenerator[tuple[bytes, bytes, int]]:
        """Asks `cat-file --batch` for all of them, and yields for each, in their order, head, bytes and rest.

        The head is what git says of it, such as `blob 12` or `missing`; what is longer than `WHOLE` comes in
        several pieces under the same head, each with the number of bytes that are still to come. Nothing
        more can be asked then. Raises GitFailed where the output ends, GitOutputUnreadable for another's.
        """
        self._child.widen()
        self._child.feed("\n".join((*oids, "")).encode("ascii"))
        self._child.complete_input()
        out, at = self._child.out, 0  # read where it gathers, and cut off once per arrival
        for oid in oids:
            while (end := out.find(b"\n", at)) < 0:
                at = await self._more(at)
            if not out.startswith(oid.encode("ascii"), at):
                raise GitOutputUnreadable("cat-file", bytes(out[at:end]))
            head, at = bytes(out[at + len(oid) + 1 : end]), end + 1
            size = head.rpartition(b" ")[2]
            left = int(size) if size.isdigit() else -1  # of what is missing there is not even an end
            while left > WHOLE:
                # All but the last byte, which is in the last piece: it ends once, however much has come.
                if piece := bytes(out[at : at + left - 1]):
                    at += len(piece)
                    left -= len(piece)
                    yield head, piece, left
                at = await self._more(at) if left > WHOLE else at
            while len(out) - at <= left:
                at = await self._more(at)
            yield head, bytes(out[at : at + left]) if left > 0 else b"", 0
            at += left + 1

    async def _more(self, done: int) -> int:
        """Cuts off what is done with, waits for at least one byte more, and returns where to go on."""
        out = self._child.out
        del out[:done]
        length = len(out)
        await self._child.until(lambda: len(out) > length or not self._child.speaks, self._timeout)
        if len(out) == length:
            raise await self._failure()
        return 0

    async def rest(self) -> AsyncGenerator[bytes]:
        """Asks no more, and yields all that is still said, in pieces as they come.

        At its end the command has ended well. Raises GitFailed.
        """
        self._child.complete_input()
        out = self._child.out
        while out or not self._child.ended:
            if out:
                yield self._take(len(out))
            await self._child.until(lambda: bool(out), self._timeout)
        await self.finish()

    async def finish(self) -> tuple[int, bytes]:
        """Closes the command's input and waits for it; returns its code, which is 0, and standard error."""
        self._child.complete_input()
        code = await self._child.until_ended(self._timeout)
        if code != 0:
            raise GitFailed(self._arguments, code, bytes(self._child.err))
        return code, bytes(self._child.err)

    def _take(self, count: int) -> bytes:
        taken = bytes(self._child.out[:count])
        del self._child.out[:count]
        return taken

    async def _failure(self) -> GitFailed:
        self._child.complete_input()
        code = await self._child.until_ended(self._timeout)
        return GitFailed(self._arguments, code, bytes(self._child.err))
