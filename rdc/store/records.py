"""Options and results of `rdc store`."""

from __future__ import annotations

from rdc.errors import ExitCode, WithPath, printable
from rdc.lean.checks import check_fields
from rdc.lean.records import Record, Report
from rdc.model.selection import DirectoryRules, FilterRule
from rdc.store.frames import LEVEL


class StoreOptions(Record):
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
    """True if new content is stored as a difference to what it replaced."""
    heal: bool = False
    """True if unchanged files are read, too, and stored again where the store has them damaged."""
    force_empty: bool = False
    """True if an empty directory is stored though the last snapshot of its series has entries."""
    publish: bool = False
    """True if an index is written, with which any web server publishes the store. Every later change writes
    it again."""

    def __post_init__(self) -> None:
        check_fields(self)


class StoreReport(Report, Record):
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
    """The bytes of all files."""
    files_read: int
    bytes_read: int
    """The bytes of the files that were not known to be unchanged."""
    new_bytes: int
    """Bytes of chunks that the store did not have, files and tree."""
    stored: int
    """Bytes of the packs that were added."""
    deltas: int
    """Frames that are differences to older ones."""
    errors: int
    """Problems that were reported, files that changed while they were read included."""
    exit: ExitCode


class SnapshotInfo(WithPath, Record):
    """One snapshot of a store, as `rdc.snapshots` lists them.

    >>> import os, rdc
    >>> os.mkdir("data")
    >>> _ = rdc.store_put("data", "store", catalog=None)
    >>> rdc.snapshots("store")[0].number
    1
    """

    number: int
    seconds: int
    """The start of the put: seconds since 1970, by the clock of the store's host."""
    series: bytes
    host: bytes
    path_bytes: bytes
    """The directory that was put."""
    entries: int
    files: int
    bytes: int
    """The bytes of all files."""
    stored: int
    """Bytes that its put added to the store."""
    alone: int | None = None
    """Bytes in the packs that no other snapshot needs; None: not asked for, or the snapshot is damaged."""
    problems: int = 0
    """Entries that the put could not read, or that changed while it read them."""


class ForgetOptions(Record):
    """The options of `rdc.forget_snapshots`: either `retain` or `numbers`. Raises TypeError for a wrong type.

    >>> import rdc
    >>> rdc.ForgetOptions(retain="7d,4w").apply
    False
    """

    retain: str | None = None
    """The snapshots of each series to keep, such as "24h,7d,4w,12m": the newest one of each of the last 24
    hours, 7 days, 4 weeks and 12 months that have one. `y` is a year. The newest of all is always kept."""
    numbers: tuple[int, ...] = ()
    """The snapshots to forget."""
    apply: bool = False
    """False: only show what would be forgotten."""

    def __post_init__(self) -> None:
        check_fields(self)


class ForgetReport(Report, Record):
    """The result of `rdc.forget_snapshots`.

    >>> import os, rdc
    >>> os.mkdir("data")
    >>> _ = rdc.store_put("data", "store", catalog=None)
    >>> rdc.forget_snapshots("store", rdc.ForgetOptions(retain="7d")).kept
    1
    """

    forgotten: tuple[int, ...]
    """Numbers."""
    kept: int
    """Snapshots that stay."""
    applied: bool
    """False: nothing was done."""


class GcOptions(Record):
    """The options of `rdc.clean_store`. Raises TypeError for a wrong type.

    >>> import rdc
    >>> rdc.GcOptions(wait=5.0).exclusive
    False
    """

    wait: float = 60.0
    """Seconds to wait for puts, restores and checks that run before packs are removed."""
    exclusive: bool = False
    """The caller knows that nothing else uses the store, which lies on a file system without locks."""

    def __post_init__(self) -> None:
        check_fields(self)


class GcReport(Report, Record):
    """The result of `rdc.clean_store`.

    >>> import os, rdc
    >>> os.mkdir("data")
    >>> _ = rdc.store_put("data", "store", catalog=None)
    >>> rdc.clean_store("store").packs
    0
    """

    packs: int
    """Packs that were removed."""
    freed: int
    """Their bytes."""
    written: int
    """Bytes of new packs with what snapshots need of them."""
    snapshots: int
    """Snapshots whose time in the trash was over."""


class PackReport(Report, Record):
    """The result of `rdc.store_pack`.

    >>> import os, rdc
    >>> os.mkdir("data")
    >>> _ = rdc.store_put("data", "store", catalog=None)
    >>> rdc.store_pack("store", 1, "data.rdcst").number
    1
    """

    number: int
    """The snapshot's."""
    base: int | None
    """The snapshot that readers have a copy of; None: they need none."""
    bytes: int
    """Size of the file."""
    frames: int
    """Frames that were copied."""


class VerifyReport(Report, Record):
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


def shown_series(name: bytes) -> str:
    """Return the name of a series as a list or a message shows it: as a shell takes it, if it has spaces,
    which would not show at its ends."""
    text = printable(name)
    if not any(map(str.isspace, text)):
        return text
    import shlex

    return shlex.quote(text)
