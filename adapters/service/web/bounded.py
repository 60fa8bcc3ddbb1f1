"""A request's body arrives whole and in time, or the request is refused, or nobody is left to be answered."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from adapters.service.web.misuse import RequestTooSlow

if TYPE_CHECKING:
    from adapters.service.front.http11 import App, Asked, Message, Receive, Send

LOG = logging.getLogger("laneyard.http")


class Bounded:
    """Gives a request so many seconds for all of its body; wraps an application."""

    def __init__(self, app: App, seconds: float) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Asked, receive: Receive, send: Send) -> None:
        """Answers a request; whoever reads its body late meets RequestTooSlow.

        Where the client goes away before its body is whole, the request ends there: nothing has begun.
        """
        deadline = trio.current_time() + self._seconds
        whole, wanted = False, trio.CancelScope()

        async def in_time() -> Message:
            nonlocal whole
            if whole:  # what follows is only that the client has gone, for which nobody hurries
                return await receive()
            with trio.move_on_at(deadline):
                message = await receive()
                if message["type"] == "http.disconnect":
                    wanted.cancel()
                    await trio.sleep_forever()
                whole = not message.get("more_body", False)
                return message
            raise RequestTooSlow(self._seconds)

        with wanted:
            await self._app(scope, in_time, send)
        if wanted.cancelled_caught:
            LOG.debug(
                "a client has gone before its request was whole", extra={"fields": {"path": scope["path"]}}
            )
