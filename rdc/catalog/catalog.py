"""Catalog: what this machine knows of its files, kept between runs in one SQLite file."""

from __future__ import annotations

import contextlib
import os
import time
from _thread import RLock  # threading costs each side of a remote sync 1.4 ms
from array import array
from collections.abc import Iterator
from functools import partial

from rdc.catalog.database import (
    ROOTS_ONLY,
    WITH_VALUES,
    Database,
    StoredRow,
    find_many,
    find_row,
    find_value,
    has_in_sync,
    mark_used,
    shrink,
    write_entries,
    write_in_sync,
)
from rdc.catalog.file_state import Entry, FileState, RowKey, is_racy, is_unsettled, row_key_of, stamps
from rdc.catalog.store import NoCatalog, SignatureStore, SignedFiles, SmallFiles, UserCatalog
from rdc.errors import ExitCode, FileError
from rdc.files.base.directory_descriptors import Closing
from rdc.files.base.metadata import file_clock
from rdc.files.facts.file_systems import ChangeTimes, FileSystem, file_system_of, path_of
from rdc.lean.typed import TypeVar
from rdc.limits import CATALOG_BATCH_BYTES, CATALOG_BATCH_ENTRIES, CATALOG_BYTES, CATALOG_ENTRY_BYTES
from rdc.model.entries import strings
from rdc.model.location import cache_directory
from rdc.progress import Problem, Reporter

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from os import PathLike

    from rdc.catalog.similar import SimilarFiles
    from rdc.chunking import ChunkParams
    from rdc.files.root.source_file import SourceFile
    from rdc.model.preserved import FileSystemFacts
    from rdc.signature.codec import ShortSignatures
    from rdc.signature.tree import SignatureTree


T = TypeVar("T")

DAY_NS = 86_400_000_000_000


