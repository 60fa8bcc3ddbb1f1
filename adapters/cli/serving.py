"""The service, started from the command line."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import trio

from adapters import config
from adapters.cli.failures import tell
from adapters.service.front.sockets import SocketError
from adapters.service.logs import configure
from adapters.service.serve import serve

if TYPE_CHECKING:
    from argparse import Namespace


def run_serve(arguments: Namespace) -> int:
    """Serves until it is told to stop; the exit code says whether everything had ended then."""
    settings = config.load(arguments.state_dir)
    as_json = arguments.json or not sys.stderr.isatty()
    configure(sys.stderr, as_json, settings.configuration.service.log_level.upper())
    try:
        code = trio.run(serve, settings, arguments.tcp)
    except SocketError as error:
        code = tell(arguments, error.code, str(error), {}, "unavailable")
    logging.shutdown()
    return code
