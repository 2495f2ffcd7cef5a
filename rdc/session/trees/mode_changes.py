"""Changes of the permissions that a source announces."""

from __future__ import annotations

from array import array

from rdc.errors import UsageError
from rdc.files.base.umask import process_umask
from rdc.lean.records import replace
from rdc.model.entries import Kind, PackedListing, little_endian, little_endian_integers
from rdc.model.options import ModeChanges, parse_mode_changes

__all__ = ["changed_listing", "mode_changes"]


def mode_changes(text: str) -> ModeChanges:
    """Parses the changes for this process. Raises UsageError."""
    try:
        return parse_mode_changes(text, process_umask())
    except ValueError as error:
        raise UsageError(f"--chmod={text}: {error}") from None


def changed_listing(listing: PackedListing, changes: ModeChanges) -> PackedListing:
    """The listing with the changed permissions of all that is transferred and no symlink."""
    known: dict[tuple[int, int], int] = {}
    modes = array("H")
    for kind, mode in zip(listing.kinds, little_endian_integers("H", listing.modes), strict=True):
        changed = known.get((kind, mode))
        if changed is None:
            changed = mode
            if kind not in {Kind.SYMLINK, Kind.SPECIAL}:
                changed = changes.applied(mode, directory=kind == Kind.DIRECTORY)
            known[kind, mode] = changed
        modes.append(changed)
    return replace(listing, modes=bytes(little_endian(modes)))
