"""Catalog: what this machine knows of its files, kept between runs in one SQLite file."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

from rdc.catalog.database import Database
from rdc.catalog.entry import Entry, FileState
from rdc.catalog.eviction import shrink
from rdc.catalog.racy import file_clock, is_racy
from rdc.files.filesystem import file_system_of, path_of
from rdc.limits import (
    CATALOG_BATCH_BYTES,
    CATALOG_BATCH_ENTRIES,
    CATALOG_BYTES,
    CATALOG_ENTRY_BYTES,
    CATALOG_SETTLED,
)
from rdc.records import dataclass

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from os import PathLike
    from types import TracebackType

    from rdc.catalog.similar import SimilarFiles
    from rdc.chunking.params import ChunkParams
    from rdc.files.filesystem import FileSystem
    from rdc.files.source import SourceFile
    from rdc.signature.tree import SignatureTree

__all__ = ["Catalog"]

T = TypeVar("T")

BATCH_SECONDS = 5.0
"""How long an entry may wait for others: a long job that is killed has kept what it signed before."""

DAY_NS = 86_400_000_000_000

_FIND = "SELECT id, used, root, stamp FROM signature WHERE file_system = ? AND inode = ? AND params = ?"
_PUT = (
    "INSERT OR REPLACE INTO signature (file_system, inode, params, used, size, path, root, stamp, value)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


@dataclass(frozen=True, slots=True)
class _Row:
    """What the table says of one state of one file."""

    id: int
    root: bytes


class Catalog:
    """A SignatureStore in `directory`/catalog.sqlite, opened by the first call that needs it.

    Entries wait in memory for a batch of their kind and are found there too; `flush` and `close` write them.
    Threads may share a Catalog, processes a directory.
    """

    def __init__(
        self,
        directory: str | PathLike[str],
        *,
        max_bytes: int = CATALOG_BYTES,
        clock: Callable[[], int] = file_clock,
    ) -> None:
        """`max_bytes`: of the file, before the least recently used entries go. `clock`: nanoseconds, as the
        file systems' own."""
        self.database = Database(directory)
        self._max_bytes = max_bytes
        self._clock = clock
        # Reentrant: a signal's exception may run a `close` inside a `flush`.
        self._lock = threading.RLock()
        self._file_systems: dict[int, FileSystem] = {}
        self._pending: dict[tuple[int, int, int], Entry] = {}
        self._pending_bytes = 0
        self._pending_since = 0.0
        self._used: set[int] = set()
        self._settled: dict[bytes, None] = {}
        self.lost = 0
        """Entries that could not be written."""

    def now(self) -> int:
        return self._clock()

    # Signatures

    def get(self, source: SourceFile, params: ChunkParams) -> SignatureTree | None:
        state = self._state(source, params)
        if state is None:
            return None
        with self._lock:
            waiting = self._waiting(state)
            row = None if waiting is not None else self._find(state)
            if waiting is not None:
                root, value = waiting.root, waiting.value
            elif row is not None:
                found = self.database.read(lambda c: self._value(c, row))
                if found is None:
                    return None
                root, value = row.root, found
            else:
                return None
        from rdc.files.spool import Spool
        from rdc.signature.codec import SignatureError, decode_signature

        try:
            tree = decode_signature(value, Spool)
            if tree.root != root or tree.params != params or tree.size != source.size:
                raise SignatureError("a signature of something else")
        except SignatureError:
            # Damage that left the pages readable; signing anew puts another row in its place.
            return None
        return tree

    def root(self, source: SourceFile, params: ChunkParams) -> bytes | None:
        state = self._state(source, params)
        if state is None:
            return None
        with self._lock:
            waiting = self._waiting(state)
            found = waiting or self._find(state)
            return None if found is None else found.root

    def put(self, source: SourceFile, tree: SignatureTree, began: int) -> None:
        state = self._state(source, tree.params)
        if state is None:
            return
        file_system = self._file_systems[source.identity.device]
        if is_racy(source.identity.ctime_ns, began, file_system.change_times):
            return
        if tree.levels[0].records * 36 > CATALOG_ENTRY_BYTES:
            return
        from rdc.signature.codec import encode_signature

        entry = Entry(state, path_of(source.fileno()), tree.root, encode_signature(tree))
        with self._lock:
            if not self._pending:
                self._pending_since = time.monotonic()
            before = self._pending.pop(state.place, None)
            self._pending_bytes += len(entry.value) - (len(before.value) if before else 0)
            self._pending[state.place] = entry
            if (
                len(self._pending) >= CATALOG_BATCH_ENTRIES
                or self._pending_bytes >= CATALOG_BATCH_BYTES
                or time.monotonic() - self._pending_since >= BATCH_SECONDS
            ):
                self.flush()

    def similar(self, below: bytes, params: ChunkParams) -> SimilarFiles:
        from rdc.catalog.similar import SimilarFiles

        return SimilarFiles(self, below, params)

    # Settled pairs of trees

    def settle(self, key: bytes) -> None:
        with self._lock:
            self._settled[key] = None

    def is_settled(self, key: bytes) -> bool:
        with self._lock:
            if key in self._settled:
                return True
            found = self.database.read(
                lambda c: c.execute("SELECT 1 FROM settled WHERE key = ?", (key,)).fetchone() is not None
            )
            return found is True

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """What the function makes of the database as it was last flushed; None where it cannot be read. The
        function may run twice."""
        with self._lock:
            return self.database.read(work)

    # Writing

    def flush(self) -> None:
        with self._lock:
            entries, self._pending, self._pending_bytes = self._pending, {}, 0
            used, self._used = self._used, set()
            settled, self._settled = self._settled, {}
            if not (entries or used or settled):
                return
            today = self._today()
            rows = [
                (*place, today, e.state.identity.size, e.path, e.root, e.state.stamp(e.root), e.value)
                for place, e in entries.items()
            ]

            def write(connection: sqlite3.Connection) -> None:
                connection.executemany(_PUT, rows)
                if used:
                    connection.executemany(
                        "UPDATE signature SET used = ? WHERE id = ?", [(today, row) for row in used]
                    )
                if settled:
                    _settle(connection, list(settled))
                shrink(connection, self._max_bytes)

            # What another process's long transaction keeps out is not kept: it can be signed again.
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

    def __enter__(self) -> Catalog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Looking up

    def _state(self, source: SourceFile, params: ChunkParams) -> FileState | None:
        """None where the file system's ctime proves nothing."""
        device = source.identity.device
        file_system = self._file_systems.get(device)
        if file_system is None:
            try:
                file_system = file_system_of(source.fileno())
            except OSError:
                return None
            self._file_systems[device] = file_system
        if file_system.change_times.proves_nothing:
            return None
        return FileState(file_system.id, source.identity, params.id)

    def _waiting(self, state: FileState) -> Entry | None:
        entry = self._pending.get(state.place)
        return entry if entry is not None and entry.state == state else None

    def _find(self, state: FileState) -> _Row | None:
        found = self.database.read(lambda c: c.execute(_FIND, state.place).fetchone())
        if found is None:
            return None
        id_, used, root, stamp = found
        # SQLite keeps any type in any column: damage can turn a blob into a number.
        if not isinstance(root, bytes) or stamp != state.stamp(root):
            return None
        if used != self._today():
            self._used.add(id_)
        return _Row(id_, root)

    @staticmethod
    def _value(connection: sqlite3.Connection, row: _Row | None) -> bytes | None:
        if row is None:
            return None
        found = connection.execute(
            "SELECT value FROM signature WHERE id = ? AND length(value) <= ?",
            (row.id, CATALOG_ENTRY_BYTES * 2),
        ).fetchone()
        return found[0] if found and isinstance(found[0], bytes) else None

    def _today(self) -> int:
        return self._clock() // DAY_NS


def _settle(connection: sqlite3.Connection, keys: list[bytes]) -> None:
    connection.executemany("INSERT OR REPLACE INTO settled (key) VALUES (?)", [(key,) for key in keys])
    connection.execute(
        "DELETE FROM settled WHERE id <= (SELECT id FROM settled ORDER BY id DESC LIMIT 1 OFFSET ?)",
        (CATALOG_SETTLED,),
    )
