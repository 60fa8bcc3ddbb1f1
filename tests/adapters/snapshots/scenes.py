"""Random repositories and random lanes: what is committed, and what is done to a lane afterwards.

Everything is a value that Hypothesis draws and shrinks. A change that does not apply to the tree as it is by
then (a file below a file, a commit of nothing) is left out, as it would be by a user's own commands.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sagas.worlds import World

Act = Callable[["Lane", "Change"], object]


class Node(msgspec.Struct, frozen=True):
    """One entry to be made; a link's data is its target."""

    path: bytes
    kind: str
    data: bytes
    mode: int


class Change(msgspec.Struct, frozen=True):
    """Something that is done to the entry that `at` picks, or to make `node`."""

    act: str
    at: int
    node: Node


class Scene(msgspec.Struct, frozen=True):
    """A repository, and what happens in a lane of it."""

    committed: tuple[Node, ...]
    submodule: bool
    attributes: bytes
    autocrlf: str
    changes: tuple[Change, ...]


class Lane:
    """A lane that is being worked in."""

    def __init__(self, world: World, place: bytes) -> None:
        self.world = world
        self.place = place

    def change(self, change: Change) -> None:
        """Does it, if it applies."""
        with suppress(OSError):  # the tree is not such that it could be done: then it is not done
            ACTS[change.act](self, change)

    def git(self, *arguments: str | bytes, paths: tuple[bytes, ...] = ()) -> None:
        """Runs git; that it declines is one of its answers."""
        named = (b"--", *paths) if paths else ()
        self.world.git(self.place, "--literal-pathspecs", *arguments, *named, check=False)

    def picked(self, change: Change) -> bytes:
        """Returns an entry of the tree, relative. Raises FileNotFoundError in an empty tree."""
        there = sorted(entries(self.place))
        if not there:
            raise FileNotFoundError(self.place)
        return there[change.at % len(there)]

    def target(self, change: Change) -> bytes:
        """Returns where the picked entry is."""
        return os.path.join(self.place, self.picked(change))


def entries(place: bytes) -> Iterator[bytes]:
    """Yields the relative path of every entry but the pointer."""
    for directory, directories, files in os.walk(place):
        for name in (*directories, *files):
            path = os.path.relpath(os.path.join(directory, name), place)
            if path != b".git":
                yield path


