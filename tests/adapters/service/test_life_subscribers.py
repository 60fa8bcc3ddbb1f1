"""Two hundred subscribers across three restarts, and one that does not read."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from fnmatch import fnmatchcase
from signal import Signals
from typing import TYPE_CHECKING

import h11
import pytest
import trio

from adapters.clock import now
from adapters.store.journal import Entry, Journal
from domain.envelope import Actor, stream_of, sweep_stream
from domain.events import SweepFinished, SweptLane
from tests.adapters.service.front import until
from tests.soak import load
from tests.soak.house import House
from tests.soak.subscribers import NDJSON, Subscriber

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from domain.envelope import Envelope

pytestmark = pytest.mark.slow


def crowd(house: House, lanes: list[str]) -> list[tuple[Subscriber, Callable[[Envelope], bool]]]:
    """Two hundred subscribers, each with what it wants to hear of."""

    def everything(event: Envelope) -> bool:
        return True

    def about(lane: str) -> Callable[[Envelope], bool]:
        return lambda event: event.stream == stream_of(lane)

    def called(glob: str) -> Callable[[Envelope], bool]:
        return lambda event: fnmatchcase(event.type.partition("@")[0], glob)

    made: list[tuple[Subscriber, Callable[[Envelope], bool]]] = []
    for number in range(200):
        match number % 5:
            case 0 | 1:
                made.append((Subscriber(house.socket), everything))
            case 2:
                lane = lanes[number % len(lanes)]
                made.append((Subscriber(house.socket, f"lane={lane}"), about(lane)))
            case 3:
                glob = ("lane.*", "removal.*")[number % 2]
                made.append((Subscriber(house.socket, f"type={glob}"), called(glob)))
            case _:
                made.append((Subscriber(house.socket, "", NDJSON), everything))
    return made


async def under_load(house: House, seconds: float, end: Signals) -> None:
    """Serves so long, and ends so."""
    with house.serving(ready=False) as running:
        await trio.to_thread.run_sync(running.until, "READY=1")
        await trio.sleep(seconds)
        running.tell(end)
        await trio.to_thread.run_sync(running.ended)


async def test_nobody_misses_or_repeats_an_event_across_three_restarts(tmp_path: Path) -> None:
    house, tally = House(tmp_path, "ab"), load.Tally()
    with house.serving() as running:
        lanes = [str(house.create(f"lane-{number}")["id"]) for number in range(4)]
        assert running.stop() == 0
    subscribers = crowd(house, lanes)
    clients, stop = load.start(6, house.socket, house.roots, tally)
    try:
        with trio.fail_after(150):
            async with trio.open_nursery() as nursery:
                for each, _ in subscribers:
                    nursery.start_soon(each.run)
                for end in (Signals.SIGTERM, Signals.SIGKILL, Signals.SIGTERM):
                    await under_load(house, 3, end)
                with house.serving(ready=False) as running:
                    await trio.to_thread.run_sync(running.until, "READY=1")
                    await trio.to_thread.run_sync(load.finish, clients, stop)
                    for lane in lanes:
                        await trio.to_thread.run_sync(house.ask, "POST", f"/v1/lanes/{lane}/remove")
                    events = house.events()
                    told = [[e.position for e in events if wants(e)] for _, wants in subscribers]
                    whole = sum(map(len, told))
                    await until(lambda: sum(len(each.positions) for each, _ in subscribers) >= whole, 60)
                    nursery.cancel_scope.cancel()
                    running.stop()
    finally:
        stop.set()
        tally.abandoned.set()
    assert len(events) > 100
    assert [each.positions for each, _ in subscribers] == told
    assert min(each.connected for each, _ in subscribers) >= 4


def many_events(house: House, count: int) -> None:
    """Writes events of about two kilobytes each."""
    house.state.mkdir(mode=0o700)
    long = SweptLane(lane="none", state="gone", code="none", reason="x" * 2000)
    journal = Journal(house.store, now)
    promises = [
        journal.submit(
            Entry(
                stream=sweep_stream(f"many-{number}"),
                decide=lambda lane: (SweepFinished(results=(long,)),),
                actor=Actor(os.getuid(), os.getpid(), "tests"),
                cause=f"many-{number}",
            )
        )
        for number in range(count)
    ]
    for each in promises:
        each.result()
    journal.close()


async def test_a_reader_that_does_not_read_is_dropped_holds_up_nobody_and_can_resume(tmp_path: Path) -> None:
    house = House(tmp_path)
    many_events(house, 2000)
    house.configure("service.send_timeout = 1.0\n")
    with house.serving(ready=False) as running, trio.fail_after(60), ExitStack() as closing:
        await trio.to_thread.run_sync(running.until, "READY=1")
        subscriber = Subscriber(house.socket)
        slow = closing.enter_context(trio.socket.socket(socket.AF_UNIX))
        await slow.connect(house.socket)
        await slow.send(subscriber.asking(h11.Connection(h11.CLIENT)))
        await until(lambda: house.health()["subscribers"] == 1)  # nobody reads what comes
        made = 0
        while house.health()["subscribers"] == 1:
            await trio.to_thread.run_sync(house.create, f"lane-{made}")
            made += 1
        assert made > 1
        stream = trio.SocketStream(slow)
        with pytest.raises(h11.RemoteProtocolError):  # what was sent before is there, up to a torn frame
            await subscriber.follow(_Asked(stream))  # type: ignore[arg-type]
        assert 0 < subscriber.last < 2000
        async with trio.open_nursery() as nursery:
            nursery.start_soon(subscriber.run)
            events = house.events()
            await until(lambda: subscriber.last >= events[-1].position, 60)
            nursery.cancel_scope.cancel()
        assert subscriber.positions == [event.position for event in events]
        running.stop()


class _Asked:
    """A stream on which the request has been sent already."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.receive_some = stream.receive_some

    async def send_all(self, data: bytes) -> None:
        """Sends nothing."""