class Catalog(SignatureStore, Closing):
    """A SignatureStore in `directory`/catalog.sqlite. The first call that needs the file opens it.

    Entries wait in memory for a batch, and lookups find them there too. `flush` and `close` write them.
    Threads may share a Catalog; processes may share a directory.
    """

    def __init__(
        self,
        directory: str | PathLike[str],
        *,
        max_bytes: int = CATALOG_BYTES,
        clock: Callable[[], int] = file_clock,
        parents: bool = True,
    ) -> None:
        """`max_bytes`: size of the file above which the least recently used entries are deleted. `clock`:
        nanoseconds on the clock that stamps files. `parents`: see Database."""
        self.database = Database(directory, parents=parents)
        self._max_bytes = max_bytes
        self._clock = clock
        # Reentrant: a signal's exception may run a `close` inside a `flush`.
        self._lock = RLock()
        self._file_systems = KnownFileSystems()
        self._pending = PendingEntries()
        self._used: set[int] = set()
        self._in_sync: dict[bytes, None] = {}
        self.lost = 0
        """Entries that could not be written."""

    @property
    def directory(self) -> bytes | None:
        return os.fsencode(self.database.directory)

    def now(self) -> int:
        return self._clock()

    # Single files

    def get(self, source: SourceFile, params: ChunkParams) -> SignatureTree | None:
        state = self._file_systems.state_of(source, params)
        if state is None:
            return None
        with self._lock:
            pending = self._find_pending(state)
            row = None if pending is not None else self._find_stored(state)
            if pending is not None:
                root, value = pending.root, pending.value
            elif row is not None:
                found = self.database.read(lambda c: find_value(c, row.id))
                if found is None:
                    return None
                root, value = row.root, found
            else:
                return None
        from rdc.files.base.spool import Spool
        from rdc.signature.codec import SignatureError, decode_signature

        try:
            tree = decode_signature(value, Spool)
            if tree.root != root or tree.params != params or tree.size != source.size:
                raise SignatureError("a signature of something else")
        except SignatureError:
            # Damage that left the pages readable. The file is signed again, and that replaces the row.
            return None
        return tree

    def root(self, source: SourceFile, params: ChunkParams) -> bytes | None:
        state = self._file_systems.state_of(source, params)
        if state is None:
            return None
        with self._lock:
            found = self._find_pending(state) or self._find_stored(state)
            return None if found is None else found.root

    def put(self, source: SourceFile, tree: SignatureTree, began: int) -> None:
        state = self._file_systems.state_of(source, tree.params)
        file_system = self._file_systems.known(source.identity.device)
        if state is None or file_system is None:
            return
        if is_racy(source.identity.ctime_ns, began, file_system.change_times):
            return
        if tree.levels[0].records * 36 > CATALOG_ENTRY_BYTES:
            return
        from rdc.signature.codec import encode_signature

        path, value = path_of(source.fileno()), encode_signature(tree)
        stamp = state.stamp(tree.root, unsettled=is_unsettled(source.identity.ctime_ns, began))
        self._put([(state.row_key, Entry(source.size, path, tree.root, stamp, value))])

    def _put(self, entries: list[tuple[RowKey, Entry]]) -> None:
        with self._lock:
            if self._pending.add(entries):
                self.flush()

    def _find_pending(self, state: FileState) -> Entry | None:
        entry = self._pending.entries.get(state.row_key)
        return entry if entry is not None and state.is_stamped(entry.stamp, entry.root) else None

    def _find_stored(self, state: FileState) -> StoredRow | None:
        row = self.database.read(lambda c: find_row(c, state.row_key))
        if row is None or not state.is_stamped(row.stamp, row.root):
            return None
        if row.used != self._today():
            self._used.add(row.id)
        return row

    # Many small files at a time

    def find_small(self, files: SmallFiles, params: ChunkParams) -> list[tuple[int, bytes]]:
        return [(row, value) for row, _, value in self._find_many(files, params, WITH_VALUES)]

    def find_roots(self, files: SmallFiles, params: ChunkParams) -> list[tuple[int, bytes]]:
        return [(row, root) for row, root, _ in self._find_many(files, params, ROOTS_ONLY)]

    def put_small(self, files: SmallFiles, signed: SignedFiles, chosen: Sequence[int], began: int) -> None:
        racy = self._racy_rows(files, began)
        chosen = [
            row
            for row in chosen
            if signed.rows[row] not in racy and signed.ctimes[row] == files.ctimes[signed.rows[row]]
        ]
        if not chosen:
            return
        signatures = signed.signatures
        if len(chosen) < len(signatures):
            signatures = signatures.chosen(chosen)
        self._put(list(self._small_entries(files, [signed.rows[row] for row in chosen], signatures, began)))

    def _small_entries(
        self, files: SmallFiles, rows: list[int], signatures: ShortSignatures, began: int
    ) -> Iterator[tuple[RowKey, Entry]]:
        """Entries for some rows of `files`. `signatures` has one signature per item of `rows`."""
        # long because it looks up many files at once, and a call for each would cost more than the work
        from rdc.signature.codec import encode_short

        above, paths = path_of(files.root.fileno()).rstrip(b"/"), strings(files.paths)
        values, params = encode_short(signatures), signatures.params
        for device in set(files.devices):
            system = self._file_systems.known(device)
            numbers = [number for number, row in enumerate(rows) if files.devices[row] == device]
            if system is None or not numbers:
                continue
            here = [rows[number] for number in numbers]
            roots = [signatures.root_of(number) for number in numbers]
            inodes = [files.inodes[row] for row in here]
            sizes = [files.sizes[row] for row in here]
            mtimes, ctimes = [files.mtimes[row] for row in here], [files.ctimes[row] for row in here]
            states = zip(inodes, sizes, mtimes, ctimes, roots, strict=True)
            stamped = stamps(system.id, params.id, states, began)
            names = [above + b"/" + paths[row] if above else b"" for row in here]
            encoded = [values[number] for number in numbers]
            where, _, which = row_key_of(system.id, 0, params.id)
            row_keys = [(where, inode, which) for inode in array("q", array("Q", inodes).tobytes())]
            yield from zip(row_keys, map(Entry, sizes, names, roots, stamped, encoded), strict=True)

    def _racy_rows(self, files: SmallFiles, began: int) -> set[int]:
        """Return the rows that must not be remembered: they changed too shortly before they were read, or
        their file system's ctime proves nothing."""
        found = set()
        for device in set(files.devices):
            system = self._file_systems.of_listed(device, files)
            times = ChangeTimes.NONE if system is None else system.change_times
            rows = [row for row, other in enumerate(files.devices) if other == device]
            if is_racy(max([files.ctimes[row] for row in rows]), began, times):
                found.update([row for row in rows if is_racy(files.ctimes[row], began, times)])
        return found

    def _find_many(
        self, files: SmallFiles, params: ChunkParams, statement: str
    ) -> list[tuple[int, bytes, bytes]]:
        """Return the known files: row, root, and value if the statement reads it. Rows increase."""
        found: list[tuple[int, bytes, bytes]] = []
        with self._lock:
            if not self._pending.entries and self.database.missing:
                return found
            for device in set(files.devices):
                system = self._file_systems.of_listed(device, files)
                if system is not None and not system.change_times.proves_nothing:
                    found += self._find_on(system, device, files, params, statement)
        return sorted(found)

    def _find_on(
        self, system: FileSystem, device: int, files: SmallFiles, params: ChunkParams, statement: str
    ) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield the known files of one file system, as `_find_many` returns them."""
        # long because a stored entry counts only if it passes every test
        rows: Sequence[int] = range(len(files))
        unsigned = files.inodes
        if files.devices.count(device) < len(files):
            rows = [row for row, other in enumerate(files.devices) if other == device]
            unsigned = array("Q", [files.inodes[row] for row in rows])
        where, _, which = row_key_of(system.id, 0, params.id)
        inodes, pending = array("q", unsigned.tobytes()), self._pending.entries
        stored = self.database.read(partial(find_many, statement, where, which, inodes)) or {}
        if not stored and self._pending.has_none_of(inodes):
            return
        for row, inode in zip(rows, inodes, strict=True):
            entry, known = pending.get((where, inode, which)), stored.get(inode)
            if entry is None and known is None:
                continue
            state = FileState(system.id, files.identity(row), params.id)
            if entry is not None and state.is_stamped(entry.stamp, entry.root):
                yield row, entry.root, entry.value
            elif known is not None and state.is_stamped(known.stamp, known.root):
                yield row, known.root, known.value
                if known.used != self._today():
                    self._used.add(known.id)

    def similar(self, below: bytes, params: ChunkParams) -> SimilarFiles:
        from rdc.catalog.similar import SimilarFiles

        return SimilarFiles(self, below, params)

    # Pairs of trees in sync

    def remember_in_sync(self, key: bytes) -> None:
        with self._lock:
            self._in_sync[key] = None

    def facts_of(self, key: bytes) -> FileSystemFacts | None:
        from rdc.catalog.file_system_memory import FileSystemMemory

        return FileSystemMemory(self.database).facts(key)

    def remember_facts(self, key: bytes, facts: FileSystemFacts) -> None:
        from rdc.catalog.file_system_memory import FileSystemMemory

        FileSystemMemory(self.database).remember(key, facts)

    def is_in_sync(self, key: bytes) -> bool:
        with self._lock:
            return key in self._in_sync or self.database.read(lambda c: has_in_sync(c, key)) is True

    # The database

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return the result of `work` on the database as last flushed. None if the database cannot be read.
        `work` may run twice."""
        with self._lock:
            return self.database.read(work)

    def flush(self) -> None:
        with self._lock:
            entries = self._pending.take()
            used, self._used = self._used, set()
            in_sync, self._in_sync = self._in_sync, {}
            if not (entries or used or in_sync):
                return
            today = self._today()

            def write(connection: sqlite3.Connection) -> None:
                write_entries(connection, entries, today)
                if used:
                    mark_used(connection, used, today)
                if in_sync:
                    write_in_sync(connection, list(in_sync))
                shrink(connection, self._max_bytes)

            # Entries are dropped if another process's transaction takes too long: they can be signed again.
            if not self.database.write(write):
                self.lost += len(entries)

    def close(self) -> None:
        with self._lock:
            self.flush()
            self.database.close()

    def take_notices(self) -> list[str]:
        with self._lock:
            notices, self.database.notices = self.database.notices, []
            return notices

    def _today(self) -> int:
        return self._clock() // DAY_NS


