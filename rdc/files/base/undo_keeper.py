"""UndoKeeper: what a Root tells before it makes, replaces, moves, removes or changes an entry."""

from __future__ import annotations

import os

from rdc.typed import NamedTuple, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.errors import RdcError
    from rdc.model.entries import Metadata

__all__ = ["Placed", "UndoKeeper"]


class Placed(NamedTuple):
    """An entry that is about to appear."""

    path: bytes
    parent: int
    """Descriptor of its directory."""
    new: os.stat_result | None
    """Its stat under a temporary name; None for a directory that is not made yet."""
    ctime_ns: int
    """If the entry is a file that gets a further name: the file's ctime before that. Otherwise 0."""


class UndoKeeper(Protocol):
    """Notes each change before it is made. rdc.undoing.keeper is the one that is used.

    A method that returns has made durable what undoing the change needs. RdcError, unless it is a FileError,
    ends the run.
    """

    def entering(self, path: bytes, directory: int) -> None:
        """Notes that entries of the directory at `path`, open as `directory`, are about to be made or
        removed, such as temporaries. Raises RdcError."""

    def placing(self, arrivals: Sequence[Placed]) -> dict[bytes, RdcError]:
        """Notes entries that are about to appear, in place of what is at their paths.

        Returns the paths that must stay as they are, each with its error. Raises RdcError.
        """

    def removing(self, paths: Sequence[bytes]) -> None:
        """Notes entries that may be removed. Entries that are missing do not count. Raises RdcError."""

    def changing(
        self, path: bytes, name: bytes, parent: int, wanted: Metadata, *, attributes: bool = False
    ) -> None:
        """Notes that the metadata of an entry are about to become `wanted`.

        `attributes`: its extended attributes are about to change, too. Raises RdcError, or OSError if
        nothing is there.
        """

    def changed(self, path: bytes, now: os.stat_result) -> None:
        """Notes that this run has just changed a file's metadata, or given it a further name: `now` is its
        stat. From its ctime the undo knows whether anybody else has touched it since."""

    def finish(self) -> list[str]:
        """Notes that the run came to its end. Returns notices for the user. Raises RdcError."""

    def close(self) -> None:
        """Ends the keeping. May be called again."""

    def moving(self, old: bytes, new: bytes, found: os.stat_result, wanted: Metadata) -> None:
        """Notes that the entry at `old`, whose stat is `found`, is about to get the metadata `wanted` and to
        be renamed to the free path `new`. Raises RdcError."""
