"""Catalog: what this machine knows of its files, kept between runs in one SQLite file."""

from __future__ import annotations

import time
from _thread import RLock  # threading's are these
from array import array
from functools import partial

from rdc.catalog.database import Database
from rdc.catalog.entry import Entry, FileState, place_of, stamps
from rdc.catalog.racy import file_clock, is_racy
from rdc.errors import FileError
from rdc.files.filesystem import ChangeTimes, file_system_of, path_of
from rdc.limits import (
    CATALOG_BATCH_BYTES,
    CATALOG_BATCH_ENTRIES,
    CATALOG_BYTES,
    CATALOG_ENTRY_BYTES,
    CATALOG_SETTLED,
)
from rdc.model.entries import strings
from rdc.records import dataclass
from rdc.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from os import PathLike
    from types import TracebackType
    from typing import TypeAlias

    from rdc.catalog.similar import SimilarFiles
    from rdc.catalog.small_files import SignedFiles, SmallFiles
    from rdc.chunking.params import ChunkParams
    from rdc.files.filesystem import FileSystem
    from rdc.files.source import SourceFile
    from rdc.signature.tree import SignatureTree

__all__ = ["Catalog"]

T = TypeVar("T")

Place: TypeAlias = tuple[int, int, int]
"""FileState.place."""

BATCH_SECONDS = 5.0
"""How long an entry may wait for others: a long job that is killed has kept what it signed before."""

DAY_NS = 86_400_000_000_000

_FIND = "SELECT id, used, root, stamp FROM signature WHERE file_system = ? AND inode = ? AND params = ?"
_FOUND_AT_ONCE = 256
"""Files to a statement that looks for many; always as many, so that it is compiled once."""

