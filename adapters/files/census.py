"""Counting what is in a tree, as cheaply as directories can be read: no entry is opened or looked at."""

import os

from adapters.files.descriptors import DIRECTORY, open_directory, owned


def count_leaves(root: bytes, most: int) -> int:
    """Returns how many entries below the root are no directories; more than `most` are not all counted.

    Links are counted and never followed. Raises MountInside, or OSError of a directory that cannot be read.
    """
    found, pending = 0, [b""]
    with owned(os.open(root, DIRECTORY)) as top:
        while pending and found <= most:
            path = pending.pop()
            whole = os.path.join(root, path)
            with owned(open_directory(top, path or b".", whole)) as here, os.scandir(here) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(os.path.join(path, os.fsencode(entry.name)))
                    else:
                        found += 1
    return found
