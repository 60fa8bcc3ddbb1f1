"""An operation is gone on with to its end, in the restored lane and in one that nobody has touched."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from tests.roundtrip.looking import Entry, Look, look
from tests.roundtrip.moves_operations import CONTINUED

if TYPE_CHECKING:
    from tests.roundtrip.scene import Scene

MOST = 8  # steps; a rebase of four commits needs no more


def go_on(scene: Scene) -> Look:
    """Resolves and goes on until git is done; returns all that it said, and a look at the end."""
    said: dict[bytes, object] = {}
    command = CONTINUED[scene.goes_on]
    for step in range(MOST):
        _resolve(scene, b"resolved in step %d\n" % step)
        ran = scene.run(scene.place, *command)
        said[b"step %d" % step] = (ran.returncode, ran.stdout, ran.stderr)
        if scene.goes_on == "bisect" and b"is the first" in ran.stdout:
            break
        if scene.goes_on != "bisect" and ran.returncode == 0:
            break
    return {"going on": said, **_timeless(look(scene))}


def _resolve(scene: Scene, text: bytes) -> None:
    out = scene.run(scene.place, "diff", "--name-only", "--diff-filter=U", "-z").stdout
    top = scene.run(scene.place, "rev-parse", "--show-cdup").stdout.strip()
    for path in filter(None, out.split(b"\0")):
        whole = os.path.join(scene.place, top, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "wb") as file:
            file.write(text)
        scene.run(scene.place, "add", "--", path)


STAMP = re.compile(rb"> \d+ [+-]\d{4}(?=[\t\n])")


def _timeless(seen: Look) -> Look:
    """Returns a look without what tells when a lane was made: times, and raw index files."""
    for aspect, named in seen.items():
        for name, value in named.items():
            if isinstance(value, Entry):
                data = b"" if name.endswith(b"/index") else STAMP.sub(b">", value.data)
                seen[aspect][name] = value._replace(mtime=0, data=data)
            elif isinstance(value, bytes):
                seen[aspect][name] = STAMP.sub(b">", value)
    return seen