def make(place: bytes, node: Node) -> None:
    """Makes an entry with the directories that lead to it; never in place of another. Raises OSError."""
    path = inside(place, node.path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if node.kind == "link":
        os.symlink(node.data or b".", path)
    elif node.kind == "directory":
        os.mkdir(path)
        os.chmod(path, 0o500 | node.mode & 0o777)
    else:
        with open(path, "xb") as file:
            file.write(node.data)
        os.chmod(path, readable(node.mode))


def inside(place: bytes, path: bytes) -> bytes:
    """Returns a place in the tree. Raises NotADirectoryError where a link leads away from there."""
    whole = os.path.join(place, path)
    if os.path.realpath(os.path.dirname(whole)) != os.path.dirname(whole):
        raise NotADirectoryError(whole)
    return whole


def readable(mode: int) -> int:
    """Returns the mode, such that whoever runs the tests can still read the file."""
    return mode if os.geteuid() == 0 else mode | stat.S_IRUSR


def remove(path: bytes) -> None:
    """Removes whatever is there."""
    if stat.S_ISDIR(os.lstat(path).st_mode):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def edit(lane: Lane, change: Change) -> None:
    """Writes to a file, with no regard for its permissions."""
    path = lane.target(change)
    mode = os.lstat(path).st_mode
    if stat.S_ISREG(mode):
        os.chmod(path, 0o600)
        with open(path, "ab") as file:
            file.write(change.node.data or b"more")
        os.chmod(path, stat.S_IMODE(mode))


def set_mode(lane: Lane, change: Change) -> None:
    """Changes permissions: any of a file, those that let its owner in of a directory."""
    path, mode = lane.target(change), change.node.mode
    kind = os.lstat(path).st_mode
    if stat.S_ISDIR(kind):
        os.chmod(path, 0o500 | mode & 0o777)
    elif stat.S_ISREG(kind):
        os.chmod(path, readable(mode))


def swap(lane: Lane, change: Change) -> None:
    """Puts something of another kind in an entry's place, perhaps a directory with a file in it."""
    path = lane.picked(change)
    remove(os.path.join(lane.place, path))
    below = path + b"/below" if change.at % 3 == 0 else path
    make(lane.place, msgspec.structs.replace(change.node, path=below))


def empty(lane: Lane, change: Change) -> None:
    """Takes every file out of a directory, and leaves the directories."""
    top = lane.target(change)
    for directory, _, files in os.walk(top) if not os.path.islink(top) else ():
        for name in files:
            os.unlink(os.path.join(directory, name))


def rename(lane: Lane, change: Change) -> None:
    """Moves an entry to another place."""
    to = inside(lane.place, change.node.path)
    if not os.path.lexists(to):
        os.renames(lane.target(change), to)


def stage_then(after: Act) -> Act:
    """Returns the act of staging an entry and then doing something else to it."""

    def act(lane: Lane, change: Change) -> None:
        lane.git("add", paths=(lane.picked(change),))
        after(lane, change)

    return act


def ignored(lane: Lane, change: Change) -> bytes:
    """Makes a file that the repository ignores."""
    name = b"build/%d" % change.at if change.at % 2 else b"%d.log" % change.at
    make(lane.place, msgspec.structs.replace(change.node, path=name, kind="file"))
    return name


def on_path(*arguments: str) -> Act:
    """Returns the act of running a git command on an entry."""
    return lambda lane, change: lane.git(*arguments, paths=(lane.picked(change),))


def command(*arguments: str) -> Act:
    """Returns the act of running a git command."""
    return lambda lane, change: lane.git(*arguments)


ACTS: dict[str, Act] = {
    "new": lambda lane, change: make(lane.place, change.node),
    "edit": edit,
    "delete": lambda lane, change: remove(lane.target(change)),
    "set-mode": set_mode,
    "swap": swap,
    "empty": empty,
    "rename": rename,
    "add": on_path("add"),
    "add-all": command("add", "--all"),
    "add-then-edit": stage_then(edit),
    "add-then-delete": stage_then(lambda lane, change: remove(lane.target(change))),
    "intend": on_path("add", "--intent-to-add"),
    "stage-mode": on_path("update-index", "--chmod=+x"),
    "rm": on_path("rm", "-rqf"),
    "untrack": on_path("rm", "-rqf", "--cached"),
    "mv": lambda lane, change: lane.git("mv", paths=(lane.picked(change), change.node.path)),
    "ignored": ignored,
    "force-add": lambda lane, change: lane.git("add", "--force", paths=(ignored(lane, change),)),
    "commit": command("commit", "-q", "--allow-empty", "-m", "another"),
    "amend": command("commit", "-q", "--amend", "--allow-empty", "-m", "amended"),
    "reset": command("reset", "-q", "--soft", "HEAD~1"),
    "detach": command("checkout", "-q", "--detach"),
}
# Names that git or a file system could take for something else, and one as long as can be.
NAMES = (b"a", b"b", b"c", b"A", b"d e", b"n\nl", b"\xff\xfe", b"-x", b".hid", b'"q"\\', b"%41", b"x" * 255)
TARGETS = (b"a", b"../b", b"nowhere", b".", b"/nowhere/at all", b"..", b"c/", b"\xff\n")
CONTENTS = (
    b"",
    b"x\n",
    b"x",
    b"\0binary\xff",
    b"one\r\ntwo\r\n",
    b"mixed\r\nlines\n",
    b"$Id$\n",
    b"x" * 70_000,
)
MODES = (0o644, 0o755, 0o600, 0o444, 0o664, 0o775, 0o700, 0o555, 0o000, 0o4755, 0o7777)
ATTRIBUTES = (
    b"",
    b"* text=auto\n",
    b"* text\n",
    b"* text eol=crlf\n",
    b"* ident\n",
    b"* filter=shout\n",
    b"* -text\n",
    b"a text eol=lf\nb ident\n",
)


def nodes() -> st.SearchStrategy[Node]:
    """Returns any entry."""
    name = st.sampled_from(NAMES)
    path = st.lists(name, min_size=1, max_size=5).map(b"/".join)
    mode = st.one_of(st.sampled_from(MODES), st.integers(0, 0o7777))
    return st.one_of(
        st.builds(Node, path, st.just("file"), st.sampled_from(CONTENTS), mode),
        st.builds(Node, path, st.just("link"), st.sampled_from(TARGETS), mode),
        st.builds(Node, path, st.just("directory"), st.just(b""), mode),
    )


def scenes(most: int = 16) -> st.SearchStrategy[Scene]:
    """Returns any repository with a lane to which at most so many things happen."""
    change = st.builds(Change, st.sampled_from(sorted(ACTS)), st.integers(0, 40), nodes())
    return st.builds(
        Scene,
        st.lists(nodes(), max_size=8).map(tuple),
        st.booleans(),
        st.sampled_from(ATTRIBUTES),
        st.sampled_from(("false", "input", "true")),
        st.lists(change, max_size=most).map(tuple),
    )


def commit(world: World, scene: Scene) -> None:
    """Makes the repository's second commit, of the scene's files."""
    settings = {
        "core.autocrlf": scene.autocrlf,
        "core.safecrlf": "false",
        "filter.shout.clean": "tr a-z A-Z",
        "filter.shout.smudge": "tr A-Z a-z",
    }
    for name, value in settings.items():
        world.git(world.root, "config", name, value)
    for node in scene.committed:
        with suppress(OSError):
            make(world.root, node)
    if scene.attributes:
        make(world.root, Node(b".gitattributes", "file", scene.attributes, 0o644))
    if scene.submodule:
        head = world.git(world.root, "rev-parse", "HEAD").decode().strip()
        world.git(world.root, "update-index", "--add", "--cacheinfo", f"160000,{head},module")
        os.mkdir(os.path.join(world.root, b"module"))
    world.git(world.root, "add", "--all")
    world.git(world.root, "commit", "-q", "--allow-empty", "-m", "second")