class KnownFileSystems:
    """Asks the kernel once per device number; later lookups are a dictionary's."""

    def __init__(self) -> None:
        self._by_device: dict[int, FileSystem] = {}

    def known(self, device: int) -> FileSystem | None:
        """Return the file system of a device that was looked up before."""
        return self._by_device.get(device)

    def state_of(self, source: SourceFile, params: ChunkParams) -> FileState | None:
        """Return the catalog's key for an open file. None if its file system's ctime proves nothing."""
        device = source.identity.device
        file_system = self._by_device.get(device)
        if file_system is None:
            try:
                file_system = file_system_of(source.fileno())
            except OSError:
                return None
            self._by_device[device] = file_system
        if file_system.change_times.proves_nothing:
            return None
        return FileState(file_system.id, source.identity, params.id)

    def of_listed(self, device: int, files: SmallFiles) -> FileSystem | None:
        """Return the file system of a device that `files` lists. An unknown one is found by opening its first
        file; None if that fails."""
        found = self._by_device.get(device)
        if found is not None:
            return found
        path = strings(files.paths)[files.devices.index(device)]
        try:
            with files.root.open_read(path) as source:
                if source.identity.device != device:
                    return None
                found = self._by_device[device] = file_system_of(source.fileno())
        except (OSError, FileError):
            return None
        return found


