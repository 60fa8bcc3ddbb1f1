"""A request's body arrives in time, or the request is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from adapters.service.misuse import RequestTooSlow

if TYPE_CHECKING:
    from adapters.service.http11 import App, Asked, Message, Receive, Send


class Bounded:
    """Gives a request so many seconds for all of its body; wraps an application."""

    def __init__(self, app: App, seconds: float) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Asked, receive: Receive, send: Send) -> None:
        """Answers a request; whoever reads its body late meets RequestTooSlow."""
        deadline = trio.current_time() + self._seconds
        whole = False

        async def in_time() -> Message:
            nonlocal whole
            if whole:  # what follows is only that the client has gone, for which nobody hurries
                return await receive()
            with trio.move_on_at(deadline):
                message = await receive()
                whole = not message.get("more_body", False)
                return message
            raise RequestTooSlow(self._seconds)

        await self._app(scope, in_time, send)
