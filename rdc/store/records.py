"""Options and results of `rdc store`."""

from __future__ import annotations

from rdc.errors import ExitCode
from rdc.lean.checks import check_fields
from rdc.lean.records import dataclass
from rdc.model.selection import DirectoryRules, FilterRule
from rdc.store.frames import LEVEL


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The options of a put. Raises TypeError for a wrong type."""

    name: str | bytes | None = None
    """The series that the snapshot belongs to; None: the last component of the directory's path."""
    rules: tuple[FilterRule | DirectoryRules, ...] = ()
    """Filter rules: what they leave out is not in the snapshot."""
    one_file_system: bool = False
    level: int = LEVEL
    """The compression level, 1 to 19."""
    deltas: bool = True
    """Whether new content is stored as a difference to what it replaced."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class StoreReport:
    """The result of a put."""

    number: int
    """The snapshot's."""
    series: bytes
    entries: int
    files: int
    bytes: int
    """Of all files."""
    files_read: int
    bytes_read: int
    """Of the files that were not known to be unchanged."""
    new_bytes: int
    """Bytes of chunks that the store did not have, files and tree."""
    stored: int
    """Bytes of the packs that were added."""
    deltas: int
    """Frames that are differences to older ones."""
    errors: int
    """Problems that were reported, files that changed while they were read included."""
    exit: ExitCode


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """One snapshot of a store."""

    number: int
    seconds: int
    """When the put began: seconds since 1970, by the clock of the store's host."""
    series: bytes
    host: bytes
    path: bytes
    """The directory that was put."""
    entries: int
    files: int
    bytes: int
    """Of all files."""
    stored: int
    """Bytes that its put added to the store."""


@dataclass(frozen=True, slots=True)
class DamageFound:
    """A part of a store that is damaged or missing, and a file or directory of a snapshot that it reaches."""

    snapshot: int
    """0 for a file of the store itself."""
    path: bytes
    message: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The result of a check of a store."""

    snapshots: int
    packs: int
    chunks: int
    frames_read: int
    bytes_read: int
    """Decoded bytes that were compared with their keys."""
    damaged: int
    """Damaged parts and the places that they reach."""
    exit: ExitCode
