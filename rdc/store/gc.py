"""`rdc store gc`: remove what no snapshot needs, and store again what old packs hold mostly for nothing.

Puts go on meanwhile. What is needed is marked, and written again if that pays, under the lock that puts
share. Packs are removed under a lock of its own, and only if the store is as it was when it was marked; else
everything is marked again. Nothing is removed if anything that a snapshot needs is missing or unreadable.

Kept snapshots are written again oldest first, by the code that puts them, each against the one before. Their
files stay as they are, since keys say what is in them and not where it is. So every moment has all packs that
its snapshots need: the old ones go after the new ones are durable.
"""

from __future__ import annotations

import time

from rdc.errors import ExitCode, FileError, RdcError, printable
from rdc.lean.records import Record
from rdc.model.entries import strings
from rdc.progress import Progressed
from rdc.store.directory import split_keys
from rdc.store.marking import Marking, united
from rdc.store.place import PackStore
from rdc.store.publish import is_published, publish
from rdc.store.reader import PackFacts, StoreReader
from rdc.store.records import GcOptions, GcReport
from rdc.store.snapshot_tree import SnapshotTree, StoredStream
from rdc.store.snapshots import Snapshot
from rdc.store.tree_rows import StreamRef
from rdc.store.writer import StoreWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.progress import Reporter, StopSignal

TRASH_SECONDS = 7 * 86400
"""The time for which forgotten snapshots can be brought back: gc keeps what they need."""

WASTED_SHARE = 0.25
"""Share of a store that may be in frames without a chunk of a snapshot before it is written again."""

ATTEMPTS = 3
"""The limit of attempts to mark a store while puts are faster."""


def gc(store: bytes, options: GcOptions, reporter: Reporter, stop: StopSignal | None = None) -> GcReport:
    """Remove what no snapshot needs. Raises RdcError; then nothing is removed that one needs."""
    began = time.time()
    with PackStore.open(store) as opened:
        opened.check_owner()
        with opened.collecting():
            written = 0
            for _ in range(ATTEMPTS):
                with opened.locked(required=not options.exclusive):
                    opened.sweep()
                    before = _state(opened)
                    try:
                        collection = _Collecting(opened, reporter, began, stop).run()
                    except FileError:
                        if _state(opened) == before:
                            raise
                        continue  # a snapshot was forgotten, or brought back, before it was read
                written += collection.written
                with opened.locked(exclusive=True, required=not options.exclusive, wait=options.wait):
                    if _state(opened) == collection.state:
                        for number in collection.forgotten:
                            opened.remove_forgotten(number)
                        publish(opened, without=frozenset(collection.packs))
                        opened.remove_packs(collection.packs)
                        return GcReport(
                            packs=len(collection.packs),
                            freed=collection.freed,
                            written=written,
                            snapshots=len(collection.forgotten),
                        )
    raise RdcError(
        f"{printable(store)}: puts changed the store each time it was looked through, so nothing was removed;"
        " run gc again when fewer are running",
        code=ExitCode.BUSY,
    )


class _State(Record):
    """The listed contents of a store."""

    packs: tuple[bytes, ...]
    snapshots: tuple[int, ...]
    forgotten: tuple[int, ...]


def _state(store: PackStore) -> _State:
    return _State(tuple(store.pack_names()), tuple(store.numbers()), tuple(store.forgotten_numbers()))


class _Collection(Record):
    """The files that may be removed from a store in this state."""

    state: _State
    packs: tuple[bytes, ...]
    forgotten: tuple[int, ...]
    freed: int
    """Bytes of the packs."""
    written: int
    """Bytes of packs that were written to replace some of them."""


