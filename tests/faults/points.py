"""Every moment at which we touch the world, as a named point: what a fault can be put in.

Nothing of it is in the product: `install` wraps what the product calls, in a process that is made to be
tested. A point has a moment (`before` or `after`) and lies around

* an effect that is performed, or an append to the log;
* a system call of ours that changes the disk: rename, fsync, unlink, link, write, and the like;
* a process that git runs in: before it is started, once it runs, and when it has ended.
"""

from __future__ import annotations

import builtins
import functools
import os
import stat
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from adapters import engine as engines
from adapters.files import kernel
from adapters.git import child as children
from adapters.git import door
from adapters.performer.performer import GitPerformer

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, ModuleType

    Hear = Callable[["Point"], bytes | None]

Moment = Literal["before", "during", "after"]
Kind = Literal["effect", "append", "call", "git"]

# What changes the disk, or makes a change last. Of opens, those that may create; of writes, those to files.
CALLS = (
    *(
        "chmod",
        "fchmod",
        "fchown",
        "fsync",
        "ftruncate",
        "link",
        "mkdir",
        "makedirs",
        "mknod",
        "open",
        "pwrite",
    ),
    *("remove", "removexattr", "rename", "replace", "rmdir", "setxattr", "symlink", "truncate", "unlink"),
    *("utime", "write"),
)
KERNEL = ("rename_without_replacing", "sync_file_system", "clone")
ADAPTERS = os.path.dirname(os.path.dirname(engines.__file__)) + "/adapters/"
STEP: ContextVar[str] = ContextVar("step", default="")


class Point(msgspec.Struct, frozen=True):
    """One moment: `step` is the effect within which it comes, `what` the call or git's subcommand."""

    moment: Moment
    kind: Kind
    step: str
    what: str
    site: str = ""

    @property
    def name(self) -> str:
        """Returns the point as one line: the same place in the code has the same name in every run."""
        where = f" in {self.site}" if self.site else ""
        return f"{self.step or 'between'}: {self.moment} {self.kind} {self.what}{where}"


def install(hear: Hear) -> None:
    """Lets `hear` know of every point in this process, from now on and for ever.

    What it raises is raised where the call would have been made (`before`) or has been (`after`); for git,
    bytes that it returns before the start are the program that is run in its place.
    """
    for name in CALLS:
        setattr(os, name, _wrapped(getattr(os, name), name, hear))
    _everywhere(builtins.open, _opening(hear))
    for name in KERNEL:
        call = getattr(kernel, name)
        _everywhere(call, _wrapped(call, name, hear))
    _around_effects(hear)
    _around_appends(hear)
    _around_git(hear)


def _everywhere(call: object, instead: object) -> None:
    """Puts another function in a function's place in every module of ours; an open is each module's own."""
    for module in [*sys.modules.values()]:
        if not (getattr(module, "__file__", None) or "").startswith(ADAPTERS):
            continue
        names = [name for name, value in vars(module).items() if value is call]
        for name in names or (["open"] if call is builtins.open else []):
            setattr(module, name, instead)


def _wrapped(call: Callable[..., Any], name: str, hear: Hear) -> Callable[..., Any]:
    @functools.wraps(call)
    def wrapper(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        site = _site()
        if not site or not _changes(name, arguments, options):
            return call(*arguments, **options)
        hear(Point("before", "call", STEP.get(), name, site))
        result = call(*arguments, **options)
        try:
            hear(Point("after", "call", STEP.get(), name, site))
        except BaseException:
            if name == "open":
                os.close(result)
            raise
        return result

    return wrapper


def _opening(hear: Hear) -> Callable[..., Any]:
    def wrapper(file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:  # noqa: ANN401
        writes = bool({*mode} & {*"wax+"})
        if writes:
            hear(Point("before", "call", STEP.get(), "open", _site()))
        opened = open(file, mode, *rest, **options)  # noqa: SIM115 (who asked closes it)
        if writes:
            hear(Point("after", "call", STEP.get(), "open", _site()))
        return opened

    return wrapper


def _changes(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
    if name == "open":
        flags = arguments[1] if len(arguments) > 1 else options["flags"]
        return bool(flags & (os.O_CREAT | os.O_TRUNC)) or flags & os.O_TMPFILE == os.O_TMPFILE
    if name == "write":
        return stat.S_ISREG(os.fstat(arguments[0]).st_mode)
    return True


def _site() -> str:
    """Returns which function of ours makes the call, and on behalf of which outside of `files/`."""
    found: list[str] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(ADAPTERS):
            module = path.removeprefix(ADAPTERS).removesuffix(".py")
            if not found or not module.startswith("files/"):
                found.append(f"{module}.{frame.f_code.co_name}")
            if not module.startswith("files/"):
                break
        frame = frame.f_back
    return " for ".join(found[:1] + found[-1:]) if len(found) > 1 else "".join(found)


def _around_effects(hear: Hear) -> None:
    perform = GitPerformer.perform

    async def performing(self: GitPerformer, effect: Any) -> Any:  # noqa: ANN401
        step = type(effect).__name__
        token = STEP.set(step)
        try:
            hear(Point("before", "effect", step, step))
            outcome = await perform(self, effect)
            hear(Point("after", "effect", step, step))
            return outcome
        finally:
            STEP.reset(token)

    GitPerformer.perform = performing  # type: ignore[method-assign]


def _around_appends(hear: Hear) -> None:
    append = engines.Engine._append

    async def appending(self: engines.Engine, entry: Any, step: str) -> Any:  # noqa: ANN401
        hear(Point("before", "append", "", step))
        committed = await append(self, entry, step)
        hear(Point("after", "append", "", step))
        return committed

    engines.Engine._append = appending  # type: ignore[method-assign]


def _around_git(hear: Hear) -> None:
    start, leave = door.Git._start, children.Child.__aexit__
    command: dict[int, str] = {}

    def starting(self: door.Git, arguments: Any, *rest: Any, **options: Any) -> Any:  # noqa: ANN401
        what = subcommand(arguments)
        instead = hear(Point("before", "git", STEP.get(), what))
        usual = self._program
        self._program = instead or usual
        try:
            child = start(self, arguments, *rest, **options)
        finally:
            self._program = usual
        command[id(child)] = what
        try:
            hear(Point("during", "git", STEP.get(), what))
        except BaseException:
            door.abandon(child._process)  # type: ignore[arg-type]
            raise
        return child

    async def leaving(self: children.Child, *error: Any) -> None:  # noqa: ANN401
        await leave(self, *error)
        hear(Point("after", "git", STEP.get(), command.pop(id(self), "?")))

    door.Git._start = starting  # type: ignore[method-assign]
    children.Child.__aexit__ = leaving  # type: ignore[method-assign, assignment]


def subcommand(arguments: tuple[bytes, ...]) -> str:
    """Returns git's subcommand, with the second word of those that have one."""
    words = [os.fsdecode(each) for each in arguments]
    while len(words) > 2 and words[0] == "-c":
        words = words[2:]
    return " ".join(words[:2] if words[0] in ("worktree", "stash", "reflog") else words[:1])


def loaded() -> list[ModuleType]:
    """Imports everything of the program, so that no module is left out by `install`."""
    import importlib
    import pkgutil

    import adapters

    found = pkgutil.walk_packages(adapters.__path__, "adapters.")
    return [importlib.import_module(each.name) for each in found]
