"""Completion in shells: a script made from the parser, which asks the program for the names of lanes."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING

import shtab

from adapters.cli import DONE, UNUSABLE
from adapters.cli.parser import SNAPSHOTS, Misused, build_parser

if TYPE_CHECKING:
    from argparse import Action, Namespace
    from collections.abc import Iterable, Iterator

SHELLS = ("bash", "zsh", "tcsh")
ABOUT = re.compile(r"^  (\w+) .*?  +(\S.*)$", re.MULTILINE)  # a word and what it does, as the help has them
LANES, EVERY_LANE = "lanes", "every-lane"  # what the scripts ask for; not for people
OF_THE_PAST = ("restore", "show", "log", "replay", "snapshot list")  # these take lanes that are gone

# Both scripts pass on which repository and which state directory the line is about. They read the answer as
# data: `compgen -W` would expand it.
BASH = """\
_laneyard_meant() { # a word as it was typed: without its quotes, which xargs takes away and expands nothing
  local word=${1/#\\~\\//$HOME/}
  xargs printf %s <<<"$word" 2>/dev/null || printf %s "$word"
}
_laneyard_ask() {
  local -a about=()
  local i next
  for (( i = 1; i < COMP_CWORD; i++ )); do
    case ${COMP_WORDS[i]} in -C | --state-dir)
      next=$(( i + 1 ))
      [[ ${COMP_WORDS[next]} = "=" ]] && next=$(( i + 2 ))
      (( next < COMP_CWORD )) && about+=("${COMP_WORDS[i]}" "$(_laneyard_meant "${COMP_WORDS[next]}")")
    esac
  done
  local lane
  while IFS= read -r lane; do
    [[ $lane = "$2"* ]] && printf '%s\\n' "$lane"
  done < <("${COMP_WORDS[0]/#\\~\\//$HOME/}" "${about[@]}" completion "$1" 2>/dev/null </dev/null)
}
_laneyard_lanes() { _laneyard_ask lanes "$1"; }
_laneyard_every_lane() { _laneyard_ask every-lane "$1"; }
_shtab_laneyard_snapshot_pos_0_COMPGEN=_laneyard_lanes # beside the words
"""
# In zsh the words of the line are cut off before a command's own arguments are completed: they are kept here.
ZSH = """\
functions[_laneyard_parsed]=$functions[_shtab_laneyard]
_shtab_laneyard() {
  local -a _laneyard_line=("${(@)words[1,CURRENT-1]}")
  _laneyard_parsed "$@"
}
_laneyard_ask() {
  local -a about found line=("${(@Q)_laneyard_line}")
  local i
  line=("${(@)line/#\\~\\//$HOME/}")
  for (( i = 2; i <= $#line; i++ )); do
    case ${line[i]} in
      -C | --state-dir) (( i < $#line )) && about+=("${line[i]}" "${line[i + 1]}") ;;
      --state-dir=*) about+=("${line[i]}") ;;
    esac
  done
  found=(${(f)"$("${line[1]}" "${about[@]}" completion "$1" 2>/dev/null </dev/null)"})
  compadd -a found
}
_laneyard_lanes() { _laneyard_ask lanes; }
_laneyard_every_lane() { _laneyard_ask every-lane; }
functions[_laneyard_words]=$functions[_shtab_laneyard_snapshot_commands]
_shtab_laneyard_snapshot_commands() { _laneyard_words; _laneyard_lanes; } # beside the words
"""
PREAMBLES = {"bash": BASH, "zsh": ZSH}  # tcsh has no functions: it gets no names of lanes


def run_completion(arguments: Namespace) -> int:
    """Prints the script for a shell. Raises Misused for a shell that is not known."""
    if arguments.shell in (LANES, EVERY_LANE):
        return _print_lanes(arguments, gone=arguments.shell == EVERY_LANE)
    if arguments.shell not in SHELLS:
        raise Misused(
            f"{arguments.shell!r} is none of {', '.join(SHELLS)}", "usage: laneyard completion SHELL"
        )
    sys.stdout.write(script(arguments.shell) + "\n")
    return DONE


def script(shell: str) -> str:
    """Returns what a shell has to read."""
    parser = build_parser()
    _tell_words(parser)
    for command, each in _actions(parser):
        _complete(command, each)
    made: str = shtab.complete(parser, shell, preamble=PREAMBLES.get(shell, ""))
    return made


def _tell_words(parser: argparse.ArgumentParser) -> None:
    """Has the words that may stand in a lane's place told as commands, as the generator reads them."""
    (commands,) = (each.choices for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    snapshot = commands["snapshot"]
    for each in snapshot._get_positional_actions():
        snapshot._actions.remove(each)
    words, about = snapshot.add_subparsers(metavar="WORD"), dict(ABOUT.findall(SNAPSHOTS))
    for word, each in snapshot.words.items():
        words.add_parser(word, parents=[each], add_help=False, help=about[word])


def _actions(parser: argparse.ArgumentParser, command: str = "") -> Iterator[tuple[str, Action]]:
    """Yields every argument with the command to which it belongs."""
    for each in parser._actions:
        if isinstance(each, argparse._SubParsersAction):
            for name, below in each.choices.items():
                yield from _actions(below, f"{command} {name}".strip())
        else:
            yield command, each


def _complete(command: str, action: Action) -> None:
    """Says what completes an argument, by what the help calls it; the generator reads it from there."""
    if action.metavar == "LANE":
        function = "_laneyard_every_lane" if command in OF_THE_PAST else "_laneyard_lanes"
        action.complete = {"bash": function, "zsh": function}  # type: ignore[attr-defined]
    elif action.metavar == "SNAPSHOT":
        action.complete = {"bash": "_laneyard_every_lane", "zsh": "_laneyard_every_lane"}  # type: ignore[attr-defined]
    elif action.metavar in ("REPO", "DIR"):
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    elif action.metavar == "SHELL":
        action.choices = SHELLS


def _print_lanes(arguments: Namespace, *, gone: bool) -> int:
    """Prints a slug a line. In the middle of somebody's typing nothing is told but by the exit code."""
    try:
        found = _slugs(arguments, gone=gone)
    except Exception:
        return UNUSABLE
    sys.stdout.writelines(f"{slug}\n" for slug in sorted(found))
    return DONE


def _slugs(arguments: Namespace, *, gone: bool) -> set[str]:
    served = _served(arguments, gone=gone)
    return set(_recorded(arguments, gone=gone) if served is None else served)


def _served(arguments: Namespace, *, gone: bool) -> Iterable[str] | None:
    """Returns what the service says, or None where none runs."""
    import json

    from adapters.cli.thin import Wanted, ask

    wanted = Wanted()
    wanted.repository, wanted.state_dir = arguments.repository, arguments.state_dir
    wanted.json, wanted.all = True, gone
    answer = ask(wanted, observe="none", patience=0)
    if answer is None:
        return None
    return (str(lane["slug"]) for lane in json.loads(answer.body))


def _recorded(arguments: Namespace, *, gone: bool) -> Iterable[str]:
    """Returns what the log says."""
    from adapters import config
    from adapters.cli.scope import scope
    from adapters.lookup import GONE
    from adapters.store.reader import Reader

    key = scope(arguments)
    with Reader(config.load(arguments.state_dir).store) as reader:
        rows = reader.lanes()
    return [
        str(row["slug"])
        for row in rows
        if (key is None or row["repository"] == key) and (gone or row["state"] not in GONE)
    ]
