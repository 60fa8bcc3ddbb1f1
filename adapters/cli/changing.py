"""The commands that change something: a service does them where one runs, else the engine in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapters.cli import asking
from adapters.cli.whereabouts import here
from adapters.client.targets import packed

if TYPE_CHECKING:
    from argparse import Namespace


def change(arguments: Namespace, verb: str, body: dict[str, Any]) -> int:
    """Does one command, wherever it is done, and returns the exit code."""

    def ask() -> int | None:
        return asking.change(arguments, verb, body)

    code = ask()
    if code is not None:
        return code
    from adapters.cli import engine  # slow to import, and not needed where a service runs

    return engine.run(arguments, verb, body, ask)


def run_create(arguments: Namespace) -> int:
    """Makes a lane and prints its path."""
    asked = ("name", "base", "parent", "branch", "owner")
    said = {name: getattr(arguments, name) for name in asked}
    return change(arguments, "create", {"repository": packed(here(arguments)), **said})


def run_snapshot(arguments: Namespace) -> int:
    """Captures a lane."""
    return change(arguments, "snapshot", included(arguments))


def run_remove(arguments: Namespace) -> int:
    """Puts a lane into quarantine, and reaps it if asked to."""
    return change(arguments, "remove", removal(arguments))


def removal(arguments: Namespace) -> dict[str, Any]:
    """Returns what is said of a removal."""
    said = {name: getattr(arguments, name) for name in ("force", "reap", "delete_branch")}
    return said | included(arguments)


def included(arguments: Namespace) -> dict[str, Any]:
    """Returns what is said of ignored files, if anything is."""
    return {} if arguments.include_ignored is None else {"include_ignored": arguments.include_ignored}


def run_restore(arguments: Namespace) -> int:
    """Brings a lane back."""
    return change(arguments, "restore", {"edition": arguments.edition, "snapshot": arguments.snapshot})


def run_reap(arguments: Namespace) -> int:
    """Deletes a quarantined lane."""
    return change(arguments, "reap", {})


def run_review(arguments: Namespace) -> int:
    """Shows what a lane waits for, or takes one of the ways out."""
    ways = {"put-back": arguments.put_back, "resnapshot": arguments.resnapshot, "discard": arguments.discard}
    return change(arguments, next((way for way, wanted in ways.items() if wanted), "review"), {})


def run_rebuild(arguments: Namespace) -> int:
    """Makes every table anew from the log."""
    code = asking.rebuild(arguments)
    if code is not None:
        return code
    from adapters.cli.upkeep import rebuild

    return rebuild(arguments)


def run_sweep(arguments: Namespace) -> int:
    """Shows what is due, or does it."""
    return change(arguments, "sweep" if arguments.apply else "candidates", {})
