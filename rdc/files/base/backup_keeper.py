"""BackupKeeper: what a Root asks before it replaces or removes an entry."""

from __future__ import annotations

from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BackupKeeper"]


class BackupKeeper(Protocol):
    """Keeps what is replaced or deleted. rdc.files.names.backups is the one that is used."""

    beside: bool
    """Whether a backup lies in the directory of its entry."""

    def wanted_known(self, is_wanted: Callable[[bytes], bool]) -> None:
        """Sets `is_wanted`: whether the source has an entry at a path. A backup never takes its place."""

    def protects(self, path: bytes, kind: int) -> bool:
        """Whether an extraneous entry is a backup or the backup directory, so that --delete leaves it."""

    def keep(self, path: bytes, name: bytes, parent: int, *, copy: bool = False) -> None:
        """Gives the entry `name` of the open directory `parent`, at `path` of the tree, its backup.

        `copy`: the backup is a copy, as the entry will be written into. The backup is durable afterwards. A
        directory gets none. Raises FileError, or OSError if nothing is at `name`.
        """