BATCH_SECONDS = 5.0
"""The longest time an entry waits for others. A job that is killed loses no more than this."""


class PendingEntries:
    """One batch of entries by row key. A newer entry with the same key replaces the older one."""

    def __init__(self) -> None:
        self.entries: dict[RowKey, Entry] = {}
        """Read by lookups; changed by `add` and `take` alone."""
        self._inodes: set[int] = set()
        self._bytes = 0
        self._first_added = 0.0

    def add(self, entries: list[tuple[RowKey, Entry]]) -> bool:
        """Add entries. Returns whether the batch is due to be written."""
        if not self.entries:
            self._first_added = time.monotonic()
        for row_key, entry in entries:
            replaced = self.entries.pop(row_key, None)
            self._bytes += len(entry.value) - (len(replaced.value) if replaced else 0)
            self.entries[row_key] = entry
            self._inodes.add(row_key[1])
        return (
            len(self.entries) >= CATALOG_BATCH_ENTRIES
            or self._bytes >= CATALOG_BATCH_BYTES
            or time.monotonic() - self._first_added >= BATCH_SECONDS
        )

    def has_none_of(self, inodes: Iterable[int]) -> bool:
        """Return whether no entry has one of these inode numbers (signed, as in RowKey)."""
        return self._inodes.isdisjoint(inodes)

    def take(self) -> dict[RowKey, Entry]:
        """Empty the batch and return its entries, the oldest first."""
        entries, self.entries, self._inodes, self._bytes = self.entries, {}, set(), 0
        return entries


# Where the catalog lies: the user's cache directory, or the directory that RDC_CATALOG or --catalog names.


VARIABLE = "RDC_CATALOG"
"""Environment variable: a directory, or `off`."""


def catalog_directory(environ: Mapping[str, str]) -> str | None:
    """Return the directory of the user's catalog. None if the environment says `off` or names no home
    directory."""
    chosen = environ.get(VARIABLE, "")
    if chosen == "off":
        return None
    if chosen:
        return chosen
    return cache_directory(environ)


def chosen_catalog(environ: Mapping[str, str]) -> Catalog | None:
    """Return the catalog in `catalog_directory`. A directory named by RDC_CATALOG is created with its
    parents. A missing home directory is not created, since services run under users whose home does not
    exist."""
    directory = catalog_directory(environ)
    return None if directory is None else Catalog(directory, parents=bool(environ.get(VARIABLE)))


def user_catalog(environ: Mapping[str, str]) -> SignatureStore:
    """Return the catalog of the user who runs this process. Nothing is opened or created before its first
    use."""
    return chosen_catalog(environ) or NoCatalog()


@contextlib.contextmanager
def opened_catalog(
    choice: SignatureStore | UserCatalog | None, reporter: Reporter
) -> Iterator[SignatureStore]:
    """Yield the chosen store for the duration of one job. Its notices go to `reporter` at the end.

    A store made by the caller is flushed and left open; the user's own catalog is closed.
    """
    store: SignatureStore
    if isinstance(choice, UserCatalog):
        store = user_catalog(os.environ)
    else:
        store = NoCatalog() if choice is None else choice
    try:
        yield store
    finally:
        if isinstance(choice, UserCatalog):
            store.close()
        else:
            store.flush()
        for notice in store.take_notices():
            reporter(Problem(ExitCode.OK, b"", notice))
