"""What a destination knows of a directory between its parent's comparison and its own."""

from __future__ import annotations

from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import Metadata

__all__ = ["AnnouncedDirectory"]


@dataclass(frozen=True, slots=True)
class AnnouncedDirectory:
    """A directory that its parent's listing announced."""

    metadata: Metadata
    new: bool
    """This run made it, or a dry run would have. It is empty."""
    touched: bool
    """The run sets its metadata at the end, even if nothing in it changes."""
    lost: bool
    """It could not be made or read, or must not be made. Nothing below it is synced."""
