"""What the command line takes."""

import argparse
import re
from typing import Any, NoReturn

FARTHEST = (1 << 53) - 1  # of positions; the service takes no others
EDITIONS = 1 << 31
GLOB = 100  # characters
NUMBER = re.compile(r"[+-]?[0-9]{1,19}")

EPILOG = """\
LANE is a slug, an id or the beginning of one, or a path inside the lane.

exit codes: 0 done; 1 refused, nothing changed; 2 usage; 3 begun but not finished, or something needs a look;
4 the store, its directory or git cannot be used; 130 interrupted
"""


class Misused(Exception):
    """The command line cannot be read; says how it is used."""

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.message, self.usage = message, usage


class Parser(argparse.ArgumentParser):
    """A parser that raises Misused instead of leaving the program."""

    def error(self, message: str) -> NoReturn:
        """Raises Misused."""
        raise Misused(message, self.format_usage().strip())

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:  # noqa: ANN401 (as theirs)
        # Theirs takes every `--` away, and makes an empty list of `--base=--` (bpo-14364).
        if action.nargs is None and arg_strings == ["--"]:
            return self._get_value(action, "--")
        return super()._get_values(action, arg_strings)


def build_parser() -> Parser:
    """Returns the parser of the whole command line. Parsing raises Misused, or SystemExit after help."""
    parser = Parser(
        prog="laneyard",
        description="Owns the life of git worktrees: every removal is reversible, and nothing is lost.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_everywhere(parser)
    parser.set_defaults(repository=None, state_dir=None, json=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_making(commands)
    _add_ending(commands)
    _add_reading(commands)
    _add_upkeep(commands)
    _add_service(commands)
    for command in commands.choices.values():
        _add_everywhere(command)
    return parser


def _position(text: str) -> int:
    """Returns a position of the log, as its store can hold it."""
    return _whole(text, -FARTHEST, FARTHEST)


def _edition(text: str) -> int:
    """Returns the number of a removal."""
    return _whole(text, 1, EDITIONS)


def _whole(text: str, least: int, most: int) -> int:
    wrong = argparse.ArgumentTypeError(f"{text[:40]!r} is no whole number from {least} to {most}")
    if not NUMBER.fullmatch(text):
        raise wrong
    number = int(text)
    if not least <= number <= most:
        raise wrong
    return number


def _glob(text: str) -> str:
    """Returns what types of events are matched with."""
    if not 0 < len(text) <= GLOB or any("\ud800" <= each <= "\udfff" for each in text):
        raise argparse.ArgumentTypeError(f"a GLOB has 1 to {GLOB} characters")
    return text


def _add_everywhere(parser: Parser) -> None:
    """Adds what may be said before the command and after it; unsaid, it leaves no default to overrule."""
    parser.allow_abbrev = False  # `--f` is not `--force`
    unsaid = argparse.SUPPRESS
    parser.add_argument(
        "-C", dest="repository", metavar="REPO", default=unsaid, help="a path inside the repository"
    )
    parser.add_argument(
        "--state-dir", metavar="DIR", default=unsaid, help="where the log and the snapshots are"
    )
    parser.add_argument("--json", action="store_true", default=unsaid, help="print JSON, also of errors")


_Commands = argparse._SubParsersAction  # argparse gives its type no public name


def _add_making(commands: "_Commands[Parser]") -> None:
    create = commands.add_parser("create", help="make a lane; prints its path")
    create.add_argument("name", metavar="NAME")
    create.add_argument("--base", metavar="REF", help="branch, tag or commit to start from")
    create.add_argument("--parent", metavar="LANE", help="start from another lane's branch")
    create.add_argument("--branch", metavar="NAME", help="the new branch's name, by default the slug")
    create.add_argument("--owner", default="manual", metavar="OWNER", help="manual, or session:ID")
    snapshot = commands.add_parser("snapshot", help="keep a verified copy without removing the lane")
    snapshot.add_argument("lane", metavar="LANE")


def _add_ending(commands: "_Commands[Parser]") -> None:
    remove = commands.add_parser("remove", help="put a lane into quarantine; reversible")
    remove.add_argument("lane", metavar="LANE")
    remove.add_argument("--force", action="store_true", help="also what a snapshot cannot hold, by consent")
    remove.add_argument("--reap", action="store_true", help="and delete it at once, keeping a snapshot")
    remove.add_argument("--delete-branch", action="store_true", help="and delete its branch")
    restore = commands.add_parser("restore", help="bring a lane back")
    restore.add_argument("lane", metavar="LANE")
    restore.add_argument("--edition", type=_edition, metavar="N", help="which removal, by default the last")
    restore.add_argument("--snapshot", metavar="ID", help="from this snapshot")
    reap = commands.add_parser("reap", help="delete a quarantined lane, keeping a snapshot")
    reap.add_argument("lane", metavar="LANE")
    sweep = commands.add_parser("sweep", help="show, or with --apply do, what is due to be reaped")
    sweep.add_argument("--apply", action="store_true", help="really do it")
    review = commands.add_parser("review", help="look at a lane that needs a person, and decide")
    review.add_argument("lane", metavar="LANE")
    exits = review.add_mutually_exclusive_group()
    exits.add_argument("--put-back", action="store_true", help="restore it from the quarantine")
    exits.add_argument("--resnapshot", action="store_true", help="capture it as it is now, and reap it")
    exits.add_argument("--discard", action="store_true", help="delete it, with a recorded consent")


def _add_reading(commands: "_Commands[Parser]") -> None:
    listing = commands.add_parser("list", help="the lanes")
    listing.add_argument("--all", action="store_true", help="also those that are gone")
    listing.add_argument("--at", type=_position, metavar="POSITION", help="as of a position of the log")
    show = commands.add_parser("show", help="everything about a lane")
    show.add_argument("lane", metavar="LANE")
    log = commands.add_parser("log", help="the audit log")
    log.add_argument("lane", metavar="LANE", nargs="?")
    log.add_argument("--after", type=_position, default=0, metavar="POSITION", help="only later events")
    log.add_argument("--type", type=_glob, metavar="GLOB", help="only such events, for instance 'lane.*'")
    log.add_argument("--follow", action="store_true", help="go on with what comes")
    diff = commands.add_parser("diff", help="what changed between two positions of the log")
    diff.add_argument("before", type=_position, metavar="POSITION")
    diff.add_argument("after", type=_position, metavar="POSITION")


def _add_upkeep(commands: "_Commands[Parser]") -> None:
    commands.add_parser("verify", help="is the log what was written, and does the disk agree?")
    commands.add_parser("rebuild", help="make every table anew from the log")
    commands.add_parser("doctor", help="is everything in order to work?")
    commands.add_parser("demo", help="the whole life of a lane, in a scratch repository")


def _add_service(commands: "_Commands[Parser]") -> None:
    serve = commands.add_parser("serve", help="answer tools over a socket, until stopped")
    serve.add_argument("--tcp", metavar="HOST:PORT", help="and over TCP, with a token")
    completion = commands.add_parser("completion", help="print what completes commands in a shell")
    completion.add_argument("shell", metavar="SHELL", help="bash, zsh or tcsh")
