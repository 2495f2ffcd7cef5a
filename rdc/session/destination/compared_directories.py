"""What comparisons by manifest and by listing ask of those who act on a directory: a sync, or a check."""

from __future__ import annotations

from rdc.lean.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.model.entries import Listing
    from rdc.session.applying.announced_directory import AnnouncedDirectory

__all__ = ["BeyondMounts", "ComparedDirectories", "ListedTree"]


class ComparedDirectories(Protocol):
    """Takes each directory once, after its parent announced it."""

    def announced(self, path: bytes) -> AnnouncedDirectory | None:
        """The directory at `path`, if it was announced and has not been compared yet."""

    def expect(self, path: bytes, announced: AnnouncedDirectory) -> None:
        """Announces the directory at `path`: `compare` may follow."""

    def mark_unchanged(self, path: bytes) -> bool:
        """Like `compare` for a directory with equal listings; False if `compare` has to follow."""

    def compare(self, path: bytes, first: int, listing: Listing, existing: Listing | None) -> None:
        """Compares the directory at `path`, whose entries start at manifest row `first`. `existing` None: the
        destination's could not be read."""

    def restore_permissions_later(self, path: bytes) -> None:
        """The owner borrowed permissions in an announced directory."""


class BeyondMounts(Protocol):
    """Learns of directories whose entries at the source are unknown."""

    def note_difference(self) -> None:
        """The destination has entries below a mount point that the source did not enter."""


class ListedTree(Protocol):
    """A tree of which single directories are listed."""

    def listing(self, path: bytes, on_borrowed: Callable[[bytes], None], /) -> Listing | None:
        """The listing of one directory; None if it cannot be read. `on_borrowed`: as in OwnTree."""
