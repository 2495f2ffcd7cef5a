"""Claims: the files that a run will write, which it must not read (FILES.md, "Result files")."""

from __future__ import annotations

import os

from rdc.errors import UsageError, printable
from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rdc.model.entries import PackedInodes

__all__ = ["Claims", "ExistingFile", "claim_log"]


@dataclass(frozen=True, slots=True)
class ExistingFile:
    """A regular file that the run will write."""

    device: int
    inode: int
    path: bytes
    """The path of the result."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What a run must not read, since it will replace it or writes it itself."""

    existing: tuple[ExistingFile, ...] = ()
    directories: frozenset[tuple[int, int]] = frozenset()
    """Device and inode number of directories that the run fills. Walks leave them out."""

    def check(self, device: int, inode: int, shown: bytes) -> None:
        """Raise UsageError if this file, which the run would read, is one that a result would replace."""
        for one in self.existing:
            if (one.device, one.inode) == (device, inode):
                raise _is_read(one.path, shown)

    def check_rows(self, inodes: PackedInodes, shown: Callable[[int], bytes]) -> None:
        """Check all rows of a directory. `shown` gives the path of a row."""
        for one in self.existing:
            number = one.inode.to_bytes(8, "little")
            at = inodes.inodes.find(number)
            while at >= 0:
                row = at // 8
                if not at % 8 and inodes.identity(row) == (one.device, one.inode):
                    raise _is_read(one.path, shown(row))
                at = inodes.inodes.find(number, at + 1)

    def check_below(self, paths: Iterable[bytes]) -> None:
        """Check the trees at `paths` where other processes walk them: no result may replace a file there."""
        tops = [os.path.realpath(path) for path in paths]
        for one in self.existing:
            real = os.path.realpath(one.path)
            for top in tops:
                if real == top or real.startswith(top.rstrip(b"/") + b"/"):
                    raise _is_read(one.path, real)

    def check_named(self, paths: Iterable[bytes]) -> None:
        """Check files that the run reads because the user named them. Others report what is missing."""
        for path in paths:
            try:
                found = os.stat(path)
            except (OSError, ValueError):
                continue
            self.check(found.st_dev, found.st_ino, path)


def claim_log(path: bytes) -> Claims:
    """Return what a run that appends to a log must not read as if it were something else."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return Claims()
    return Claims((ExistingFile(found.st_dev, found.st_ino, path),))


def _is_read(path: bytes, shown: bytes) -> UsageError:
    other = "" if shown == path else f" as {printable(shown)}"
    return UsageError(
        f"{printable(path)}: this run would read it{other}, and then write it; name another place, or leave"
        " the file out of what is read"
    )
