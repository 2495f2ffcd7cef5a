"""Which fields of an entry's stat show that nobody changed or replaced it."""

from __future__ import annotations

from rdc.records import dataclass

__all__ = ["ALL_STABLE", "StableFields"]


@dataclass(frozen=True, slots=True)
class StableFields:
    """The fields, besides device, kind, size and mtime, that stay as they are while an entry does.

    A field that is not stable says nothing, so a comparison of two states leaves it out.
    """

    inode: bool = True
    """The inode number is the entry's as long as the entry exists. FAT and many FUSE and network file systems
    give an entry another number once it was forgotten."""
    ctime: bool = True
    """The change time moves only if the entry changes. Some file systems return the mtime or the time of
    day."""


ALL_STABLE = StableFields()
