"""What is known of a file system: what it keeps of entries, and on which of its answers one can rely."""

from __future__ import annotations

from rdc.lean.records import dataclass, replace
from rdc.model.attributes import AttributeKinds
from rdc.model.entries import ALL_FIELDS, ComparedFields
from rdc.model.preserved import Preserved

__all__ = ["ALL_KEPT", "PLAIN", "FileSystemFacts"]

ALL_KEPT = Preserved(
    owner=True,
    attributes=AttributeKinds.USER | AttributeKinds.ROOT | AttributeKinds.ACL | AttributeKinds.ACCESS_TIME,
)
"""What a file system keeps that keeps everything."""


@dataclass(frozen=True, slots=True)
class FileSystemFacts:
    """The default of each field is what Linux promises of a local file system."""

    keeps: Preserved = ALL_KEPT
    stable: ComparedFields = ALL_FIELDS
    """The parts of an entry's stat that stay as they are while nobody changes the entry. Inode numbers are
    not stable where a file system gives an entry another one once it was forgotten (FAT, many FUSE and
    network file systems). Change times are not where it returns the mtime or the time of day."""
    steady: bool = True
    """Metadata can be set while a file is open, and stay when it is closed and renamed."""
    no_replace: bool = True
    """A rename that is told to replace nothing does not replace anything. It may fail."""
    hard_links: bool = True
    """A file can have several names, and they show that they are of one file."""
    syncs: bool = True
    """fsync is not refused. The trial asks for none; the first one of a run does."""

    @property
    def is_plain(self) -> bool:
        """Whether each call does what it says, so that nothing has to be looked at again. Times may be
        coarse."""
        keeps = replace(
            self.keeps, granularity=ALL_KEPT.granularity, attributes=ALL_KEPT.attributes, unmade=frozenset()
        )
        return keeps == ALL_KEPT and self.steady and self.no_replace and not self.keeps.granularity.is_vague


PLAIN = FileSystemFacts()