_KNOWN = "SELECT inode, id, used, root, stamp, "
_KNOWN_OF = (
    " FROM signature WHERE file_system = ? AND params = ? AND length(value) <= ?"
    f" AND inode IN ({', '.join('?' * _FOUND_AT_ONCE)})"
)
_FIND_ROOTS = _KNOWN + "NULL" + _KNOWN_OF
_FIND_VALUES = _KNOWN + "value" + _KNOWN_OF
_PUT = (
    "INSERT OR REPLACE INTO signature (file_system, inode, params, used, size, path, root, stamp, value)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


@dataclass(frozen=True, slots=True)
class _Row:
    """What the table says of one state of one file."""

    id: int
    root: bytes


@dataclass(frozen=True, slots=True)
class _Known:
    """What the table says of a file in some state."""

    id: int
    used: int
    root: bytes
    stamp: bytes
    value: bytes
    """b"" where it was not asked for."""


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
        parents: bool = True,
    ) -> None:
        """`max_bytes`: of the file, before the least recently used entries go. `clock`: nanoseconds, as the
        file systems' own. `parents`: as Database has it."""
        self.database = Database(directory, parents=parents)
        self._max_bytes = max_bytes
        self._clock = clock
        # Reentrant: a signal's exception may run a `close` inside a `flush`.
        self._lock = RLock()
        self._file_systems: dict[int, FileSystem] = {}
        self._pending: dict[Place, Entry] = {}
        self._pending_inodes: set[int] = set()
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

        path, value = path_of(source.fileno()), encode_signature(tree)
        self._put([(state.place, Entry(source.size, path, tree.root, state.stamp(tree.root), value))])

    def _put(self, entries: list[tuple[Place, Entry]]) -> None:
        with self._lock:
            if not self._pending:
                self._pending_since = time.monotonic()
            for place, entry in entries:
                before = self._pending.pop(place, None)
                self._pending_bytes += len(entry.value) - (len(before.value) if before else 0)
                self._pending[place] = entry
                self._pending_inodes.add(place[1])
            if (
                len(self._pending) >= CATALOG_BATCH_ENTRIES
                or self._pending_bytes >= CATALOG_BATCH_BYTES
                or time.monotonic() - self._pending_since >= BATCH_SECONDS
            ):
                self.flush()

    # Many small files at a time

    def find_small(self, files: SmallFiles, params: ChunkParams) -> list[tuple[int, bytes]]:
        return [(row, value) for row, _, value in self._find_many(files, params, _FIND_VALUES)]

    def find_roots(self, files: SmallFiles, params: ChunkParams) -> list[tuple[int, bytes]]:
        return [(row, root) for row, root, _ in self._find_many(files, params, _FIND_ROOTS)]

    def put_small(self, files: SmallFiles, signed: SignedFiles, chosen: Sequence[int], began: int) -> None:
        from rdc.signature.short_codec import encode_short

        fresh = self._young(files, began)
        chosen = [
            row
            for row in chosen
            if signed.rows[row] not in fresh and signed.ctimes[row] == files.ctimes[signed.rows[row]]
        ]
        if not chosen:
            return
        signatures = signed.signatures
        if len(chosen) < len(signatures):
            signatures = signatures.chosen(chosen)
        above, paths = path_of(files.root.fileno()).rstrip(b"/"), strings(files.paths)
        values, params = encode_short(signatures), signatures.params
        entries: list[tuple[Place, Entry]] = []
        for device in set(files.devices):
            system = self._file_systems.get(device)
            here = [n for n, row in enumerate(chosen) if files.devices[signed.rows[row]] == device]
            if system is None or not here:
                continue
            rows = [signed.rows[chosen[number]] for number in here]
            roots = [signatures.root_of(number) for number in here]
            where, _, which = place_of(system.id, 0, params.id)
            inodes = [files.inodes[row] for row in rows]
            sizes = [files.sizes[row] for row in rows]
            mtimes, ctimes = [files.mtimes[row] for row in rows], [files.ctimes[row] for row in rows]
            states = zip(inodes, sizes, mtimes, ctimes, roots, strict=True)
            stamped = stamps(system.id, params.id, states)
            names = [above + b"/" + paths[row] if above else b"" for row in rows]
            kept = [values[number] for number in here]
            places = [(where, inode, which) for inode in array("q", array("Q", inodes).tobytes())]
            entries += zip(places, map(Entry, sizes, names, roots, stamped, kept), strict=True)
        self._put(entries)

    def _young(self, files: SmallFiles, began: int) -> set[int]:
        """Rows of which nothing is kept: changed too shortly before they were read, or on file systems whose
        ctime proves nothing."""
        found = set()
        for device in set(files.devices):
            system = self._system_of(device, files)
            times = ChangeTimes.NONE if system is None else system.change_times
            rows = [row for row, other in enumerate(files.devices) if other == device]
            if is_racy(max([files.ctimes[row] for row in rows]), began, times):
                found.update([row for row in rows if is_racy(files.ctimes[row], began, times)])
        return found

    def _find_many(
        self, files: SmallFiles, params: ChunkParams, statement: str
    ) -> list[tuple[int, bytes, bytes]]:
        """Row, root and value (if the statement asks for it) of those that are known, rows increasing."""
        found: list[tuple[int, bytes, bytes]] = []
        with self._lock:
            if not self._pending and self.database.missing:
                return found
            for device in set(files.devices):
                system = self._system_of(device, files)
                if system is None or system.change_times.proves_nothing:
                    continue
                rows: Sequence[int] = range(len(files))
                own = files.inodes
                if files.devices.count(device) < len(files):
                    rows = [row for row, other in enumerate(files.devices) if other == device]
                    own = array("Q", [files.inodes[row] for row in rows])
                where, _, which = place_of(system.id, 0, params.id)
                inodes = array("q", own.tobytes())
                kept = self.database.read(partial(_selected, statement, where, which, inodes)) or {}
                if not kept and self._pending_inodes.isdisjoint(inodes):
                    continue
                for row, inode in zip(rows, inodes, strict=True):
                    waiting, known = self._pending.get((where, inode, which)), kept.get(inode)
                    if waiting is None and known is None:
                        continue
                    state = FileState(system.id, files.identity(row), params.id)
                    if waiting is not None and waiting.stamp == state.stamp(waiting.root):
                        found.append((row, waiting.root, waiting.value))
                    elif known is not None and known.stamp == state.stamp(known.root):
                        found.append((row, known.root, known.value))
                        if known.used != self._today():
                            self._used.add(known.id)
        return sorted(found)

    def _system_of(self, device: int, files: SmallFiles) -> FileSystem | None:
        found = self._file_systems.get(device)
        if found is not None:
            return found
        path = strings(files.paths)[files.devices.index(device)]
        try:
            with files.root.open_read(path) as source:
                if source.identity.device != device:
                    return None
                found = self._file_systems[device] = file_system_of(source.fileno())
        except (OSError, FileError):
            return None
        return found

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
            self._pending_inodes = set()
            used, self._used = self._used, set()
            settled, self._settled = self._settled, {}
            if not (entries or used or settled):
                return
            today = self._today()
            # Of files that had one path after each other the last: the order of rows says nothing about age.
            # With other parameters the same file has an entry of its own.
            last = {(entry.path, place[2]): place for place, entry in entries.items()}
            # In the order of the index, which is then put together page by page.
            rows = [
                (*place, today, e.size, e.path, e.root, e.stamp, e.value)
                for place, e in sorted(entries.items())
                if not e.path or last[e.path, place[2]] == place
            ]

            from rdc.catalog.eviction import shrink

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
        return entry if entry is not None and entry.stamp == state.stamp(entry.root) else None

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


def _selected(
    statement: str, where: int, which: int, inodes: array[int], connection: sqlite3.Connection
) -> dict[int, _Known]:
    """By inode, what is known of files of the file system `where`, signed with the parameters `which`."""
    found = {}
    for at in range(0, len(inodes), _FOUND_AT_ONCE):
        part = inodes[at : at + _FOUND_AT_ONCE].tolist()
        part += part[-1:] * (_FOUND_AT_ONCE - len(part))
        rows = connection.execute(statement, (where, which, CATALOG_ENTRY_BYTES * 2, *part))
        for inode, id_, used, root, stamp, value in rows:
            # SQLite keeps any type in any column: damage can turn a blob into a number.
            if isinstance(root, bytes) and (value is None or isinstance(value, bytes)):
                found[inode] = _Known(id_, used, root, stamp, value or b"")
    return found


def _settle(connection: sqlite3.Connection, keys: list[bytes]) -> None:
    connection.executemany("INSERT OR REPLACE INTO settled (key) VALUES (?)", [(key,) for key in keys])
    connection.execute(
        "DELETE FROM settled WHERE id <= (SELECT id FROM settled ORDER BY id DESC LIMIT 1 OFFSET ?)",
        (CATALOG_SETTLED,),
    )
