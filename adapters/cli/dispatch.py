"""Which command is run by what."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace

COMMANDS = {
    "create": "changing",
    "snapshot": "snapshots",
    "remove": "changing",
    "restore": "changing",
    "reap": "changing",
    "sweep": "changing",
    "review": "changing",
    "list": "looking",
    "show": "looking",
    "log": "looking",
    "replay": "replaying",
    "diff": "looking",
    "verify": "upkeep",
    "rebuild": "changing",
    "doctor": "doctor",
    "demo": "demo",
    "serve": "serving",
    "completion": "completion",
}


def run(arguments: Namespace) -> int:
    """Runs the command and returns its exit code."""
    module = import_module(f"adapters.cli.{COMMANDS[arguments.command]}")
    code: int = getattr(module, f"run_{arguments.command}")(arguments)
    return code
