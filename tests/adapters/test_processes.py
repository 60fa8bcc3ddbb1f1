"""How many git processes each command costs, once the engine runs and the repository is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapters.cli.parser import build_parser
from adapters.cli.reading import run_list
from tests.sagas.scenarios import clean, dirty, in_review, reaped, removed, removed_clean
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.sagas.worlds import Open

    Act = Callable[[Open], Awaitable[object]]

# What is promised is in the first group; the second holds what it takes today, so that more is noticed.
COSTS: dict[str, tuple[Act, Act, int]] = {
    "create": (clean, lambda o: o.create("another"), 3),
    "remove a clean lane": (clean, lambda o: o.remove(), 1),
    "restore from the quarantine": (removed, lambda o: o.restore(), 0),
    "snapshot": (dirty, lambda o: o.snapshot(), 9),
    "remove a dirty lane": (dirty, lambda o: o.remove(), 10),
    "reap": (removed, lambda o: o.reap(), 4),
    "reap without a snapshot": (removed_clean, lambda o: o.reap(), 9),
    "restore from a snapshot": (reaped, lambda o: o.restore(), 8),
    "discard": (in_review, lambda o: o.discard(), 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("command", COSTS)
async def test_a_command_starts_so_many_processes(tmp_path: Path, command: str) -> None:
    prepare, act, costs = COSTS[command]
    async with World(tmp_path).open() as opened:
        await prepare(opened)
        before = opened.yard.git.started
        await act(opened)
        assert opened.yard.git.started - before == costs


@pytest.mark.slow
async def test_the_lanes_of_an_earlier_moment_are_listed_without_a_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await clean(opened)
    world.fake('touch "$WORLD/started"')
    (tmp_path / "state/config.toml").write_text(f"[git]\nprogram = '{world.program}'\n")
    options = ["-C", str(tmp_path / "root"), "--state-dir", str(tmp_path / "state")]
    assert run_list(build_parser().parse_args([*options, "list", "--at", "5"])) == 0
    assert "work" in capsys.readouterr().out
    assert not (tmp_path / "started").exists()
