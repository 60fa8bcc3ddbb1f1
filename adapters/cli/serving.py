"""The service, started from the command line."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import trio

from adapters import config
from adapters.cli import DONE
from adapters.service.logs import configure
from adapters.service.serve import serve

if TYPE_CHECKING:
    from argparse import Namespace


def run_serve(arguments: Namespace) -> int:
    """Serves until it is told to stop."""
    settings = config.load(arguments.state_dir)
    as_json = arguments.json or not sys.stderr.isatty()
    configure(sys.stderr, as_json, settings.configuration.service.log_level.upper())
    trio.run(serve, settings, arguments.tcp)
    logging.shutdown()
    return DONE
