"""Directories that cannot be removed, as something is in them that no plan knows of."""

from __future__ import annotations

import errno
import os

from rdc.errors import FileError, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.root.root import Root


def is_not_empty(error: FileError) -> bool:
    """Return whether a directory was not removed as it is not empty."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in (errno.ENOTEMPTY, errno.EEXIST)


def names_in(root: Root, path: bytes) -> list[bytes]:
    """Return the names in a directory, sorted; none if it cannot be listed."""

    def names(name: bytes, parent: int) -> list[bytes]:
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            return sorted(map(os.fsencode, os.listdir(fd)))
        finally:
            os.close(fd)

    try:
        return root.perform(path, "list it", names, reading=True)
    except FileError:
        return []


def not_empty(root: Root, path: bytes, names: Sequence[bytes]) -> str:
    """Return why a directory stays that has entries with these names."""
    rest = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return (
        f"{printable(os.path.join(root.label, path))}: cannot remove the directory: expected it to be empty,"
        f" found {printable(names[0])}{rest}; if the pair's rules exclude that, delete it there; otherwise,"
        " run again"
    )