class _Collecting:
    """One look through a store."""

    def __init__(self, store: PackStore, reporter: Reporter, now: float, stop: StopSignal | None) -> None:
        self._store = store
        self._reporter = reporter
        self._now = now
        self._stop = stop

    def run(self) -> _Collection:
        """Mark, and write again if that pays. Raises FileError if something cannot be read."""
        state = _state(self._store)
        reader = StoreReader(self._store)
        try:
            if reader.damaged:
                raise reader.damaged[0]
            expired = [number for number in state.forgotten if self._is_expired(number)]
            recent = [number for number in state.forgotten if number not in expired]
            # Numbers are not given again while a file has the highest one.
            if expired and expired[-1] > max((0, *state.snapshots, *recent)):
                recent.append(expired.pop())
            kept = [self._store.needed_snapshot(number) for number in state.snapshots]
            kept += [self._store.needed_snapshot(number, forgotten=True) for number in recent]
            kept.sort(key=lambda one: one.number)
            gone, written = self._chosen(reader, kept, frozenset(recent))
            return _Collection(
                _State(tuple(self._store.pack_names()), state.snapshots, state.forgotten)
                if written
                else state,
                tuple([pack.name for pack in gone]),
                tuple(expired),
                sum([pack.size for pack in gone]),
                written,
            )
        finally:
            reader.close()

    def _is_expired(self, number: int) -> bool:
        forgotten = self._store.forgotten_at(number)
        return forgotten <= self._now - TRASH_SECONDS

    def _check_stop(self) -> None:
        if self._stop is not None and self._stop.is_set():
            from rdc.errors import StoppedError

            raise StoppedError("stopped by the caller; nothing was removed")

    def _chosen(
        self, reader: StoreReader, kept: Sequence[Snapshot], forgotten: frozenset[int]
    ) -> tuple[list[PackFacts], int]:
        """Return the packs that are not needed, and the bytes of packs that were written for that.

        `forgotten`: the numbers of those in `kept` that are in the trash. A snapshot that lacks a chunk stops
        everything, with how to give it up.
        """
        marking, content = Marking(reader), bytearray(reader.frames)
        read, trees = 0, sum([snapshot.tree.size for snapshot in kept])
        for snapshot in kept:
            self._check_stop()
            try:
                marks = marking.content(snapshot)
            except FileError as error:
                lost = snapshot.number in forgotten
                raise self._store.needs(error, snapshot.number, forgotten=lost) from error
            content = united(content, marks)
            read += snapshot.tree.size
            self._reporter(Progressed("read", read, trees))
        needed = bytearray(content)
        marking.add_bases(needed)
        gone = [pack for pack in reader.packs if not any(_own(needed, pack))]
        rest = [pack for pack in reader.packs if any(_own(needed, pack))]
        total = sum([reader.directory(pack).stored for pack in rest])
        if total - sum(map(marking.used_bytes, rest)) <= WASTED_SHARE * total:
            return gone, 0
        again = self._with_dependents(reader, rest, marking, needed)
        written = _Rewriting(reader, again, kept, self._check_stop).run()
        return gone + again, written

    def _with_dependents(
        self, reader: StoreReader, packs: Sequence[PackFacts], marking: Marking, needed: bytearray
    ) -> list[PackFacts]:
        """Return the packs to be written again: those with much waste, and those that need bases in them."""
        chosen = set[int]()
        for pack in packs:
            stored = reader.directory(pack).stored
            if stored - marking.used_bytes(pack) > WASTED_SHARE * stored:
                chosen.add(pack.place)
        deltas: list[tuple[int, set[int]]] = []
        for number in reader.deltas():
            if needed[number]:
                frame, places = reader.frame(number), set[int]()
                for key in split_keys(frame.bases):
                    places.update([reader.pack_of(base).place for base in reader.frames_with(key)])
                deltas.append((frame.pack.place, places))
        while True:
            more = {place for place, bases in deltas if place not in chosen and bases & chosen}
            if not more:
                return [pack for pack in packs if pack.place in chosen]
            chosen |= more


def _own(marks: bytearray, pack: PackFacts) -> bytearray:
    return marks[pack.first_frame : pack.first_frame + pack.frames]


class _Rewriting:
    """Stores the chunks of some packs again, so that these are not needed any more."""

    def __init__(
        self,
        reader: StoreReader,
        packs: Sequence[PackFacts],
        kept: Sequence[Snapshot],
        check_stop: Callable[[], None],
    ) -> None:
        self._reader = reader
        self._hidden = frozenset([pack.place for pack in packs])
        self._kept = kept
        self._writer = StoreWriter(reader, skips=not is_published(reader.store))
        self._check_stop = check_stop
        self._seen = set[bytes]()
        """Digests of records of directories whose files were stored again."""

    def run(self) -> int:
        """Return the bytes of the packs that were written. Raises RdcError."""
        try:
            before: SnapshotTree | None = None
            for snapshot in self._kept:
                tree = SnapshotTree(self._reader, snapshot)
                self._store_again(snapshot.tree, b"" if before is None else before.keys, lists=True)
                for path in tree:
                    self._check_stop()
                    self._store_directory(tree, path, before)
                # The next one is made against chunks that can be read.
                with self._reader.hiding(self._hidden):
                    self._writer.finish()
                before = tree
            with self._reader.hiding(self._hidden):
                self._check()
            return self._writer.stored
        finally:
            self._writer.close()

    def _store_directory(self, tree: SnapshotTree, path: bytes, before: SnapshotTree | None) -> None:
        digest = tree.digest(path)
        if digest in self._seen:
            return
        self._seen.add(digest)
        rows, former = tree.rows(path), dict[bytes, StreamRef]()
        old = None if before is None else before.rows(path)
        if old is not None:
            names = strings(old.listing.names)
            former = {names[row]: old.files[at].content for row, at in old.file_numbers().items()}
        if rows is None:
            return
        names = strings(rows.listing.names)
        for row, at in rows.file_numbers().items():
            same = former.get(names[row])
            self._store_again(rows.files[at].content, b"" if same is None else self._reader.expand(same))

    def _store_again(self, ref: StreamRef, old: bytes, *, lists: bool = False) -> None:
        """Store the chunks of a stream and of its lists of keys that are in no other pack. `lists`: it is a
        tree."""
        levels = [b"".join(self._reader.key_parts(ref, level)) for level in range(ref.level, -1, -1)]
        former: Sequence[bytes] = split_keys(old)
        for level in reversed(levels):
            keys, bases = split_keys(level), former
            former = self._writer.list_keys(b"".join(bases))
            with self._reader.hiding(self._hidden):
                if all(key in self._writer for key in keys):
                    continue
            lengths = [self._reader.length(key) for key in keys]
            stream = StoredStream(self._reader, StreamRef(sum(lengths), 0, level))
            with self._reader.hiding(self._hidden):
                content = level is levels[-1]
                self._writer.put_chunks(
                    keys,
                    lengths,
                    self._read_from(stream),
                    bases,
                    lists=lists or not content,
                )

    def _read_from(self, stream: StoredStream) -> Callable[[int, int], bytes]:
        def read(offset: int, length: int) -> bytes:
            with self._reader.hiding(frozenset()):
                return stream.pread(offset, length)

        return read

    def _check(self) -> None:
        """Raise FileError unless the other packs have all that the snapshots need."""
        marking = Marking(self._reader)
        marks = bytearray(self._reader.frames)
        for snapshot in self._kept:
            marks = united(marks, marking.content(snapshot))
        marking.add_bases(marks)
