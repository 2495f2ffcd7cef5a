"""Options and results of `rdc store`."""

from __future__ import annotations

from rdc.errors import ExitCode
from rdc.lean.checks import check_fields
from rdc.lean.records import dataclass
from rdc.model.selection import DirectoryRules, FilterRule
from rdc.store.frames import LEVEL


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The options of `rdc.store_put`. Raises TypeError for a wrong type.

    >>> import rdc
    >>> rdc.StoreOptions(name="home").name
    'home'
    """

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
    """The result of `rdc.store_put`.

    >>> import os, rdc
    >>> os.mkdir("data")
    >>> rdc.store_put("data", "store", catalog=None).files
    0
    """

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
    """One snapshot of a store, as `rdc.snapshots` lists them.

    >>> import os, rdc
    >>> os.mkdir("data")
    >>> _ = rdc.store_put("data", "store", catalog=None)
    >>> rdc.snapshots("store")[0].number
    1
    """

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
class VerifyReport:
    """The result of `rdc.verify_store`.

    >>> import os, rdc
    >>> os.mkdir("data")
    >>> _ = rdc.store_put("data", "store", catalog=None)
    >>> rdc.verify_store("store").snapshots
    1
    """

    snapshots: int
    packs: int
    chunks: int
    frames_read: int
    bytes_read: int
    """Decoded bytes that were compared with their keys."""
    damaged: int
    """Damaged parts and the places that they reach."""
    exit: ExitCode
