"""What the command line takes."""

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from adapters.cli.included import add_included, attached

FARTHEST = (1 << 53) - 1  # of positions; the service takes no others
EDITIONS = 1 << 31
GLOB = 100  # characters
NUMBER = re.compile(r"[+-]?[0-9]{1,19}")

EPILOG = """\
LANE is a slug, an id or the beginning of one, or a path inside the lane.

exit codes: 0 done; 1 refused, nothing changed; 2 usage; 3 begun but not finished, or something needs a look;
4 the store, its directory or git cannot be used; 130 interrupted
"""
SNAPSHOTS = """\
in place of LANE, words that look at what was captured, each with a --help of its own:
  list [LANE] [--all]                  the snapshots that are kept, with --all of every repository
  show SNAPSHOT                        who took it and why, and what it holds
  diff SNAPSHOT [PATH ...]             what it changes, as git diff shows it
  cat SNAPSHOT PATH                    one file of it, as it is
  extract SNAPSHOT PATH ... --to DIR   write files and directories of it elsewhere

SNAPSHOT is an id or the beginning of one, LANE for the last snapshot of a lane, or LANE@N for the one that
edition N comes back from. PATH is relative to the lane.

A lane that is called like one of these words is captured with 'laneyard snapshot -- list', or by its id.
"""


class Misused(Exception):
    """The command line cannot be read; says how it is used."""

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.message, self.usage = message, usage


class Parser(argparse.ArgumentParser):
    """A parser that raises Misused instead of leaving the program.

    Where its first argument is one of `words`, that word's parser takes the rest; after `--` none is a word.
    """

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as theirs)
        super().__init__(*args, **options)
        self.words: dict[str, Parser] = {}

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Returns what was understood, and the rest. Raises Misused."""
        given = attached(args or ())
        at = self._first(given) if self.words else None
        if at is None or given[at] not in self.words:
            return super().parse_known_args(None if args is None else given, namespace)
        return self.words[given[at]].parse_known_args([*given[:at], *given[at + 1 :]], namespace)

    def _first(self, given: list[str]) -> int | None:
        """Returns where the first argument is that is no option and no option's value, or None after `--`."""
        at = 0
        while at < len(given) and given[at] != "--":
            if not given[at].startswith("-"):
                return at
            option = self._option_string_actions.get(given[at])
            at += 1 if option is None or option.nargs == 0 else 2
        return None

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


def _path(text: str) -> str:
    """Returns a path; an unset variable of a shell is none."""
    if not text:
        raise argparse.ArgumentTypeError("a path is not empty; . is all of it")
    return text


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
    snapshot = commands.add_parser(
        "snapshot",
        help="keep a verified copy without removing the lane, or look at one",
        description="Keeps a verified copy of a lane's work without moving anything.",
        epilog=SNAPSHOTS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    snapshot.add_argument("lane", metavar="LANE")
    add_included(snapshot)
    snapshot.set_defaults(word=None)
    _add_looking_at_snapshots(snapshot)


def _add_looking_at_snapshots(snapshot: Parser) -> None:
    for word in ("list", "show", "diff", "cat", "extract"):
        parser = snapshot.words[word] = Parser(prog=f"{snapshot.prog} {word}")
        parser.set_defaults(word=word)
        _add_everywhere(parser)
        if word != "list":
            parser.add_argument("snapshot", metavar="SNAPSHOT", help="an id, or LANE, or LANE@N")
    listing, show, diff, cat, extract = snapshot.words.values()
    listing.add_argument("lane", metavar="LANE", nargs="?", help="only of this lane")
    listing.add_argument("--all", action="store_true", help="of every repository")
    show.add_argument("--paths", action="store_true", help="name all paths, not the first of each class")
    show.add_argument("--verify", action="store_true", help="read all of it back now")
    below, inside = "only this, and what is below it", "relative to the lane"
    diff.add_argument("paths", metavar="PATH", nargs="*", type=_path, help=below)
    cat.add_argument("path", metavar="PATH", type=_path, help=inside)
    extract.add_argument("paths", metavar="PATH", nargs="+", type=_path, help=f"{inside}; . is all of it")
    kept = "where to; nothing there is overwritten"
    extract.add_argument("--to", metavar="DIR", type=_path, required=True, help=kept)
    for each in (diff, cat):
        each.add_argument("--staged", action="store_true", help="what was staged, not the worktree")


def _add_ending(commands: "_Commands[Parser]") -> None:
    remove = commands.add_parser("remove", help="put a lane into quarantine; reversible")
    remove.add_argument("lane", metavar="LANE")
    remove.add_argument("--force", action="store_true", help="also what a snapshot cannot hold, by consent")
    remove.add_argument("--reap", action="store_true", help="and delete it at once, keeping a snapshot")
    remove.add_argument("--delete-branch", action="store_true", help="and delete its branch")
    add_included(remove)
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
    replay = commands.add_parser("replay", help="a lane's log explained, event by event")
    replay.add_argument("lane", metavar="LANE")
    replay.add_argument("--to", type=_position, metavar="POSITION", help="only up to this position")
    shown = replay.add_mutually_exclusive_group()
    shown.add_argument("--step", action="store_true", help="wait for Enter after each event")
    shown.add_argument("--dry-drive", action="store_true", help="only what a recovery would do next")
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
