"""The modes that new entries get where not all bits of modes are preserved."""

from __future__ import annotations

from array import array

from rdc.files.base.umask import process_umask
from rdc.lean.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import Kind, Listing, Metadata
    from rdc.model.preserved import Preserved

__all__ = ["with_made_mode", "with_made_modes"]


def with_made_modes(listing: Listing, preserved: Preserved) -> Listing:
    """An announced listing with the modes that its entries get if they are new."""
    if preserved.keeps_all_modes:
        return listing
    umask = process_umask()
    modes = (
        preserved.made_mode(kind, mode, umask)
        for kind, mode in zip(listing.kinds, listing.modes, strict=True)
    )
    return replace(listing, modes=array("H", modes))


def with_made_mode(metadata: Metadata, kind: Kind, preserved: Preserved) -> Metadata:
    """The same for one entry."""
    if preserved.keeps_all_modes:
        return metadata
    return replace(metadata, mode=preserved.made_mode(kind, metadata.mode, process_umask()))
